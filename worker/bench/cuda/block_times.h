#ifndef PLUMBLINE_WORKER_BENCH_CUDA_BLOCK_TIMES_H_
#define PLUMBLINE_WORKER_BENCH_CUDA_BLOCK_TIMES_H_

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace plumbline {

// Prints what a block of the released model takes on the first GPU under `composition`, as the
// executor runs it: forward alone, and forward and backward, at several numbers of rows; the median
// of untapped executions, and the fastest and slowest. Weights and inputs are synthetic. Adds
// "blocks" to the object `results`. NOT_FOUND where there is no GPU.
absl::Status BenchBlocks(const std::string& composition, nlohmann::json& results);

}  // namespace plumbline

#endif  // PLUMBLINE_WORKER_BENCH_CUDA_BLOCK_TIMES_H_
