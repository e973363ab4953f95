// kSwiGlu of the provider.
//
//   gate_up (batch, R, 2 F) bfloat16: value a, then gate b -> (batch, R, F)
//   forward   s = round(SiLU(b)), SiLU in float32; round(a s)
//   backward  of g: da = round(g s); ds = round(g a); db = round(ds SiLU'(b)), SiLU' in float32
// No reductions.
#include "kernels/cuda/swiglu_operation.cuh"
#include "kernels/provider/cuda/operations.h"
#include "kernels/provider/cuda/silu.cuh"

namespace plumbline::provider_cuda {
namespace {

using cuda::RoundThroughBf16;

struct Arithmetic {
  __device__ static float Value(float a, float b) { return a * RoundThroughBf16(Silu(b)); }
  __device__ static void Gradients(float g, float* a, float* b) {
    const float ds = RoundThroughBf16(g * *a);
    *a = g * RoundThroughBf16(Silu(*b));
    *b = SiluGradient(ds, *b);
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() {
  return std::make_shared<cuda::SwiGluOperation<ProviderOperation, cuda::bf16, Arithmetic>>(
      "provider SwiGlu");
}

}  // namespace plumbline::provider_cuda
