// The candidate's operations on a GPU: a plain path, right on every card of compute capability 8.0
// and newer, and beside it one for Hopper (sm90_...), taken by the card, the widths and the
// alignments, never by the number of rows. Deterministic and row-invariant: no atomics, no sum
// whose order depends on how many rows, items or multiprocessors there are. Each file opens with
// its shapes, its rounding points and the orders of summation that it promises. What only moves,
// casts or adds two values is every family's (kernels/cuda/shared_operations.h).
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_OPERATIONS_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_OPERATIONS_H_

#include <memory>

#include "kernels/cuda/cuda_operation.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

std::shared_ptr<const Operation> MakeTimeEmbedder();      // time_embedder.cc
std::shared_ptr<const Operation> MakeLinear();            // linear.cc
std::shared_ptr<const Operation> MakeAdalnProjection();   // adaln_projection.cc
std::shared_ptr<const Operation> MakeRmsNorm();           // rms_norm.cu
std::shared_ptr<const Operation> MakeModulatedRmsNorm();  // modulated_rms_norm.cu
std::shared_ptr<const Operation> MakeRope();              // rope.cu
std::shared_ptr<const Operation> MakeAttention();         // attention.cc
std::shared_ptr<const Operation> MakeGatedResidual();     // gated_residual.cu
std::shared_ptr<const Operation> MakeSwiGlu();            // swiglu.cu

inline constexpr char kImplementation[] = "candidate";

// The base of all of them.
class CandidateOperation : public cuda::CudaOperation {
 protected:
  explicit CandidateOperation(OpKind op) : CudaOperation(kImplementation, Precision::kMixed, op) {}
};

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_OPERATIONS_H_
