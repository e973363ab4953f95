// SwiGLU.
//
// Shapes: gate_up (batch, R, 2 F) bfloat16, value a in the first half, gate b in the second; output
// (batch, R, F).
// Rounding points: s = round(SiLU(b)), SiLU in float32; y = round(a s).
// Backward of g: da = round(g s); ds = round(g a); db = round(ds SiLU'(b)), SiLU' in float32.
// Reductions: none.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_SWIGLU_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_SWIGLU_H_

#include <cstdint>
#include <memory>

#include "kernels/numerics/bfloat16.h"
#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeSwiGlu();

// One row: `width` is F.
void SwiGluRow(const bfloat16* gate_up, int64_t width, bfloat16* output);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_SWIGLU_H_
