// Reading and writing rows of views whose type is bfloat16 or float32 as float32 values. A *flat*
// row number counts the rows of all batch items: item * rows + row.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_VALUES_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_VALUES_H_

#include <cstdint>
#include <cstring>

#include "common/dtype.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/tensor.h"

namespace plumbline::provider {

// The first value of a flat row. A view of batch 1 may be numbered beyond its rows: it is shared by
// all items.
template <typename T>
T* FlatRow(const Tensor& tensor, int64_t flat_row) {
  return tensor.Row<T>(flat_row % tensor.rows, tensor.batch == 1 ? 0 : flat_row / tensor.rows);
}

// Rounds `count` values to `type`: in place, and kept as float32.
inline void RoundValues(DType type, float* values, int64_t count) {
  if (type != DType::kBF16) return;
  for (int64_t i = 0; i < count; ++i) values[i] = RoundThroughBf16(values[i]);
}

// Columns [first, first + count) of a flat row, rounded to `cast`.
inline void LoadFlatRow(const Tensor& from, int64_t flat_row, int64_t first, int64_t count,
                        DType cast, float* to) {
  if (from.dtype == DType::kBF16) {
    const bfloat16* const row = FlatRow<bfloat16>(from, flat_row) + first;
    for (int64_t i = 0; i < count; ++i) to[i] = WidenBf16(row[i]);
    return;
  }
  std::memcpy(to, FlatRow<float>(from, flat_row) + first, count * sizeof(float));
  RoundValues(cast, to, count);
}

// The inverse: rounds to the view's type.
inline void StoreFlatRow(const float* from, const Tensor& to, int64_t flat_row, int64_t first,
                         int64_t count) {
  if (to.dtype == DType::kBF16) {
    bfloat16* const row = FlatRow<bfloat16>(to, flat_row) + first;
    for (int64_t i = 0; i < count; ++i) row[i] = RoundToBf16(from[i]);
    return;
  }
  std::memcpy(FlatRow<float>(to, flat_row) + first, from, count * sizeof(float));
}

// The first byte of a row, for moving it whatever its type.
inline char* RowBytes(const Tensor& tensor, int64_t row, int64_t item) {
  return static_cast<char*>(tensor.data) + (item * tensor.batch_stride + row * tensor.row_stride) *
                                               static_cast<int64_t>(DTypeSize(tensor.dtype));
}

// Copies a whole row between views of equal width, batch item `item` of both, rounding once where
// the types ask for it.
inline void ConvertRow(const Tensor& from, int64_t from_row, const Tensor& to, int64_t to_row,
                       int64_t item) {
  if (from.dtype == to.dtype) {
    std::memcpy(RowBytes(to, to_row, item), RowBytes(from, from_row, item),
                static_cast<size_t>(from.width) * DTypeSize(from.dtype));
  } else if (from.dtype == DType::kBF16) {
    WidenBf16({from.Row<bfloat16>(from_row, item), static_cast<size_t>(from.width)},
              to.Row<float>(to_row, item));
  } else {
    RoundToBf16({from.Row<float>(from_row, item), static_cast<size_t>(from.width)},
                to.Row<bfloat16>(to_row, item));
  }
}

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_VALUES_H_
