// The residual connections, and the row of the gated one that the fused operation shares.
//
// kGatedResidual: x, branch (batch, R, H), gate (1, table rows, H) bfloat16, index (1, R, 1) int64.
//   y = round(x + round(gate[index] * branch)).
//   Backward of g: dx = g; dbranch = round(g gate[index]);
//   dgate = the float32 sum in row order of round(g branch), rounded once (table_gradient.h).
// kResidual: x, branch (batch, R, W) bfloat16. y = round(x + branch); both gradients are g.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_RESIDUAL_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_RESIDUAL_H_

#include <cstdint>
#include <memory>

#include "kernels/numerics/bfloat16.h"
#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeGatedResidual();
std::shared_ptr<const Operation> MakeResidual();

// One row of kGatedResidual.
void GatedResidualRow(const bfloat16* x, const bfloat16* branch, const bfloat16* gate,
                      int64_t width, bfloat16* output);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_RESIDUAL_H_
