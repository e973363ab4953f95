#include "kernels/golden/cpu/product.h"

#include "kernels/cpu/rounding.h"

namespace plumbline::golden {
namespace {

// Hands each element of x W^T + bias to store(row, column, value).
template <typename Store>
void ProjectTo(const GemmOperand& x, int64_t rows, const Tensor& weight, const Tensor& bias,
               ThreadPool& threads, absl::Span<uint8_t> workspace, Store store) {
  Gemm<double>(
      {rows, weight.rows, weight.width}, x, GemmOperand::Of(weight).Transposed(),
      [&](int64_t row, int64_t column, int64_t count, const double* values) {
        for (int64_t i = 0; i < count; ++i) {
          const double b = bias.IsNull() ? 0.0 : LoadValue(bias, 0, 0, column + i);
          store(row, column + i, values[i] + b);
        }
      },
      workspace, threads);
}

}  // namespace

void Project(const GemmOperand& x, int64_t rows, const Tensor& weight, const Tensor& bias,
             const Tensor& output, ThreadPool& threads, absl::Span<uint8_t> workspace) {
  ProjectTo(
      x, rows, weight, bias, threads, workspace, [&](int64_t row, int64_t column, double value) {
        output.Row<float>(row % output.rows, row / output.rows)[column] = static_cast<float>(value);
      });
}

void Project(const GemmOperand& x, int64_t rows, const Tensor& weight, const Tensor& bias,
             double* output, ThreadPool& threads, absl::Span<uint8_t> workspace) {
  ProjectTo(x, rows, weight, bias, threads, workspace,
            [&](int64_t row, int64_t column, double value) {
              output[row * weight.rows + column] = value;
            });
}

void WeightGradient(const GemmOperand& grad_output, const GemmOperand& x, int64_t rows,
                    const Tensor& grad, ThreadPool& threads, absl::Span<uint8_t> workspace) {
  if (grad.IsNull()) return;
  Gemm<double>(
      {grad.rows, grad.width, rows}, grad_output.Transposed(), x,
      [&](int64_t row, int64_t column, int64_t count, const double* values) {
        float* const to = grad.Row<float>(row) + column;
        for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(values[i]);
      },
      workspace, threads);
}

}  // namespace plumbline::golden
