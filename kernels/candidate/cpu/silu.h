// SiLU and its derivative in float32, without a branch, so that loops over them vectorise.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_SILU_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_SILU_H_

#include "kernels/numerics/elementary.h"

namespace plumbline::candidate {

// x / (1 + exp(-x)).
inline float Silu(float x) { return x / (1.0f + ExpF32(-x)); }

// sigma(x) (1 + x (1 - sigma(x))), sigma(x) = 1 / (1 + exp(-x)).
inline float SiluDerivative(float x) {
  const float sigmoid = 1.0f / (1.0f + ExpF32(-x));
  return sigmoid * (1.0f + x * (1.0f - sigmoid));
}

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_SILU_H_
