// RMSNorm, plain (kRmsNorm) and with AdaLN's scale and shift (kModulatedRmsNorm), and the rows of
// both that the fused operations share.
//
// kRmsNorm: x (batch, R, W) bfloat16, weight (1, 1, G) bfloat16, W a multiple of G: each run of G
//   channels is normalised by itself.
//   r = 1 / sqrt(sum of x^2 / G + epsilon), n = round((x r) weight): float32 and one rounding.
// kModulatedRmsNorm: x (batch, R, H), scale and shift (1, table rows, H), weight (1, 1, H)
//   bfloat16, index (1, R, 1) int64.
//   y = round(round(n round(1 + scale[index])) + shift[index]), n as above with G = H.
// Saved for the backward: r, float32, (batch * R, W / G).
//
// Backward of g. Modulated first: dshift and dscale are the float32 sums in row order of g and of
// round(g n), rounded once (table_gradient.h); dn = round(g round(1 + scale)). Then, in float32
// with one rounding of each result, xn = x r:
//   dx = r (dn weight - xn (sum of dn weight xn) / G);
//   dweight = the sum over rows, and within a row over its runs of channels, of dn xn
//   (parameter_gradient.h).
// Order of the sums along a row: kernels/cpu/row_reductions.h, which the provider shares.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_RMS_NORM_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_RMS_NORM_H_

#include <cstdint>
#include <memory>

#include "kernels/numerics/bfloat16.h"
#include "kernels/ops.h"

namespace plumbline::candidate {

std::shared_ptr<const Operation> MakeRmsNorm();           // rms_norm.cc
std::shared_ptr<const Operation> MakeModulatedRmsNorm();  // modulated_rms_norm.cc

// One run of `width` channels; returns r. `scratch` holds `width` floats.
float NormaliseRun(const bfloat16* x, const bfloat16* weight, int64_t width, float epsilon,
                   float* scratch, bfloat16* output);

// Backward of one run: `grad` is dn and `x` the input, both widened and both overwritten. Adds the
// run's part of dweight to `weight_sum` and writes dx, each unless it is null.
void NormaliseRunBackward(float* grad, float* x, const bfloat16* weight, int64_t width,
                          float reciprocal_rms, float* weight_sum, bfloat16* grad_x);

// One row of kModulatedRmsNorm; returns r. `scratch` holds `width` floats.
float ModulatedRmsNormRow(const bfloat16* x, const bfloat16* weight, const bfloat16* scale,
                          const bfloat16* shift, int64_t width, float epsilon, float* scratch,
                          bfloat16* output);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_RMS_NORM_H_
