#ifndef PLUMBLINE_WORKER_H3_NOISE_CPU_H_
#define PLUMBLINE_WORKER_H3_NOISE_CPU_H_

#include <cstdint>
#include <optional>
#include <random>

#include "worker/h3/noise_generator.h"

namespace plumbline::h3 {

// torch.Generator("cpu") and float32 randn on a processor with AVX2, bit for bit (ATen's
// DistributionTemplates.h and avx_mathfun.h; held to captured draws).
//
// Draws of 16 values and more take one uniform float a value and work in blocks of 16; smaller ones
// take 53-bit doubles and keep the second value of each pair for the next small draw, whatever
// large draws lie between.
class TorchCpuGenerator final : public NormalGenerator {
 public:
  // Only the lower 32 bits of `seed` are used, as in PyTorch.
  explicit TorchCpuGenerator(uint64_t seed) : engine_(static_cast<uint32_t>(seed)) {}

  absl::Status Draw(absl::Span<float> to) override;

 private:
  // Uniform in [0, 1), a multiple of 2^-24.
  float UniformFloat();
  // Uniform in [0, 1), a multiple of 2^-53.
  double UniformDouble();
  void DrawLarge(absl::Span<float> to);
  float DrawOne();

  // The standard fixes its every value, and its seeding is init_genrand.
  std::mt19937 engine_;
  std::optional<double> kept_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_NOISE_CPU_H_
