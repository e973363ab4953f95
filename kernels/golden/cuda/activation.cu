#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/golden/cuda/activation.h"
#include "kernels/golden/cuda/silu.cuh"

namespace plumbline::golden_cuda {
namespace {

using cuda::View;

struct ActivateBody {
  View<const float> x;
  View<float> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount];
    cuda::LoadRun(x.Row(row, item) + column, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = static_cast<float>(Silu(values[i]));
    cuda::StoreRun(values, to.Row(row, item) + column);
  }
};

struct GradientBody {
  View<const float> grad;
  View<const float> x;
  View<float> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float gradients[kCount], values[kCount];
    cuda::LoadRun(grad.Row(row, item) + column, gradients);
    cuda::LoadRun(x.Row(row, item) + column, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      gradients[i] = static_cast<float>(gradients[i] * SiluDerivative(values[i]));
    }
    cuda::StoreRun(gradients, to.Row(row, item) + column);
  }
};

}  // namespace

absl::Status Activate(cudaStream_t stream, const Tensor& x, const Tensor& to) {
  return cuda::ForEachRun(stream, to.batch, to.rows, to.width, cuda::AreAligned(cuda::kRun, x, to),
                          ActivateBody{View<const float>(x), View<float>(to)}, "golden SiLU");
}

absl::Status ActivationGradient(cudaStream_t stream, const Tensor& grad, const Tensor& x,
                                const Tensor& to) {
  return cuda::ForEachRun(
      stream, to.batch, to.rows, to.width, cuda::AreAligned(cuda::kRun, grad, x, to),
      GradientBody{View<const float>(grad), View<const float>(x), View<float>(to)},
      "golden SiLU backward");
}

}  // namespace plumbline::golden_cuda
