// Operations that move rows and convert them, and the sum of two gradients. No reductions; each
// value is converted once.
//
// kScatterRows: text (batch, Rt, H), video (batch, Rv, H), audio (batch, Ra, H), bfloat16 or
//   float32, and their indices (1, rows, 1) int64. Output (batch, R, H). Backward: each source's
//   gradient is the rows at its indices, cast to its type.
// kGatherRows: x (batch, R, W), indices (1, n, 1) int64, distinct. Output (batch, n, W) of x's
//   type. Backward: zeros, and the gradient's rows at the indices.
// kCast: x (batch, R, W). Output of the same shape and either type. Backward: the cast back.
// kGradSum: a, b (batch, R, W) of one type. round(a + b), which may be written over a. No backward.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_ROW_MOVEMENT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_ROW_MOVEMENT_H_

#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeScatterRows();
std::shared_ptr<const Operation> MakeGatherRows();
std::shared_ptr<const Operation> MakeCast();
std::shared_ptr<const Operation> MakeGradSum();

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_ROW_MOVEMENT_H_
