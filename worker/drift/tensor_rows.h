#ifndef PLUMBLINE_WORKER_DRIFT_TENSOR_ROWS_H_
#define PLUMBLINE_WORKER_DRIFT_TENSOR_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "kernels/tensor.h"

// Rows of tensors in the host's memory, of every element type.

namespace plumbline::drift {

inline const char* RowBytes(const Tensor& tensor, int64_t item, int64_t row) {
  return static_cast<const char*>(tensor.data) +
         (item * tensor.batch_stride + row * tensor.row_stride) *
             static_cast<int64_t>(DTypeSize(tensor.dtype));
}

// `tensor.width` values as float64: exact, but for 64-bit integers beyond 2^53, which are rounded
// to nearest. `bytes` may be unaligned.
void WidenRow(DType dtype, const char* bytes, int64_t width, double* values);

// One value of a row, widened.
double WidenElement(DType dtype, const char* row_bytes, int64_t column);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_TENSOR_ROWS_H_
