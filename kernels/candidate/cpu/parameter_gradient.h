// Gradient of a vector parameter that every row uses: a float32 sum over the rows of
// all batch items, in a fixed tree, rounded once.
//
// Order: rows are numbered through the batch, item after item, and cut into runs of 32. A run's
// rows are added one after another from zero; the runs' sums are then added in a binary tree,
// neighbours first. The tree depends on the number of rows alone.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_PARAMETER_GRADIENT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_PARAMETER_GRADIENT_H_

#include <cstddef>
#include <cstdint>

#include "kernels/ops.h"

namespace plumbline::candidate {

constexpr int64_t kRowsPerRun = 32;

// The number of runs of `rows` rows; no row at all is one empty run.
constexpr int64_t RunCount(int64_t rows) {
  return rows == 0 ? 1 : (rows + kRowsPerRun - 1) / kRowsPerRun;
}

// Workspace for the runs' sums of a parameter of `width` values: RunCount(rows) rows of `width`
// floats.
constexpr size_t RunSumBytes(int64_t rows, int64_t width) {
  return static_cast<size_t>(RunCount(rows) * width) * sizeof(float);
}

// Adds the runs' sums in the tree, in place, and rounds the result into `grad` (1, 1, width), of
// type bfloat16 or float32.
void AddRuns(ThreadPool& threads, int64_t rows, float* run_sums, const Tensor& grad);

// The gradient of a bias: the sum over all rows and items of `values` (bfloat16 or float32).
// `run_sums` holds RunSumBytes(values.batch * values.rows, values.width) bytes.
void SumRows(ThreadPool& threads, const Tensor& values, float* run_sums, const Tensor& grad);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_PARAMETER_GRADIENT_H_
