// Faults of the matrix products: a reduction that is cut by the number of rows, and a gradient that
// never comes.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/status.h"
#include "worker/drift/fault_operation.h"
#include "worker/drift/fault_operations.h"

namespace plumbline::drift {
namespace {

int64_t FloorLog2(int64_t value) {
  int64_t result = 0;
  while (value >>= 1) ++result;
  return result;
}

class SplitByRows final : public FaultyOperation {
 public:
  SplitByRows(SharedOperation base, SharedOperation add)
      : FaultyOperation(std::move(base)), add_(std::move(add)) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(FaultyOperation::Check(call));
    if (call.parameters.size() != 1) {
      return absl::InvalidArgumentError("only a product without a bias can be split");
    }
    return absl::OkStatus();
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    Scratch scratch;
    scratch.Like(call.output);
    return scratch.used() + base().ForwardWorkspaceBytes(call, context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& x = call.inputs[0];
    const int64_t parts = 1 + FloorLog2(x.batch * x.rows) % 3;
    Scratch scratch(context);
    const Tensor rounded = scratch.Like(call.output);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t begin = x.width * part / parts, end = x.width * (part + 1) / parts;
      const Tensor input = x.Columns(begin, end - begin);
      const Tensor weight = call.parameters[0].Columns(begin, end - begin);
      ForwardCall product = call;
      product.inputs = absl::MakeConstSpan(&input, 1);
      product.parameters = absl::MakeConstSpan(&weight, 1);
      product.output = part == 0 ? call.output : rounded;
      PLUMBLINE_RETURN_IF_ERROR(base().Forward(scratch.Rest(context), product));
      if (part == 0) continue;
      const Tensor terms[] = {call.output, rounded};
      ForwardCall sum;
      sum.inputs = terms;
      sum.output = call.output;
      PLUMBLINE_RETURN_IF_ERROR(add_->Forward(scratch.Rest(context), sum));
    }
    return absl::OkStatus();
  }

 private:
  const SharedOperation add_;
};

class ZeroWeightGradient final : public FaultyOperation {
 public:
  ZeroWeightGradient(SharedOperation base, std::shared_ptr<const ZeroRow> zeros)
      : FaultyOperation(std::move(base)), zeros_(std::move(zeros)) {}

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gradient = call.grad_parameters[0];
    std::vector<Tensor> wanted(call.grad_parameters.begin(), call.grad_parameters.end());
    wanted[0].data = nullptr;
    BackwardCall right = call;
    right.grad_parameters = wanted;
    PLUMBLINE_RETURN_IF_ERROR(base().Backward(context, right));
    if (gradient.IsNull()) return absl::OkStatus();
    return context.device->Convert(context, zeros_->Like(gradient), gradient);
  }

 private:
  const std::shared_ptr<const ZeroRow> zeros_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const ZeroRow>> ZeroRow::Make(Device& device, DType dtype,
                                                             int64_t width) {
  const Tensor row = Tensor::Dense(nullptr, dtype, 1, 1, width);
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer buffer, device.Allocate(row.NumBytes()));
  const std::vector<char> zeros(row.NumBytes());
  Tensor to = row;
  to.data = buffer.data();
  PLUMBLINE_RETURN_IF_ERROR(device.CopyToDevice(zeros.data(), to));
  return std::shared_ptr<const ZeroRow>(new ZeroRow(std::move(buffer), dtype));
}

Tensor ZeroRow::Like(const Tensor& like) const {
  return {buffer_.data(), dtype_, 1, like.rows, like.width, 0, 0};
}

SharedOperation MakeZeroWeightGradient(SharedOperation base, std::shared_ptr<const ZeroRow> zeros) {
  return std::make_shared<ZeroWeightGradient>(std::move(base), std::move(zeros));
}

SharedOperation MakeSplitByRows(SharedOperation base, SharedOperation add) {
  return std::make_shared<SplitByRows>(std::move(base), std::move(add));
}

}  // namespace plumbline::drift
