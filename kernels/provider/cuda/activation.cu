#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/provider/cuda/activation.h"
#include "kernels/provider/cuda/silu.cuh"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::View;

template <typename To>
struct ActivateBody {
  View<const float> x;
  View<To> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount];
    cuda::LoadRun(x.Row(row, item) + column, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] = Silu(values[i]);
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
    for (int i = 0; i < kCount; ++i) gradients[i] = SiluGradient(gradients[i], values[i]);
    cuda::StoreRun(gradients, to.Row(row, item) + column);
  }
};

template <typename Body>
absl::Status Launch(cudaStream_t stream, const Tensor& to, bool aligned, const Body& body) {
  return cuda::ForEachRun(stream, to.batch, to.rows, to.width, aligned, body, "provider SiLU");
}

}  // namespace

absl::Status Activate(cudaStream_t stream, const Tensor& x, const Tensor& to) {
  const bool aligned = cuda::AreAligned(cuda::kRun, x, to);
  if (to.dtype == DType::kBF16) {
    return Launch(stream, to, aligned, ActivateBody<bf16>{View<const float>(x), View<bf16>(to)});
  }
  return Launch(stream, to, aligned, ActivateBody<float>{View<const float>(x), View<float>(to)});
}

absl::Status ActivationGradient(cudaStream_t stream, const Tensor& grad, const Tensor& x,
                                const Tensor& to) {
  return Launch(stream, to, cuda::AreAligned(cuda::kRun, grad, x, to),
                GradientBody{View<const float>(grad), View<const float>(x), View<float>(to)});
}

}  // namespace plumbline::provider_cuda
