// Fused forwards: consecutive nodes in one kernel. Their bytes and saved state are those of the
// unfused operations; what lies between the nodes is written to memory only where somebody reads
// it. Tensors that the kernels do not take are given to the unfused operations one after another.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_FUSED_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_FUSED_H_

#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

// kGatedResidual, kModulatedRmsNorm of its output. fused_residual_norm.cu
std::shared_ptr<const FusedOperation> MakeFusedResidualNorm();

// kRmsNorm of q, kRmsNorm of k, kRope of the first, kRope of the second. fused_norm_rope.cc
std::shared_ptr<const FusedOperation> MakeFusedNormRope();

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_FUSED_H_
