// The arithmetic of one run of channels of an RMSNorm, which kRmsNorm and kModulatedRmsNorm share,
// in the order of operations of PyTorch's kernels. Statistics, products and gradients in float32.
//   r = 1 / sqrt(sum(x^2) / n + epsilon), normalised = round(w (r x))
//   dx = round((n w dy - x r s) (1 / n) r), s = r sum(dy w x)
// Reductions over channels: kernels/cpu/row_reductions.h.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_RMS_NORM_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_RMS_NORM_H_

#include <cmath>
#include <cstdint>

#include "kernels/cpu/row_reductions.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::provider {

inline float InverseRms(const float* x, int64_t n, float epsilon) {
  return 1.0f / std::sqrt(RowSumOfSquares(x, n) / static_cast<float>(n) + epsilon);
}

// One normalised value, rounded.
inline float NormalisedValue(float x, float weight, float inverse_rms) {
  return RoundThroughBf16(weight * (inverse_rms * x));
}

// The input gradient of one run, given the gradient of the normalised values times the weights
// (n values in float32).
inline void RmsNormInputGradient(const float* x, const float* weighted_grad, float inverse_rms,
                                 int64_t n, bfloat16* grad_x) {
  const float count = static_cast<float>(n);
  const float projection = RowDot(weighted_grad, x, n) * inverse_rms;
  const float scale = (1.0f / count) * inverse_rms;
  for (int64_t i = 0; i < n; ++i) {
    grad_x[i] = RoundToBf16((count * weighted_grad[i] - x[i] * inverse_rms * projection) * scale);
  }
}

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_RMS_NORM_H_
