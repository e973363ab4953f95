// SiLU in float32, in the order of PyTorch's kernels.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_SILU_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_SILU_H_

#include "kernels/numerics/elementary.h"

namespace plumbline::provider {

inline float Silu(float x) { return x / (1.0f + ExpF32(-x)); }

// The gradient of x for a gradient `grad` of SiLU(x).
inline float SiluGradient(float grad, float x) {
  const float sigmoid = 1.0f / (1.0f + ExpF32(-x));
  return grad * sigmoid * (1.0f + x * (1.0f - sigmoid));
}

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_SILU_H_
