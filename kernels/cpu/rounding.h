#ifndef PLUMBLINE_KERNELS_CPU_ROUNDING_H_
#define PLUMBLINE_KERNELS_CPU_ROUNDING_H_

#include <cstdint>
#include <cstring>

#include "absl/types/span.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/tensor.h"

// Rows of a tensor as float, whatever it stores: kBF16 or kF32, nothing else.

namespace plumbline {

// The row's values as float: the row itself if it is stored so, otherwise `scratch` (tensor.width
// values), filled. Exact.
inline const float* LoadRow(const Tensor& tensor, int64_t row, int64_t item, float* scratch) {
  if (tensor.dtype == DType::kF32) return tensor.Row<const float>(row, item);
  WidenBf16(
      absl::MakeConstSpan(tensor.Row<const bfloat16>(row, item), static_cast<size_t>(tensor.width)),
      scratch);
  return scratch;
}

// Stores tensor.width values, rounded once where the tensor is bfloat16.
inline void StoreRow(const float* values, const Tensor& tensor, int64_t row, int64_t item) {
  const size_t width = static_cast<size_t>(tensor.width);
  if (tensor.dtype == DType::kF32) {
    std::memcpy(tensor.Row<float>(row, item), values, width * sizeof(float));
  } else {
    RoundToBf16(absl::MakeConstSpan(values, width), tensor.Row<bfloat16>(row, item));
  }
}

// Stores `count` values from column `column` on, rounded once where the tensor is bfloat16.
inline void StoreColumns(const float* values, int64_t column, int64_t count, const Tensor& tensor,
                         int64_t row, int64_t item) {
  StoreRow(values, tensor.Columns(column, count), row, item);
}

// The single value tensor(item, row, column).
inline float LoadValue(const Tensor& tensor, int64_t row, int64_t item, int64_t column) {
  return tensor.dtype == DType::kF32 ? tensor.Row<const float>(row, item)[column]
                                     : WidenBf16(tensor.Row<const bfloat16>(row, item)[column]);
}

// Values of `dtype`'s precision, still as float: a rounding point.
inline void RoundRowThrough(DType dtype, float* values, int64_t count) {
  if (dtype != DType::kBF16) return;
  for (int64_t i = 0; i < count; ++i) values[i] = RoundThroughBf16(values[i]);
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CPU_ROUNDING_H_
