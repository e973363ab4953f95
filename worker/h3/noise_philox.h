#ifndef PLUMBLINE_WORKER_H3_NOISE_PHILOX_H_
#define PLUMBLINE_WORKER_H3_NOISE_PHILOX_H_

#include <array>
#include <cstdint>

#include "kernels/device.h"
#include "kernels/numerics/torch_normal.h"
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
      : draw_{seed, 0, static_cast<uint64_t>(multiprocessors)} {}

  absl::Status Draw(absl::Span<float> to) override;

 private:
  TorchNormalDraw draw_;  // the next one
};

// The same, drawn by a GPU: all bits are those of PyTorch there.
class DeviceCudaGenerator final : public NormalGenerator {
 public:
  // `device` must outlive it.
  DeviceCudaGenerator(uint64_t seed, int multiprocessors, Device& device)
      : draw_{seed, 0, static_cast<uint64_t>(multiprocessors)}, device_(device) {}

  absl::Status Draw(absl::Span<float> to) override;

 private:
  TorchNormalDraw draw_;
  Device& device_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NOISE_PHILOX_H_
