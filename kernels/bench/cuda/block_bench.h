// Times of a block's operations on a GPU, each alone, at the released size.
#ifndef PLUMBLINE_KERNELS_BENCH_CUDA_BLOCK_BENCH_H_
#define PLUMBLINE_KERNELS_BENCH_CUDA_BLOCK_BENCH_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace plumbline {

// Prints what each of `implementation`'s operations takes, forward and backward, at several numbers
// of rows: the median, and the fastest and slowest run. Inputs are random, and rotate so that the
// second-level cache does not hold them; a forward is repeated first, and its bytes compared. Adds
// "device_class", "implementation", "copy_gb_s" and "nodes" to the object `results`. NOT_FOUND
// where there is no GPU.
absl::Status BenchNodes(const std::string& implementation, nlohmann::json& results);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_BENCH_CUDA_BLOCK_BENCH_H_
