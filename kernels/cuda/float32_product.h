// Matrix product in float32 (never TF32), for the golden and for the candidate's float32 layers.
//
// Order of every sum, that of kernels/cpu/gemm.h: k in blocks of 256, cut at the end; inside a
// block one fma a k, ascending, onto a value that starts at 0; the blocks' sums added in ascending
// order to the first one. It depends on the extent of k and on nothing else: not on m or n, the
// place of an element or the strides.
#ifndef PLUMBLINE_KERNELS_CUDA_FLOAT32_PRODUCT_H_
#define PLUMBLINE_KERNELS_CUDA_FLOAT32_PRODUCT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/product.h"

namespace plumbline::cuda {

// C = left right^T + bias, enqueued. Operands are bfloat16 or float32 (widened exactly); `bias`
// (1, 1, n) of either type, or null; `output` of either type, rounded once.
absl::Status MultiplyFloat32(cudaStream_t stream, const Operand& left, const Operand& right,
                             const Tensor& bias, const Tensor& output);

// One operand of many products of one shape: float32 values at
// data + slice * slice_stride + (m or n) * stride + k * summed_stride.
struct SlicedOperand {
  const float* data = nullptr;
  int64_t slice_stride = 0;
  int64_t stride = 0;
  int64_t summed_stride = 1;
};

// C[slice](m, n) = factor * sum over k of left(m, k) right(n, k), for each slice; C at
// output + slice * slice_stride + m * row_stride + n.
struct SlicedProduct {
  int64_t slices = 0;
  int64_t m = 0, n = 0, k = 0;
  SlicedOperand left, right;
  float factor = 1;
  float* output = nullptr;
  int64_t slice_stride = 0;
  int64_t row_stride = 0;
};
absl::Status MultiplySlices(cudaStream_t stream, const SlicedProduct& product);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_FLOAT32_PRODUCT_H_
