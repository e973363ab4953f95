// Gradients of tables whose rows were gathered by an index, as PyTorch's index_select backward adds
// them: contributions rounded to bfloat16, added atomically in bfloat16, every addition rounded,
// into zeros. Not repeatable, and its loss of precision grows with the rows: both are the
// provider's own, and kept on purpose.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CUDA_TABLE_GRADIENT_CUH_
#define PLUMBLINE_KERNELS_PROVIDER_CUDA_TABLE_GRADIENT_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/move_rows.h"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::provider_cuda {

template <typename Contribution>
__global__ void __launch_bounds__(256)
    AddToTableKernel(int64_t rows, int64_t flat_rows, int64_t width,
                     cuda::View<const int64_t> index, cuda::View<cuda::bf16> grad,
                     Contribution contribution) {
  for (int64_t flat = blockIdx.x; flat < flat_rows; flat += gridDim.x) {
    const int64_t row = flat % rows;
    cuda::bf16* const to = grad.Row(*index.Row(row));
    for (int64_t column = threadIdx.x; column < width; column += blockDim.x) {
      atomicAdd(to + column, cuda::RoundToBf16(contribution(flat / rows, row, column)));
    }
  }
}

// Enqueued. `contribution(item, row, column)` gives one value; `grad` is bfloat16, (1, table rows,
// width), of any row stride.
template <typename Contribution>
absl::Status AddToTable(cudaStream_t stream, int64_t batch, const Tensor& index, const Tensor& grad,
                        const Contribution& contribution) {
  const absl::Status cleared = cuda::ClearRows(stream, grad);
  const int64_t flat_rows = batch * index.rows;
  if (!cleared.ok() || flat_rows == 0) return cleared;
  AddToTableKernel<<<static_cast<unsigned>(std::min(flat_rows, cuda::kMostBlocks)), 256, 0,
                     stream>>>(index.rows, flat_rows, grad.width, cuda::View<const int64_t>(index),
                               cuda::View<cuda::bf16>(grad), contribution);
  return LaunchStatus("provider table gradient");
}

}  // namespace plumbline::provider_cuda

#endif  // PLUMBLINE_KERNELS_PROVIDER_CUDA_TABLE_GRADIENT_CUH_
