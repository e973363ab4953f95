#ifndef PLUMBLINE_WORKER_H3_NOISE_PHILOX_H_
#define PLUMBLINE_WORKER_H3_NOISE_PHILOX_H_

#include <array>
#include <cstdint>

#include "worker/h3/noise_generator.h"

namespace plumbline::h3 {

// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): the four
// words that `counter` and `key` give.
std::array<uint32_t, 4> Philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// torch.Generator("cuda") and float32 randn on a GPU of `multiprocessors` multiprocessors (ATen's
// DistributionTemplates.h and cuRAND's Philox generator), computed on the CPU. Random words are the
// GPU's bit for bit; values are within 2e-6 of a GPU's, whose logarithm, sine and cosine are
// approximate. The same on every machine.
class TorchCudaGenerator final : public NormalGenerator {
 public:
  TorchCudaGenerator(uint64_t seed, int multiprocessors)
      : seed_(seed), multiprocessors_(multiprocessors) {}

  void Draw(absl::Span<float> to) override;

 private:
  const uint64_t seed_;
  const int multiprocessors_;
  uint64_t offset_ = 0;  // Words that every thread has used; a multiple of 4.
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NOISE_PHILOX_H_
