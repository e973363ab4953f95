// kRope of the golden: rotate-half over the first 6 F channels of each head.
//
//   x (batch, R, heads * D), position_ids (1, R, 3) float64 -> (batch, R, heads * D)
//   forward   y1 = x1 cos - x2 sin; y2 = x2 cos + x1 sin; the other channels pass
//   backward  the rotation by the opposite angle
// Rounding: the inverse frequencies and the angle float32(position) * inv_freq, and their cosine
// and sine, are rounded to float32: that evaluation is the model's; cos and sin are float64 inside.
// Each result once. No sums.
#include "kernels/cuda/rope_operation.cuh"
#include "kernels/golden/cuda/operations.h"

namespace plumbline::golden_cuda {
namespace {

struct Arithmetic {
  __device__ static float Cosine(float angle) {
    return static_cast<float>(cos(static_cast<double>(angle)));
  }
  __device__ static float Sine(float angle) {
    return static_cast<float>(sin(static_cast<double>(angle)));
  }
  template <bool kBackward>
  __device__ static float Turn(float x, float other, float cosine, float sine) {
    return static_cast<float>(static_cast<double>(x) * cosine + static_cast<double>(other) * sine);
  }
  template <bool kBackward>
  __device__ static float Pass(float x) {
    return x;
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeRope() {
  return std::make_shared<cuda::RopeOperation<GoldenOperation, float, Arithmetic>>("golden Rope");
}

}  // namespace plumbline::golden_cuda
