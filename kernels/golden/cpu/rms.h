// RMSNorm of one run of channels, for the plain and the modulated norm.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CPU_RMS_H_
#define PLUMBLINE_KERNELS_GOLDEN_CPU_RMS_H_

#include <cmath>
#include <cstdint>

#include "kernels/cpu/row_reductions.h"

namespace plumbline::golden {

// 1 / sqrt(mean of x^2 + epsilon).
inline double ReciprocalRms(const float* x, int64_t size, float epsilon) {
  const double mean = RowSumOfSquares<double>(x, size) / static_cast<double>(size);
  return 1.0 / std::sqrt(mean + static_cast<double>(epsilon));
}

// With n = x r, r the reciprocal, and dn(i) the gradient that reaches n_i:
//   dx_i = r (dn_i - n_i mean(dn n))
// rounded once. dn(i) gives a double and is called twice.
template <typename NormalisedGradient>
void RmsGradient(const float* x, double reciprocal, int64_t size, NormalisedGradient dn,
                 float* grad_x) {
  const double sum = SumInLanes<double>(
      size, [&](int64_t i) { return dn(i) * (static_cast<double>(x[i]) * reciprocal); });
  const double mean = sum / static_cast<double>(size);
  for (int64_t i = 0; i < size; ++i) {
    const double normalised = static_cast<double>(x[i]) * reciprocal;
    grad_x[i] = static_cast<float>(reciprocal * (dn(i) - normalised * mean));
  }
}

}  // namespace plumbline::golden

#endif  // PLUMBLINE_KERNELS_GOLDEN_CPU_RMS_H_
