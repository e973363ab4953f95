// Kernels that compute each value of a tensor from values at the same place.
#ifndef PLUMBLINE_KERNELS_CUDA_FOR_EACH_RUN_CUH_
#define PLUMBLINE_KERNELS_CUDA_FOR_EACH_RUN_CUH_

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/cuda_status.h"

namespace plumbline::cuda {

// Values that a thread takes at once where everything is aligned: 16 bytes of bfloat16.
inline constexpr int kRun = 8;
inline constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;

template <int kCount, typename Body>
__global__ void __launch_bounds__(256)
    ForEachRunKernel(int64_t rows, int64_t flat_rows, int64_t width, Body body) {
  for (int64_t flat = blockIdx.x; flat < flat_rows; flat += gridDim.x) {
    const int64_t item = flat / rows;
    const int64_t row = flat - item * rows;
    for (int64_t column = threadIdx.x * kCount; column < width; column += blockDim.x * kCount) {
      body.template Apply<kCount>(item, row, column);
    }
  }
}

// Calls body.Apply<kCount>(item, row, column) once for the kCount values from `column` on of every
// row: kRun at a time where `aligned`, else one. `name` stands in errors.
template <typename Body>
absl::Status ForEachRun(cudaStream_t stream, int64_t batch, int64_t rows, int64_t width,
                        bool aligned, const Body& body, const char* name) {
  const int64_t flat_rows = batch * rows;
  if (flat_rows == 0 || width == 0) return absl::OkStatus();
  const int64_t runs = aligned ? width / kRun : width;
  const int threads = static_cast<int>(std::min<int64_t>(256, (runs + 31) / 32 * 32));
  const unsigned blocks = static_cast<unsigned>(std::min(flat_rows, kMostBlocks));
  if (aligned) {
    ForEachRunKernel<kRun><<<blocks, threads, 0, stream>>>(rows, flat_rows, width, body);
  } else {
    ForEachRunKernel<1><<<blocks, threads, 0, stream>>>(rows, flat_rows, width, body);
  }
  return LaunchStatus(name);
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_FOR_EACH_RUN_CUH_
