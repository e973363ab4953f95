// Gradients of tables whose rows were gathered by an index, as PyTorch's index_select backward adds
// them: in bfloat16, every addition rounded, into zeros. On a GPU the order is that of its atomics;
// here it is the order of the rows, batch item after item. The loss of precision that grows with
// the rows is the provider's own, and kept on purpose.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_TABLE_GRADIENT_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_TABLE_GRADIENT_H_

#include <cstdint>

#include "common/dtype.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/tensor.h"

namespace plumbline::provider {

// Columns that one thread adds up from the first row to the last.
constexpr int64_t kTableColumnRun = 64;

// The table row that a flat row (item * rows + row) of the gathering operation reads.
inline int64_t TableRow(const Tensor& index, int64_t flat_row) {
  return *index.Row<int64_t>(flat_row % index.rows);
}

inline void ZeroColumns(const Tensor& table, int64_t first, int64_t count) {
  for (int64_t row = 0; row < table.rows; ++row) {
    bfloat16* const to = table.Row<bfloat16>(row) + first;
    for (int64_t i = 0; i < count; ++i) to[i] = bfloat16();
  }
}

inline void AddInBf16(float contribution, bfloat16* sum) {
  *sum = RoundToBf16(WidenBf16(*sum) + RoundThroughBf16(contribution));
}

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_TABLE_GRADIENT_H_
