// Gradient of a table whose rows were gathered by an index:
//   grad[index[row]] = round(sum over (item, row) of contribution(item, row))
// Order: a float32 sum from zero over the rows in order, batch item after item; rounded to bfloat16
// once. One thread sums a column from the first row to the last, so the order does not depend on
// how many threads there are. Rows that no index names become zeros.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_TABLE_GRADIENT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_TABLE_GRADIENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/candidate/cpu/parallel.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/tensor.h"

namespace plumbline::candidate {

// Columns that one thread takes at a time.
constexpr int64_t kTableColumns = 64;

// Workspace for the sums of one table.
inline size_t TableGradientBytes(const Tensor& table) {
  return static_cast<size_t>(table.rows * table.width) * sizeof(float);
}

// `contribution(item, row, first_column, columns, values)` writes a row's values of at most
// kTableColumns columns, widened. `grad` is bfloat16, (1, table rows, width), of any row stride.
// `sums` holds TableGradientBytes(grad) bytes.
template <typename Contribution>
void SumIntoTable(ThreadPool& threads, int64_t batch, const Tensor& index, const Tensor& grad,
                  float* sums, Contribution contribution) {
  threads.ParallelFor(0, grad.width, kTableColumns, [&](int64_t begin, int64_t end) {
    const int64_t columns = end - begin;
    for (int64_t row = 0; row < grad.rows; ++row) {
      std::fill_n(sums + row * grad.width + begin, columns, 0.0f);
    }
    alignas(64) float values[kTableColumns];
    for (int64_t item = 0; item < batch; ++item) {
      for (int64_t row = 0; row < index.rows; ++row) {
        contribution(item, row, begin, columns, values);
        float* sum = sums + *index.Row<int64_t>(row) * grad.width + begin;
        for (int64_t i = 0; i < columns; ++i) sum[i] += values[i];
      }
    }
    for (int64_t row = 0; row < grad.rows; ++row) {
      RoundToBf16(absl::MakeConstSpan(sums + row * grad.width + begin, columns),
                  grad.Row<bfloat16>(row) + begin);
    }
  });
}

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_TABLE_GRADIENT_H_
