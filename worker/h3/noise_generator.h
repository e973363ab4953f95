#ifndef PLUMBLINE_WORKER_H3_NOISE_GENERATOR_H_
#define PLUMBLINE_WORKER_H3_NOISE_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/device.h"

namespace plumbline::h3 {

// A stream of standard normal values, as one torch.Generator gives them. One thread at a time.
class NormalGenerator {
 public:
  virtual ~NormalGenerator() = default;

  // Fills `to` with what torch.randn(to.size(), generator=...) returns next. The values depend on
  // where one draw ends and the next begins, so a draw must not be split. What fails is a GPU that
  // draws.
  virtual absl::Status Draw(absl::Span<float> to) = 0;
};

// Which of PyTorch's generators a run draws from.
struct Rng {
  enum class Kind { kTorchCpu, kTorchCuda };

  Kind kind = Kind::kTorchCuda;
  // Of the GPU that is imitated: the order of its values depends on it. Not used by kTorchCpu. The
  // default is an H200's.
  int multiprocessors = 132;

  friend bool operator==(const Rng& a, const Rng& b);
  friend bool operator!=(const Rng& a, const Rng& b) { return !(a == b); }
};

inline constexpr int kMaxMultiprocessors = 1 << 12;

// Reads "torch-cpu" or "torch-cuda:MULTIPROCESSORS". INVALID_ARGUMENT names `field`.
absl::StatusOr<Rng> ParseRng(absl::string_view text, absl::string_view field);

// The text that ParseRng reads back.
std::string FormatRng(const Rng& rng);

// A fresh generator, as after torch.Generator(...).manual_seed(seed). `rng` is valid. What one of
// PyTorch's GPU generators gives, a GPU draws bit for bit; without one (`device` is null or a CPU)
// it is computed within 2e-6. `device` must outlive the generator.
std::unique_ptr<NormalGenerator> MakeNormalGenerator(const Rng& rng, uint64_t seed,
                                                     Device* device = nullptr);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NOISE_GENERATOR_H_
