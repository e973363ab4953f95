// Gradient of a vector parameter that every row uses: a float32 sum over the rows of all batch
// items, in a fixed tree, rounded once. The tree is that of the candidate on a CPU.
//
// Order: rows are numbered through the batch, item after item, and cut into runs of 32. A run's
// rows are added one after another from zero; the runs' sums are then added in a binary tree,
// neighbours first. The tree depends on the number of rows alone.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_PARAMETER_GRADIENT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_PARAMETER_GRADIENT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/tensor.h"

namespace plumbline::candidate_cuda {

constexpr int64_t kRowsPerRun = 32;

// The number of runs of `rows` rows; no row at all is one empty run.
constexpr int64_t RunCount(int64_t rows) {
  return rows == 0 ? 1 : (rows + kRowsPerRun - 1) / kRowsPerRun;
}

// Adds the runs' sums, RunCount(rows) rows of grad.width floats, in the tree, in place, and rounds
// the result into `grad` (1, 1, width), of type bfloat16 or float32.
absl::Status AddRuns(cudaStream_t stream, int64_t rows, float* run_sums, const Tensor& grad);

// The gradient of a bias: the sum over all rows and items of `values` (bfloat16 or float32).
// `run_sums` holds RunCount(values.batch * values.rows) * values.width floats.
absl::Status SumRows(cudaStream_t stream, const Tensor& values, float* run_sums,
                     const Tensor& grad);

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_PARAMETER_GRADIENT_H_
