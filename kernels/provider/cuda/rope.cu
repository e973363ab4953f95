// kRope of the provider: rotary position embedding, rotate-half, over the first 6 F channels of
// each head.
//
//   x (batch, R, heads * D) bfloat16, position_ids (1, R, 3) float64 -> (batch, R, heads * D)
//   angle(axis, j) = float32(position) * inv_freq_j in float32, j < F; cos and sin in float32
//   (CUDA's cosf and sinf), each rounded to bfloat16
//   forward   y1 = round(round(x1 cos) + round(-x2 sin)), y2 = round(round(x2 cos) + round(x1
//   sin)),
//             x1 and x2 the halves of 3 F channels; the other channels pass
//   backward  dx1 = round(round(g1 cos) + round(g2 sin)), dx2 = round(round(g2 cos) - round(g1
//             sin)); the other channels pass. PyTorch adds the two parts of a head padded with
//             zeros, so no gradient is -0.
// No reductions.
#include "kernels/cuda/rope_operation.cuh"
#include "kernels/provider/cuda/operations.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;

struct Arithmetic {
  __device__ static float Cosine(float angle) { return RoundThroughBf16(cosf(angle)); }
  __device__ static float Sine(float angle) { return RoundThroughBf16(sinf(angle)); }
  template <bool kBackward>
  __device__ static bf16 Turn(float x, float other, float cosine, float sine) {
    const float value = RoundThroughBf16(x * cosine) + RoundThroughBf16(other * sine);
    return cuda::RoundToBf16(kBackward ? value + 0.0f : value);
  }
  template <bool kBackward>
  __device__ static bf16 Pass(bf16 x) {
    return kBackward ? cuda::RoundToBf16(cuda::Widen(x) + 0.0f) : x;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() {
  return std::make_shared<cuda::RopeOperation<ProviderOperation, bf16, Arithmetic>>(
      "provider Rope");
}

}  // namespace plumbline::provider_cuda
