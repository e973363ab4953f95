#ifndef PLUMBLINE_KERNELS_BENCH_CUDA_LOADING_BENCH_H_
#define PLUMBLINE_KERNELS_BENCH_CUDA_LOADING_BENCH_H_

#include "absl/status/status.h"

namespace plumbline {

// Times the loading of a released block's weights from the host's memory to the first GPU, alone
// and beside work on the device's stream, and prints a line each.
absl::Status RunLoadingBench();

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_BENCH_CUDA_LOADING_BENCH_H_
