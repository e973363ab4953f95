#ifndef PLUMBLINE_KERNELS_GOLDEN_CPU_SILU_H_
#define PLUMBLINE_KERNELS_GOLDEN_CPU_SILU_H_

#include "kernels/numerics/elementary.h"

namespace plumbline::golden {

// SiLU(x) = x / (1 + exp(-x)), and its derivative.
inline double Silu(double x) { return x / (1.0 + Exp(-x)); }
inline double SiluDerivative(double x) {
  const double sigmoid = 1.0 / (1.0 + Exp(-x));
  return sigmoid * (1.0 + x * (1.0 - sigmoid));
}

}  // namespace plumbline::golden

#endif  // PLUMBLINE_KERNELS_GOLDEN_CPU_SILU_H_
