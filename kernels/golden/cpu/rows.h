// Loops over rows, and sums over rows in a fixed order, that several operations need.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CPU_ROWS_H_
#define PLUMBLINE_KERNELS_GOLDEN_CPU_ROWS_H_

#include <algorithm>
#include <cstdint>

#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/tensor.h"

namespace plumbline::golden {

// Rows that one thread takes at a time, and columns of a sum over rows.
constexpr int64_t kRowGrain = 16;
constexpr int64_t kColumnGrain = 64;

// Calls body(item, row) once for each row of each batch item, in any order.
template <typename Body>
void ForEachRow(ThreadPool& threads, int64_t batch, int64_t rows, const Body& body) {
  threads.ParallelFor(0, batch * rows, kRowGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i / rows, i % rows);
  });
}

// Workspace of SumRowsInto for a gradient of this shape: that of the table or parameter itself,
// since a plan asks before it knows which gradients are wanted.
inline size_t SumRowsBytes(const Tensor& shape) {
  return Scratch::Bytes<double>(shape.rows * shape.width);
}

// grad[slot(row)] = the sum of contribution(item, row) over the items and rows, one rounding.
//
// Order: from zero, float64, rows ascending, batch item after item. One thread sums a column from
// its first row to its last. Rows of grad that no slot names become zeros.
// slot(row): the row of `grad` that takes row `row`
// contribution(item, row, column): a double
// `sums` holds grad.rows * grad.width values; `grad` is float32, (1, rows, width), rows apart at
// will. A null `grad` is left alone.
template <typename Slot, typename Contribution>
void SumRowsInto(ThreadPool& threads, int64_t batch, int64_t rows, const Tensor& grad, double* sums,
                 Slot slot, Contribution contribution) {
  if (grad.IsNull()) return;
  threads.ParallelFor(0, grad.width, kColumnGrain, [&](int64_t first, int64_t last) {
    for (int64_t row = 0; row < grad.rows; ++row)
      std::fill(sums + row * grad.width + first, sums + row * grad.width + last, 0.0);
    for (int64_t item = 0; item < batch; ++item) {
      for (int64_t row = 0; row < rows; ++row) {
        double* const sum = sums + slot(row) * grad.width;
        for (int64_t column = first; column < last; ++column)
          sum[column] += contribution(item, row, column);
      }
    }
    for (int64_t row = 0; row < grad.rows; ++row) {
      for (int64_t column = first; column < last; ++column)
        grad.Row<float>(row)[column] = static_cast<float>(sums[row * grad.width + column]);
    }
  });
}

// The slot of a sum that has one row.
inline int64_t OnlyRow(int64_t) { return 0; }

}  // namespace plumbline::golden

#endif  // PLUMBLINE_KERNELS_GOLDEN_CPU_ROWS_H_
