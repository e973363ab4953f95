#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"
#include "kernels/provider/cuda/scale.h"

namespace plumbline::provider_cuda {
namespace {

using cuda::bf16;
using cuda::View;

template <typename From, typename To>
struct ScaleBody {
  float factor;
  View<const From> from;
  View<To> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    float values[kCount];
    cuda::LoadRun(from.Row(row, item) + column, values);
#pragma unroll
    for (int i = 0; i < kCount; ++i) values[i] *= factor;
    cuda::StoreRun(values, to.Row(row, item) + column);
  }
};

template <typename From, typename To>
absl::Status Launch(cudaStream_t stream, float factor, const Tensor& from, const Tensor& to) {
  return cuda::ForEachRun(
      stream, to.batch, to.rows, to.width, cuda::AreAligned(cuda::kRun, from, to),
      ScaleBody<From, To>{factor, View<const From>(from), View<To>(to)}, "provider scaling");
}

}  // namespace

absl::Status Scale(cudaStream_t stream, float factor, const Tensor& from, const Tensor& to) {
  return from.dtype == DType::kBF16 ? Launch<bf16, float>(stream, factor, from, to)
                                    : Launch<float, bf16>(stream, factor, from, to);
}

}  // namespace plumbline::provider_cuda
