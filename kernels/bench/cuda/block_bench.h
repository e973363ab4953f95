#ifndef PLUMBLINE_KERNELS_BENCH_CUDA_BLOCK_BENCH_H_
#define PLUMBLINE_KERNELS_BENCH_CUDA_BLOCK_BENCH_H_

#include <string>

#include "absl/status/status.h"

namespace plumbline {

// Times every operation of a block of `implementation` at the released widths, forward and
// backward, on the first GPU, and prints a line each: median of several runs by CUDA's events, in
// ms, and what it makes in TFLOP/s (products, attention) or GB/s (of what must be read and written
// once). Inputs are random; runs rotate through copies of them until these exceed the second-level
// cache.
absl::Status RunCudaBench(const std::string& implementation);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_BENCH_CUDA_BLOCK_BENCH_H_
