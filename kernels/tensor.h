#ifndef PLUMBLINE_KERNELS_TENSOR_H_
#define PLUMBLINE_KERNELS_TENSOR_H_

#include <cstddef>
#include <cstdint>

#include "common/dtype.h"

namespace plumbline {

// A view of a (batch, rows, width) array in some device's memory. It owns nothing and is copied
// freely. The values of one row are contiguous; rows and batch items may be apart (a column slice
// of a table is such a view). Strides are counted in elements. A view whose `data` is null has a
// shape and no values: plans ask for sizes with such views, and an operation must not write a
// result whose view is null.
//
// Parameters are views too: a weight (outputs, inputs) has rows = outputs and width = inputs; a
// vector has one row.
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t batch = 1;
  int64_t rows = 0;
  int64_t width = 0;
  int64_t row_stride = 0;
  int64_t batch_stride = 0;

  static Tensor Dense(void* data, DType dtype, int64_t batch, int64_t rows, int64_t width) {
    return {data, dtype, batch, rows, width, width, rows * width};
  }

  bool IsNull() const { return data == nullptr; }
  bool IsDense() const { return row_stride == width && batch_stride == rows * width; }
  int64_t NumElements() const { return batch * rows * width; }
  // The bytes of a dense array of this shape.
  size_t NumBytes() const { return static_cast<size_t>(NumElements()) * DTypeSize(dtype); }

  // The first value of row `row` of batch item `item`. T must be the C++ type of `dtype`.
  template <typename T>
  T* Row(int64_t row, int64_t item = 0) const {
    return static_cast<T*>(data) + item * batch_stride + row * row_stride;
  }

  // The same memory read as (batch, rows * factor, width / factor): the AdaLN table (T, 18 H) is
  // used as (3 T, 6 H). The view must be dense and its width a multiple of `factor`.
  Tensor SplitRows(int64_t factor) const {
    return {data, dtype, batch, rows * factor, width / factor, row_stride / factor, batch_stride};
  }

  // Columns [first, first + count) of every row.
  Tensor Columns(int64_t first, int64_t count) const {
    Tensor view = *this;
    view.width = count;
    if (data != nullptr)
      view.data = static_cast<char*>(data) + first * static_cast<int64_t>(DTypeSize(dtype));
    return view;
  }
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_TENSOR_H_
