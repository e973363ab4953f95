// The timestep path, float32 throughout.
//
// kTimeProjection: timestep (1, T, 1). Output (1, T, 2 F): cos(t f_i), then sin(t f_i), with
//   f_i = exp(-ln(10000) i / F), the product, the quotient, the exponential and the angle each
//   rounded to float32. No gradient.
// kTimeEmbedder: features (1, T, F), linear_1.weight (1, M, F), linear_1.bias, linear_2.weight
//   (1, N, M), linear_2.bias. linear_2(SiLU(linear_1(features))).
//   Saved for the backward: linear_1's output, float32 (T, M).
//   Backward: as linear.h for each layer, SiLU' between them. Order: linear.h.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_TIMESTEP_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_TIMESTEP_H_

#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeTimeProjection();
std::shared_ptr<const Operation> MakeTimeEmbedder();

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_TIMESTEP_H_
