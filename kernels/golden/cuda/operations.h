// The golden's operations on a GPU: float32 storage everywhere, never TF32, and float64 inside
// everything that is not a matrix product. Products are float32 sums in blocks
// (kernels/cuda/float32_product.h), which is what keeps a block of released size within seconds.
// Deterministic: no atomics, no sum whose order depends on anything but its length. Each file opens
// with its formulas, its rounding points and the orders of summation that it promises.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CUDA_OPERATIONS_H_
#define PLUMBLINE_KERNELS_GOLDEN_CUDA_OPERATIONS_H_

#include <memory>

#include "kernels/cuda/cuda_operation.h"
#include "kernels/ops.h"

namespace plumbline::golden_cuda {

std::shared_ptr<const Operation> MakeTimeProjection();    // time_projection.cu
std::shared_ptr<const Operation> MakeTimeEmbedder();      // time_embedder.cc
std::shared_ptr<const Operation> MakeLinear();            // linear.cc
std::shared_ptr<const Operation> MakeAdalnProjection();   // adaln_projection.cc
std::shared_ptr<const Operation> MakeRmsNorm();           // rms_norm.cu
std::shared_ptr<const Operation> MakeModulatedRmsNorm();  // rms_norm.cu
std::shared_ptr<const Operation> MakeRope();              // rope.cu
std::shared_ptr<const Operation> MakeAttention();         // attention.cc
std::shared_ptr<const Operation> MakeGatedResidual();     // gated_residual.cu
std::shared_ptr<const Operation> MakeSwiGlu();            // swiglu.cu

inline constexpr char kImplementation[] = "golden";

// The base of all of them.
class GoldenOperation : public cuda::CudaOperation {
 protected:
  explicit GoldenOperation(OpKind op) : CudaOperation(kImplementation, Precision::kFloat32, op) {}
};

}  // namespace plumbline::golden_cuda

#endif  // PLUMBLINE_KERNELS_GOLDEN_CUDA_OPERATIONS_H_
