#include "absl/strings/str_cat.h"
#include "kernels/cuda/convert.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline {
namespace {

using cuda::bf16;

// From double in one rounding: the float between is rounded to odd, which keeps on which side of a
// tie the value was.
__device__ bf16 RoundDoubleToBf16(double value) {
  const float below = __double2float_rz(value);
  if (static_cast<double>(below) == value || value != value) return __float2bfloat16_rn(below);
  return __float2bfloat16_rn(__uint_as_float(__float_as_uint(below) | 1u));
}

template <typename From, typename To>
__device__ To ConvertValue(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else if constexpr (std::is_same_v<From, bf16>) {
    return static_cast<To>(__bfloat162float(value));
  } else if constexpr (std::is_same_v<To, bf16> && std::is_same_v<From, double>) {
    return RoundDoubleToBf16(value);
  } else if constexpr (std::is_same_v<To, bf16>) {
    return __float2bfloat16_rn(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
struct ConvertBody {
  cuda::View<const From> from;
  cuda::View<To> to;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const auto source =
        *reinterpret_cast<const cuda::Run<From, kCount>*>(from.Row(row, item) + column);
    cuda::Run<To, kCount> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result.values[i] = ConvertValue<From, To>(source.values[i]);
    }
    *reinterpret_cast<cuda::Run<To, kCount>*>(to.Row(row, item) + column) = result;
  }
};

template <typename From, typename To>
absl::Status Launch(cudaStream_t stream, const Tensor& from, const Tensor& to) {
  ConvertBody<From, To> body = {cuda::View<const From>(from), cuda::View<To>(to)};
  if (from.batch == 1) body.from.batch_stride = 0;
  return cuda::ForEachRun(stream, to.batch, to.rows, to.width,
                          cuda::AreAligned(cuda::kRun, from, to), body, "conversion");
}

absl::Status Copy(cudaStream_t stream, const Tensor& from, const Tensor& to) {
  switch (DTypeSize(from.dtype)) {
    case 8:
      return Launch<uint64_t, uint64_t>(stream, from, to);
    case 4:
      return Launch<uint32_t, uint32_t>(stream, from, to);
    case 2:
      return Launch<uint16_t, uint16_t>(stream, from, to);
    default:
      return Launch<uint8_t, uint8_t>(stream, from, to);
  }
}

}  // namespace

absl::Status ConvertOnCuda(cudaStream_t stream, const Tensor& from, const Tensor& to) {
  const bool same_batch = from.batch == to.batch || from.batch == 1;
  if (!same_batch || from.rows != to.rows || from.width != to.width) {
    return absl::InvalidArgumentError(
        absl::StrCat("conversion of (", from.batch, ", ", from.rows, ", ", from.width, ") to (",
                     to.batch, ", ", to.rows, ", ", to.width, "): the shapes must be equal"));
  }
  if (from.dtype == to.dtype) return Copy(stream, from, to);
  if (from.dtype == DType::kBF16 && to.dtype == DType::kF32)
    return Launch<bf16, float>(stream, from, to);
  if (from.dtype == DType::kBF16 && to.dtype == DType::kF64)
    return Launch<bf16, double>(stream, from, to);
  if (from.dtype == DType::kF32 && to.dtype == DType::kBF16)
    return Launch<float, bf16>(stream, from, to);
  if (from.dtype == DType::kF32 && to.dtype == DType::kF64)
    return Launch<float, double>(stream, from, to);
  if (from.dtype == DType::kF64 && to.dtype == DType::kBF16)
    return Launch<double, bf16>(stream, from, to);
  if (from.dtype == DType::kF64 && to.dtype == DType::kF32)
    return Launch<double, float>(stream, from, to);
  return absl::InvalidArgumentError(
      absl::StrCat("conversion of ", DTypeName(from.dtype), " to ", DTypeName(to.dtype),
                   ": BF16, F32 and F64 convert to one another, any other type only to itself"));
}

}  // namespace plumbline
