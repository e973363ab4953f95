#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/move_rows.h"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::cuda {
namespace {

enum class Direction { kScatter, kGather };

template <typename From, typename To, Direction kDirection>
struct MoveBody {
  View<const From> from;
  View<const int64_t> indices;
  View<To> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const int64_t other = *indices.Row(row);
    constexpr bool kScatters = kDirection == Direction::kScatter;
    float values[kCount];
    LoadRun(from.Row(kScatters ? row : other, item) + column, values);
    StoreRun(values, to.Row(kScatters ? other : row, item) + column);
  }
};

template <typename T>
struct ClearBody {
  View<T> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const float zeros[kCount] = {};
    StoreRun(zeros, to.Row(row, item) + column);
  }
};

template <typename From, typename To, Direction kDirection>
absl::Status Launch(cudaStream_t stream, const Tensor& from, const Tensor& indices,
                    const Tensor& to) {
  const MoveBody<From, To, kDirection> body = {View<const From>(from), View<const int64_t>(indices),
                                               View<To>(to)};
  return ForEachRun(stream, to.batch, indices.rows, to.width, AreAligned(kRun, from, to), body,
                    "row movement");
}

template <Direction kDirection>
absl::Status Move(cudaStream_t stream, const Tensor& from, const Tensor& indices,
                  const Tensor& to) {
  const bool from_bf16 = from.dtype == DType::kBF16;
  const bool to_bf16 = to.dtype == DType::kBF16;
  if (from_bf16 && to_bf16) return Launch<bf16, bf16, kDirection>(stream, from, indices, to);
  if (from_bf16) return Launch<bf16, float, kDirection>(stream, from, indices, to);
  if (to_bf16) return Launch<float, bf16, kDirection>(stream, from, indices, to);
  return Launch<float, float, kDirection>(stream, from, indices, to);
}

template <typename T>
absl::Status Clear(cudaStream_t stream, const Tensor& to) {
  return ForEachRun(stream, to.batch, to.rows, to.width, AreAligned(kRun, to),
                    ClearBody<T>{View<T>(to)}, "clearing rows");
}

}  // namespace

absl::Status ScatterRows(cudaStream_t stream, const Tensor& from, const Tensor& indices,
                         const Tensor& to) {
  return Move<Direction::kScatter>(stream, from, indices, to);
}

absl::Status GatherRows(cudaStream_t stream, const Tensor& from, const Tensor& indices,
                        const Tensor& to) {
  return Move<Direction::kGather>(stream, from, indices, to);
}

absl::Status ClearRows(cudaStream_t stream, const Tensor& to) {
  return to.dtype == DType::kBF16 ? Clear<bf16>(stream, to) : Clear<float>(stream, to);
}

}  // namespace plumbline::cuda
