#ifndef PLUMBLINE_KERNELS_BENCH_CUDA_TIMING_H_
#define PLUMBLINE_KERNELS_BENCH_CUDA_TIMING_H_

#include <cuda_runtime_api.h>

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plumbline {

struct Timing {
  float median_ms = 0;
  float least_ms = 0;
  float most_ms = 0;
};

// Times what `enqueue(run)` puts on the stream, run = 0, 1, ..., by events: two runs to warm up,
// then 3 to 20, until they took 400 ms.
absl::StatusOr<Timing> TimeOnStream(cudaStream_t stream,
                                    const std::function<absl::Status(int run)>& enqueue);

// Whether two buffers on the current device have the same bytes, a multiple of 4.
absl::StatusOr<bool> SameBytesOnDevice(cudaStream_t stream, const void* a, const void* b,
                                       size_t bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_BENCH_CUDA_TIMING_H_
