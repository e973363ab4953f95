// Conversion of one row between float32 and bfloat16: exact, or one rounding to nearest even.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_CONVERT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_CONVERT_H_

#include <cstdint>

#include "kernels/ops.h"

namespace plumbline::candidate {

// Row `from_row` of item `from_item` of `from` into row `to_row` of item `to_item` of `to`. Both
// are bfloat16 or float32, of equal width.
void ConvertRow(const Tensor& from, int64_t from_item, int64_t from_row, const Tensor& to,
                int64_t to_item, int64_t to_row);

// All rows of all items, into a tensor of the same shape.
void ConvertRows(ThreadPool& threads, const Tensor& from, const Tensor& to);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_CONVERT_H_
