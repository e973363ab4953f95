#include "kernels/candidate/cpu/convert.h"

#include <cstring>

#include "absl/types/span.h"
#include "kernels/candidate/cpu/parallel.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::candidate {

void ConvertRow(const Tensor& from, int64_t from_item, int64_t from_row, const Tensor& to,
                int64_t to_item, int64_t to_row) {
  const size_t width = static_cast<size_t>(from.width);
  if (from.dtype == to.dtype) {
    if (from.dtype == DType::kBF16) {
      std::memcpy(to.Row<bfloat16>(to_row, to_item), from.Row<bfloat16>(from_row, from_item),
                  width * sizeof(bfloat16));
    } else {
      std::memcpy(to.Row<float>(to_row, to_item), from.Row<float>(from_row, from_item),
                  width * sizeof(float));
    }
  } else if (from.dtype == DType::kBF16) {
    WidenBf16(absl::MakeConstSpan(from.Row<bfloat16>(from_row, from_item), width),
              to.Row<float>(to_row, to_item));
  } else {
    RoundToBf16(absl::MakeConstSpan(from.Row<float>(from_row, from_item), width),
                to.Row<bfloat16>(to_row, to_item));
  }
}

void ConvertRows(ThreadPool& threads, const Tensor& from, const Tensor& to) {
  ParallelRows(threads, from.batch, from.rows,
               [&](int64_t item, int64_t row) { ConvertRow(from, item, row, to, item, row); });
}

}  // namespace plumbline::candidate
