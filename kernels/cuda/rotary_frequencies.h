#ifndef PLUMBLINE_KERNELS_CUDA_ROTARY_FREQUENCIES_H_
#define PLUMBLINE_KERNELS_CUDA_ROTARY_FREQUENCIES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops.h"

namespace plumbline::cuda {

inline constexpr int kMostRotaryFrequencies = 64;

// 1 / theta^(2j / 2F), j < F, of kRope: exponent, power and reciprocal each rounded to float32.
// Computed on the CPU with the project's own exp and log, and handed to a kernel by value.
struct RotaryFrequencies {
  int count;  // F
  float inverse[kMostRotaryFrequencies];
};

// INVALID_ARGUMENT where there are more than kMostRotaryFrequencies; `name` begins the message.
absl::Status CheckRotaryFrequencies(absl::string_view name, const Attributes& attributes);

RotaryFrequencies MakeRotaryFrequencies(const Attributes& attributes);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ROTARY_FREQUENCIES_H_
