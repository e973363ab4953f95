#ifndef PLUMBLINE_KERNELS_BENCH_CUDA_DIFFERENCE_BENCH_H_
#define PLUMBLINE_KERNELS_BENCH_CUDA_DIFFERENCE_BENCH_H_

#include "absl/status/status.h"

namespace plumbline {

// Times the comparison of a released block's float32 gradients on the first GPU, beside a copy of
// them, and prints a line each.
absl::Status RunDifferenceBench();

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_BENCH_CUDA_DIFFERENCE_BENCH_H_
