// The order and the roundings of the gather backward, bit for bit, into a strided view.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "absl/types/span.h"
#include "kernels/device.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 150;
constexpr int64_t kWidth = 70;
constexpr int64_t kTableRows = 4;

HostTensor Synthetic(const std::string& name, int64_t batch, int64_t rows, int64_t width) {
  HostTensor tensor(DType::kBF16, batch, rows, width);
  const size_t size = static_cast<size_t>(tensor.view().NumElements());
  FillSynthetic(name, 0, {1.0, 0.0}, 0,
                absl::MakeSpan(static_cast<bfloat16*>(tensor.view().data), size));
  return tensor;
}

TEST(TableGradientTest, AddsInBfloat16InTheOrderOfTheRows) {
  const HostTensor x = Synthetic("x", kBatch, kRows, kWidth);
  const HostTensor branch = Synthetic("branch", kBatch, kRows, kWidth);
  const HostTensor gate = Synthetic("gate", 1, kTableRows, kWidth);
  const HostTensor grad = Synthetic("grad", kBatch, kRows, kWidth);
  const HostTensor output = Synthetic("output", kBatch, kRows, kWidth);
  HostTensor index(DType::kI64, 1, kRows, 1);
  for (int64_t row = 0; row < kRows; ++row)
    *index.view().Row<int64_t>(row) = row * 7 % 3;  // never 3

  // NaN bytes until something is written; the columns on either side must stay so.
  const HostTensor grad_table(DType::kBF16, 1, kTableRows, 3 * kWidth);
  const Tensor inputs[] = {x.view(), branch.view(), gate.view(), index.view()};
  const Tensor grads[] = {Tensor(), Tensor(), grad_table.view().Columns(kWidth, kWidth), Tensor()};
  BackwardCall call;
  call.inputs = inputs;
  call.output = output.view();
  call.grad_output = grad.view();
  call.grad_inputs = grads;
  std::unique_ptr<Device> device = MakeCpuDevice(2, 1 << 20).value();
  ASSERT_TRUE(MakeGatedResidual()->Backward(device->Context(), call).ok());

  const HostTensor expected(DType::kBF16, 1, kTableRows, 3 * kWidth);
  for (int64_t column = 0; column < kWidth; ++column) {
    float sums[kTableRows] = {};
    for (int64_t item = 0; item < kBatch; ++item) {
      for (int64_t row = 0; row < kRows; ++row) {
        const float product =
            RoundThroughBf16(WidenBf16(grad.view().Row<bfloat16>(row, item)[column]) *
                             WidenBf16(branch.view().Row<bfloat16>(row, item)[column]));
        float& sum = sums[row * 7 % 3];
        sum = RoundThroughBf16(sum + product);
      }
    }
    for (int64_t row = 0; row < kTableRows; ++row)
      expected.view().Row<bfloat16>(row)[kWidth + column] = RoundToBf16(sums[row]);
  }
  EXPECT_TRUE(BitwiseEqual(expected.view(), grad_table.view()));
}

}  // namespace
}  // namespace plumbline::provider
