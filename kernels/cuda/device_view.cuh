// Tensors as kernels see them.
#ifndef PLUMBLINE_KERNELS_CUDA_DEVICE_VIEW_CUH_
#define PLUMBLINE_KERNELS_CUDA_DEVICE_VIEW_CUH_

#include <cuda_bf16.h>

#include <cstdint>

#include "kernels/tensor.h"

namespace plumbline::cuda {

using bf16 = __nv_bfloat16;

// A Tensor with its element type, passed to kernels by value.
template <typename T>
struct View {
  T* data;
  int64_t batch_stride;
  int64_t row_stride;
  int64_t rows;

  explicit View(const Tensor& tensor)
      : data(static_cast<T*>(tensor.data)),
        batch_stride(tensor.batch_stride),
        row_stride(tensor.row_stride),
        rows(tensor.rows) {}

  __host__ __device__ bool IsNull() const { return data == nullptr; }

  __device__ T* Row(int64_t row, int64_t item = 0) const {
    return data + item * batch_stride + row * row_stride;
  }
  // A *flat* row number counts the rows of all batch items: item * rows + row.
  __device__ T* FlatRow(int64_t flat_row) const { return Row(flat_row % rows, flat_row / rows); }
};

// Whether every run of `count` values from a multiple of `count` on lies on its own size's
// boundary, in every row, and rows are whole runs: what a kernel asks that reads and writes such
// runs at once.
inline bool IsAligned(const Tensor& tensor, int64_t count) {
  const uint64_t run_bytes = static_cast<uint64_t>(count) * DTypeSize(tensor.dtype);
  return reinterpret_cast<uint64_t>(tensor.data) % run_bytes == 0 && tensor.width % count == 0 &&
         tensor.row_stride % count == 0 && (tensor.batch == 1 || tensor.batch_stride % count == 0);
}

template <typename... Tensors>
bool AreAligned(int64_t count, const Tensors&... tensors) {
  return (... && (tensors.IsNull() || IsAligned(tensors, count)));
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_DEVICE_VIEW_CUH_
