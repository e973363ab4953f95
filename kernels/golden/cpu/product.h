// The matrix products of the linear operations, over rows whose batch items follow one another.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CPU_PRODUCT_H_
#define PLUMBLINE_KERNELS_GOLDEN_CPU_PRODUCT_H_

#include <cstdint>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/scratch.h"
#include "kernels/ops.h"

namespace plumbline::golden {

// Whether all items may be read as batch * rows rows with one stride.
inline bool IsFoldable(const Tensor& tensor) {
  return tensor.batch == 1 || tensor.batch_stride == tensor.rows * tensor.row_stride;
}

// `values`, (rows, width) doubles without gaps, as an operand.
inline GemmOperand DoubleOperand(const double* values, int64_t width) {
  return {values, DType::kF64, width, 1};
}

// Workspace of each function below that takes one.
inline size_t ProductBytes(const ExecutionContext& context) {
  return GemmWorkspaceBytes<double>(context.threads->num_threads());
}

// y = x W^T + bias, rounded once to float32. x(rows, K), W(N, K), bias(1, N) or null.
void Project(const GemmOperand& x, int64_t rows, const Tensor& weight, const Tensor& bias,
             const Tensor& output, ThreadPool& threads, absl::Span<uint8_t> workspace);

// The same kept in float64: `output` has rows * N values.
void Project(const GemmOperand& x, int64_t rows, const Tensor& weight, const Tensor& bias,
             double* output, ThreadPool& threads, absl::Span<uint8_t> workspace);

// dW(N, K) = dy^T x, rounded once to float32; dy(rows, N), x(rows, K). A null grad is left alone.
void WeightGradient(const GemmOperand& grad_output, const GemmOperand& x, int64_t rows,
                    const Tensor& grad, ThreadPool& threads, absl::Span<uint8_t> workspace);

}  // namespace plumbline::golden

#endif  // PLUMBLINE_KERNELS_GOLDEN_CPU_PRODUCT_H_
