// Tensor maps for the bulk tensor copy engine (kernels/cuda/ptx/tma.cuh).
#ifndef PLUMBLINE_KERNELS_CUDA_TENSOR_MAP_H_
#define PLUMBLINE_KERNELS_CUDA_TENSOR_MAP_H_

#include <cuda.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::cuda {

// Values of bfloat16 in a row of a box: 128 bytes, laid out in shared memory with the 128-byte
// swizzle.
inline constexpr int kBoxWidth = 64;

// Whether the copy engine can address a bfloat16 tensor: its start and its strides are multiples of
// 16 bytes.
bool IsMappable(const Tensor& tensor);

// The rows of a tensor, those of all batch items one after another (IsOneMatrix), in boxes of
// `box_rows` rows of kBoxWidth values. Coordinates are (column, row).
absl::Status MapMatrix(const Tensor& tensor, int box_rows, CUtensorMap* map);

// A (batch, R, heads * D) tensor in boxes of `box_rows` rows of kBoxWidth of one head's channels.
// Coordinates are (channel, row, head, item).
absl::Status MapHeads(const Tensor& tensor, int64_t head_width, int box_rows, CUtensorMap* map);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_TENSOR_MAP_H_
