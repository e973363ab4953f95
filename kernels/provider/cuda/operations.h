// The provider's operations on a GPU, as PyTorch 2.11 computes them there: each file opens with its
// shapes, its rounding points and its order of reduction. All are kMixed: bfloat16 storage, float32
// where the graph says so.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_OPERATIONS_H_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_OPERATIONS_H_

#include <memory>

#include "kernels/cuda/cuda_operation.h"
#include "kernels/ops.h"
#include "kernels/provider/cuda/gemm_path.h"

namespace plumbline::provider_cuda {

std::shared_ptr<const Operation> MakeTimeEmbedder(GemmPath path);    // time_embedder.cc
std::shared_ptr<const Operation> MakeAutocastLinear(GemmPath path);  // autocast_linear.cu
// What is a convolution in PyTorch: the same file.
std::shared_ptr<const Operation> MakeAutocastConvolution(GemmPath path);
std::shared_ptr<const Operation> MakeLinear(GemmPath path);           // linear.cc
std::shared_ptr<const Operation> MakeAdalnProjection(GemmPath path);  // adaln_projection.cc
std::shared_ptr<const Operation> MakeRmsNorm();                       // rms_norm.cu
std::shared_ptr<const Operation> MakeModulatedRmsNorm();              // rms_norm.cu
std::shared_ptr<const Operation> MakeRope();                          // rope.cu
std::shared_ptr<const Operation> MakeGatedResidual();                 // gated_residual.cu
std::shared_ptr<const Operation> MakeSwiGlu();                        // swiglu.cu

// Attention by online softmax over tiles of keys: the kernels that PyTorch picks between.
enum class TiledKernel {
  kDefault,    // cuDNN, which PyTorch picks by itself on an H200: 128 keys
  kFlash,      // FlashAttention-2: 64 keys
  kEfficient,  // the memory-efficient kernel of xFormers: 32 keys
};
std::shared_ptr<const Operation> MakeTiledAttention(TiledKernel kernel);  // tiled_attention.cc

// Attention as separate products and a softmax: PyTorch's math path. math_attention.cc
std::shared_ptr<const Operation> MakeMathAttention();

// What the operations call themselves in errors, whichever provider they serve.
inline constexpr char kFamily[] = "provider";

// The base of all of them.
class ProviderOperation : public cuda::CudaOperation {
 protected:
  explicit ProviderOperation(OpKind op) : CudaOperation(kFamily, Precision::kMixed, op) {}
};

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_OPERATIONS_H_
