// The AdaLN projection.
//
// Shapes: temb (1, T, E) float32, weight (1, N, E), bias (1, 1, N), output (1, T, N).
// Rounding points: s = SiLU(temb) in float32, rounded to the weight's type; then linear.h.
// Backward of g: ds, dW and dbias as linear.h; dtemb = ds SiLU'(temb) in float32.
// Order: linear.h.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_ADALN_PROJECTION_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_ADALN_PROJECTION_H_

#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeAdalnProjection();

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_ADALN_PROJECTION_H_
