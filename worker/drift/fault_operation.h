// What the faulty operations share. Internal to faults_*.cc.
#ifndef PLUMBLINE_WORKER_DRIFT_FAULT_OPERATION_H_
#define PLUMBLINE_WORKER_DRIFT_FAULT_OPERATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "kernels/device.h"
#include "kernels/ops.h"

namespace plumbline::drift {

// An operation that is right, for a fault to change a part of. The faults change what goes into
// it or comes out of it and use devices' conversions alone, so they run wherever it runs.
class FaultyOperation : public Operation {
 public:
  explicit FaultyOperation(std::shared_ptr<const Operation> base) : base_(std::move(base)) {}

  Precision precision() const override { return base_->precision(); }
  bool has_backward() const override { return base_->has_backward(); }
  bool only_fused() const override { return base_->only_fused(); }
  absl::Status Check(const ForwardCall& call) const override {
    if (base_->precision() != Precision::kMixed) {
      return absl::InvalidArgumentError("faults are put into mixed precision, not into float32");
    }
    return base_->Check(call);
  }
  size_t SavedBytes(const ForwardCall& call) const override { return base_->SavedBytes(call); }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return base_->ForwardWorkspaceBytes(call, context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return base_->BackwardWorkspaceBytes(call, context);
  }
  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    return base_->Forward(context, call);
  }
  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    return base_->Backward(context, call);
  }

 protected:
  const Operation& base() const { return *base_; }

 private:
  const std::shared_ptr<const Operation> base_;
};

// Places tensors in a workspace one behind another, 64-byte aligned; or, without memory, counts
// what they take.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(const ExecutionContext& context) : memory_(context.workspace) {}

  void* Bytes(size_t bytes) {
    void* const place = memory_.empty() ? nullptr : memory_.data() + used_;
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return place;
  }
  Tensor Dense(DType dtype, int64_t batch, int64_t rows, int64_t width) {
    Tensor tensor = Tensor::Dense(nullptr, dtype, batch, rows, width);
    tensor.data = Bytes(tensor.NumBytes());
    return tensor;
  }
  Tensor Like(const Tensor& tensor) {
    return Dense(tensor.dtype, tensor.batch, tensor.rows, tensor.width);
  }

  size_t used() const { return used_; }
  // `context` with what is left as its workspace.
  ExecutionContext Rest(ExecutionContext context) const {
    context.workspace = context.workspace.subspan(used_);
    return context;
  }

 private:
  static constexpr size_t kAlignment = 64;

  absl::Span<uint8_t> memory_;
  size_t used_ = 0;
};

// Rows [first, first + count) of every batch item.
inline Tensor RowsOf(const Tensor& tensor, int64_t first, int64_t count) {
  Tensor view = tensor;
  view.rows = count;
  if (view.data != nullptr) {
    view.data = static_cast<char*>(view.data) +
                first * tensor.row_stride * static_cast<int64_t>(DTypeSize(tensor.dtype));
  }
  return view;
}

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_FAULT_OPERATION_H_
