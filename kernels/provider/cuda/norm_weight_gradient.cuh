// The gradient of a norm's weight as PyTorch sums it (ATen's layer_norm_kernel.cu), so that it has
// PyTorch's bytes.
//
// Order: 1, 8, 16 or 32 lanes (below 64, 128, 256 rows, else) take 8 neighbouring rows each, in
// turns, and add one row after another to a sum of their own, by one fma each; then the lanes are
// folded in halves, lane j += lane j + half. Where there are more than 65,536 rows and fewer
// columns than the card can be filled with, blocks of one lane take 32 rows each, in turns; their
// sums are rounded to the weight's type, and added: here in float64 by column_sums.cuh, in PyTorch
// by its general reduction in float32, which can differ by a last bit.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_NORM_WEIGHT_GRADIENT_CUH_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_NORM_WEIGHT_GRADIENT_CUH_

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/workspace.h"

namespace plumbline::provider_cuda {

inline constexpr int kColumnsOfBlock = 32;
inline constexpr int kRowsOfLane = 8;
inline constexpr int64_t kRowsOfSplitBlock = 32;

// How many blocks share the rows of a column; 1: they are not split.
inline int64_t SplitBlocks(int64_t rows, int64_t width) {
  constexpr int64_t kMostRowsUnsplit = int64_t{64} << 10;
  constexpr int64_t kMostBlocks = int64_t{32} << 10;
  int device = 0;
  int multiprocessors = 0;
  if (cudaGetDevice(&device) == cudaSuccess) {
    cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (rows <= kMostRowsUnsplit || width / kColumnsOfBlock >= multiprocessors / 2) return 1;
  const int64_t column_blocks = (width + kColumnsOfBlock - 1) / kColumnsOfBlock;
  return std::min(kMostBlocks / column_blocks, (rows + kRowsOfSplitBlock - 1) / kRowsOfSplitBlock);
}

// contribution.Add(row, column, sum) is `sum` and the row's term.
template <int kLanes, typename Contribution>
__global__ void __launch_bounds__(kColumnsOfBlock* kLanes)
    WeightGradientKernel(int64_t rows, int64_t width, Contribution contribution, cuda::bf16* to) {
  __shared__ float shared[kLanes][kColumnsOfBlock];
  const int64_t column = int64_t{blockIdx.x} * kColumnsOfBlock + threadIdx.x;
  float sum = 0;
  if (column < width) {
    for (int64_t first = threadIdx.y * kRowsOfLane; first < rows; first += kLanes * kRowsOfLane) {
#pragma unroll
      for (int i = 0; i < kRowsOfLane; ++i) {
        if (first + i < rows) sum = contribution.Add(first + i, column, sum);
      }
    }
  }
  shared[threadIdx.y][threadIdx.x] = sum;
#pragma unroll
  for (int half = kLanes / 2; half > 0; half /= 2) {
    __syncthreads();
    if (static_cast<int>(threadIdx.y) < half) {
      shared[threadIdx.y][threadIdx.x] += shared[threadIdx.y + half][threadIdx.x];
    }
  }
  if (threadIdx.y == 0 && column < width) to[column] = cuda::RoundToBf16(shared[0][threadIdx.x]);
}

template <typename Contribution>
__global__ void __launch_bounds__(kColumnsOfBlock)
    SplitWeightGradientKernel(int64_t rows, int64_t width, Contribution contribution,
                              cuda::bf16* partials) {
  const int64_t column = int64_t{blockIdx.x} * kColumnsOfBlock + threadIdx.x;
  if (column >= width) return;
  float sum = 0;
  for (int64_t first = int64_t{blockIdx.y} * kRowsOfSplitBlock; first < rows;
       first += kRowsOfSplitBlock * gridDim.y) {
    const int64_t end = min(first + kRowsOfSplitBlock, rows);
    for (int64_t row = first; row < end; ++row) sum = contribution.Add(row, column, sum);
  }
  partials[int64_t{blockIdx.y} * width + column] = cuda::RoundToBf16(sum);
}

// The scratch of one call; over nothing it only measures.
struct WeightGradientScratch {
  WeightGradientScratch(int64_t rows, int64_t width, cuda::Workspace& workspace)
      : split(SplitBlocks(rows, width)) {
    if (split == 1) return;
    partials = workspace.Take<cuda::bf16>(split * width);
    run_sums = workspace.Take<double>(cuda::ColumnSumValues(split, width));
  }

  int64_t split;
  cuda::bf16* partials = nullptr;
  double* run_sums = nullptr;
};

// Enqueued: to(1, 1, width), bfloat16.
template <typename Contribution>
absl::Status SumWeightGradient(cudaStream_t stream, int64_t rows, const Contribution& contribution,
                               const WeightGradientScratch& scratch, const Tensor& to,
                               const char* name) {
  const int64_t width = to.width;
  if (width == 0) return absl::OkStatus();
  const unsigned blocks = static_cast<unsigned>((width + kColumnsOfBlock - 1) / kColumnsOfBlock);
  if (scratch.split > 1) {
    SplitWeightGradientKernel<<<dim3(blocks, static_cast<unsigned>(scratch.split)), kColumnsOfBlock,
                                0, stream>>>(rows, width, contribution, scratch.partials);
    const Tensor partials = Tensor::Dense(scratch.partials, DType::kBF16, 1, scratch.split, width);
    return cuda::SumColumns(stream, scratch.split,
                            cuda::RowValues<cuda::bf16>{cuda::View<const cuda::bf16>(partials)},
                            scratch.run_sums, to, name);
  }
  const auto launch = [&](auto kernel, unsigned lanes) {
    kernel<<<blocks, dim3(kColumnsOfBlock, lanes), 0, stream>>>(rows, width, contribution,
                                                                static_cast<cuda::bf16*>(to.data));
    return LaunchStatus(name);
  };
  if (rows < 64) return launch(WeightGradientKernel<1, Contribution>, 1);
  if (rows < 128) return launch(WeightGradientKernel<8, Contribution>, 8);
  if (rows < 256) return launch(WeightGradientKernel<16, Contribution>, 16);
  return launch(WeightGradientKernel<32, Contribution>, 32);
}

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_NORM_WEIGHT_GRADIENT_CUH_
