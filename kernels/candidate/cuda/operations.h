// The candidate's operations on a GPU: the plain path, right on every card of compute capability
// 8.0 and newer. Deterministic and row-invariant: no atomics, no sum whose order depends on how
// many rows, items or multiprocessors there are. Each file opens with its shapes, its rounding
// points and the orders of summation that it promises.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_OPERATIONS_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_OPERATIONS_H_

#include <memory>

#include "kernels/cuda/cuda_operation.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

std::shared_ptr<const Operation> MakeTimeProjection();    // time_projection.cu
std::shared_ptr<const Operation> MakeTimeEmbedder();      // time_embedder.cu
std::shared_ptr<const Operation> MakeLinear();            // linear.cu
std::shared_ptr<const Operation> MakeAdalnProjection();   // adaln_projection.cu
std::shared_ptr<const Operation> MakeRmsNorm();           // rms_norm.cu
std::shared_ptr<const Operation> MakeModulatedRmsNorm();  // modulated_rms_norm.cu
std::shared_ptr<const Operation> MakeRope();              // rope.cu
std::shared_ptr<const Operation> MakeAttention();         // attention.cu
std::shared_ptr<const Operation> MakeGatedResidual();     // gated_residual.cu
std::shared_ptr<const Operation> MakeResidual();          // elementwise_sum.cu
std::shared_ptr<const Operation> MakeGradSum();           // elementwise_sum.cu
std::shared_ptr<const Operation> MakeSwiGlu();            // swiglu.cu
std::shared_ptr<const Operation> MakeScatterRows();       // row_movement.cu
std::shared_ptr<const Operation> MakeGatherRows();        // row_movement.cu
std::shared_ptr<const Operation> MakeCast();              // row_movement.cu

// The base of all of them.
class CandidateOperation : public cuda::CudaOperation {
 protected:
  explicit CandidateOperation(OpKind op) : CudaOperation("candidate", Precision::kMixed, op) {}
};

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_OPERATIONS_H_
