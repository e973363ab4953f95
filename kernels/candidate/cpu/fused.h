// Fused forwards: consecutive nodes in one pass over a row. They run the rows of the unfused
// operations one after the other while the row is in cache, so that bytes and saved state are the
// unfused ones; what lies between the nodes is written to memory only where somebody reads it.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_FUSED_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_FUSED_H_

#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate {

// kGatedResidual, kModulatedRmsNorm of its output. fused_residual_norm.cc
std::shared_ptr<const FusedOperation> MakeFusedResidualNorm();

// kRmsNorm of q, kRmsNorm of k, kRope of the first, kRope of the second. fused_norm_rope.cc
std::shared_ptr<const FusedOperation> MakeFusedNormRope();

// kLinear without bias, kSwiGlu of its output, a panel of rows at a time. fused_gate_up_swiglu.cc
std::shared_ptr<const FusedOperation> MakeFusedGateUpSwiGlu();

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_FUSED_H_
