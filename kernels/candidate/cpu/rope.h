// Rotary position embedding over three axes, and the parts of it that the fused operation shares.
//
// Shapes: x (batch, R, heads * D) bfloat16; position_ids (1, R, 3) float64; output like x.
// Rounding points: inv_freq = 1 / theta^(2j / 2F), exponent, power and reciprocal each rounded to
// float32; angle = float32(position) * inv_freq in float32, cos and sin of it in float32, rounded
// to bfloat16; over the first 6 F channels of a head, x1 and x2 the halves,
//   y1 = round(round(x1 cos) + round(-x2 sin)),  y2 = round(round(x2 cos) + round(x1 sin));
// the other channels are copied.
// Backward of g: the transpose with the same rounding points,
//   dx1 = round(round(g1 cos) + round(g2 sin)),  dx2 = round(round(g2 cos) + round(-g1 sin)).
// Reductions: none.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_ROPE_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_ROPE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/numerics/bfloat16.h"
#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeRope();

// Bytes of the table that FillRotaryTable writes for R rows.
size_t RotaryTableBytes(int64_t rows, const Attributes& attributes);

// For each row the 3 F cosines and then the 3 F sines of its angles (frequencies of the first axis,
// of the second, of the third), rounded through bfloat16.
void FillRotaryTable(ThreadPool& threads, const Tensor& position_ids, const Attributes& attributes,
                     float* table);

// One row of all its heads; `table_row` is the row's of FillRotaryTable. `from` and `to` may be the
// same.
void RotateRow(const bfloat16* from, int64_t width, const Attributes& attributes,
               const float* table_row, bfloat16* to);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_ROPE_H_
