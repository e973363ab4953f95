// The smallest ring of bulk copies, as the Hopper kernels have it: for tests of kernels/cuda/ptx/
// and as a control of tools that look for races.
#ifndef PLUMBLINE_KERNELS_CUDA_BULK_COPY_RING_H_
#define PLUMBLINE_KERNELS_CUDA_BULK_COPY_RING_H_

#include <cuda_runtime.h>

#include "absl/status/status.h"

namespace plumbline::cuda {

inline constexpr int kRingTileFloats = 128;

// to[i] = from[i] + from[128 + i] + ..., i < 128, tiles ascending, in float32. One thread brings
// tiles into two stages by LoadBytes(); a warp adds them up and gives each stage back. `from` has
// tiles x 128 floats, in device memory and aligned to 16 bytes. Needs RunsSm90Code(). Asynchronous
// on `stream`.
absl::Status AddTilesThroughRing(cudaStream_t stream, const float* from, int tiles, float* to);

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_BULK_COPY_RING_H_
