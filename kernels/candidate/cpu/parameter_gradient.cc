#include "kernels/candidate/cpu/parameter_gradient.h"

#include <algorithm>

#include "kernels/candidate/cpu/parallel.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::candidate {
namespace {

// Columns that one thread takes at a time.
constexpr int64_t kColumns = 256;

template <typename T>
void AddRow(const T* row, int64_t width, float* sum) {
  for (int64_t i = 0; i < width; ++i) {
    if constexpr (sizeof(T) == sizeof(bfloat16)) {
      sum[i] += WidenBf16(row[i]);
    } else {
      sum[i] += row[i];
    }
  }
}

}  // namespace

void AddRuns(ThreadPool& threads, int64_t rows, float* run_sums, const Tensor& grad) {
  const int64_t runs = RunCount(rows);
  const int64_t width = grad.width;
  threads.ParallelFor(0, width, kColumns, [&](int64_t begin, int64_t end) {
    if (rows == 0) std::fill(run_sums + begin, run_sums + end, 0.0f);
    for (int64_t distance = 1; distance < runs; distance *= 2) {
      for (int64_t run = 0; run + distance < runs; run += 2 * distance) {
        float* sum = run_sums + run * width;
        const float* other = run_sums + (run + distance) * width;
        for (int64_t i = begin; i < end; ++i) sum[i] += other[i];
      }
    }
    if (grad.dtype == DType::kBF16) {
      RoundToBf16(absl::MakeConstSpan(run_sums + begin, end - begin),
                  grad.Row<bfloat16>(0) + begin);
    } else {
      std::copy(run_sums + begin, run_sums + end, grad.Row<float>(0) + begin);
    }
  });
}

void SumRows(ThreadPool& threads, const Tensor& values, float* run_sums, const Tensor& grad) {
  const int64_t rows = values.batch * values.rows;
  threads.ParallelFor(0, rows, kRowsPerRun, [&](int64_t begin, int64_t end) {
    float* sum = run_sums + begin / kRowsPerRun * values.width;
    std::fill_n(sum, values.width, 0.0f);
    for (int64_t row = begin; row < end; ++row) {
      const int64_t item = row / values.rows;
      const int64_t item_row = row % values.rows;
      if (values.dtype == DType::kBF16) {
        AddRow(values.Row<bfloat16>(item_row, item), values.width, sum);
      } else {
        AddRow(values.Row<float>(item_row, item), values.width, sum);
      }
    }
  });
  AddRuns(threads, rows, run_sums, grad);
}

}  // namespace plumbline::candidate
