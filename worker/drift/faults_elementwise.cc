// Faults of swiglu, the AdaLN projection and the modulated norms.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/status.h"
#include "worker/drift/fault_operation.h"
#include "worker/drift/fault_operations.h"

namespace plumbline::drift {
namespace {

absl::Status SwapHalves(const ExecutionContext& context, const Tensor& from, const Tensor& to) {
  const int64_t half = from.width / 2;
  PLUMBLINE_RETURN_IF_ERROR(
      context.device->Convert(context, from.Columns(0, half), to.Columns(half, half)));
  return context.device->Convert(context, from.Columns(half, half), to.Columns(0, half));
}

class SwappedSwiGlu final : public FaultyOperation {
 public:
  using FaultyOperation::FaultyOperation;

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    Scratch scratch;
    scratch.Like(call.inputs[0]);
    return scratch.used() + base().ForwardWorkspaceBytes(call, context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    Scratch scratch;
    scratch.Like(call.inputs[0]);
    scratch.Like(call.inputs[0]);
    return scratch.used() + base().BackwardWorkspaceBytes(call, context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Scratch scratch(context);
    const Tensor swapped = scratch.Like(call.inputs[0]);
    PLUMBLINE_RETURN_IF_ERROR(SwapHalves(context, call.inputs[0], swapped));
    ForwardCall faulty = call;
    faulty.inputs = absl::MakeConstSpan(&swapped, 1);
    return base().Forward(scratch.Rest(context), faulty);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    Scratch scratch(context);
    const Tensor swapped = scratch.Like(call.inputs[0]);
    const Tensor gradient = scratch.Like(call.inputs[0]);
    PLUMBLINE_RETURN_IF_ERROR(SwapHalves(context, call.inputs[0], swapped));
    BackwardCall faulty = call;
    faulty.inputs = absl::MakeConstSpan(&swapped, 1);
    faulty.grad_inputs = absl::MakeConstSpan(&gradient, 1);
    PLUMBLINE_RETURN_IF_ERROR(base().Backward(scratch.Rest(context), faulty));
    return SwapHalves(context, gradient, call.grad_inputs[0]);
  }
};

class RoundedAdaln final : public FaultyOperation {
 public:
  using FaultyOperation::FaultyOperation;

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return RoundedBytes(call.inputs[0]) + base().ForwardWorkspaceBytes(call, context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    return RoundedBytes(call.inputs[0]) + base().BackwardWorkspaceBytes(call, context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Scratch scratch(context);
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor rounded, Round(context, call.inputs[0], &scratch));
    ForwardCall faulty = call;
    faulty.inputs = absl::MakeConstSpan(&rounded, 1);
    return base().Forward(scratch.Rest(context), faulty);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    Scratch scratch(context);
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor rounded, Round(context, call.inputs[0], &scratch));
    BackwardCall faulty = call;
    faulty.inputs = absl::MakeConstSpan(&rounded, 1);
    return base().Backward(scratch.Rest(context), faulty);
  }

 private:
  static size_t RoundedBytes(const Tensor& temb) {
    Scratch scratch;
    scratch.Dense(DType::kBF16, temb.batch, temb.rows, temb.width);
    scratch.Like(temb);
    return scratch.used();
  }

  static absl::StatusOr<Tensor> Round(const ExecutionContext& context, const Tensor& temb,
                                      Scratch* scratch) {
    const Tensor narrow = scratch->Dense(DType::kBF16, temb.batch, temb.rows, temb.width);
    const Tensor rounded = scratch->Like(temb);
    PLUMBLINE_RETURN_IF_ERROR(context.device->Convert(context, temb, narrow));
    PLUMBLINE_RETURN_IF_ERROR(context.device->Convert(context, narrow, rounded));
    return rounded;
  }
};

class Float32Norm final : public FaultyOperation {
 public:
  Float32Norm(SharedOperation base, SharedOperation golden)
      : FaultyOperation(std::move(base)), golden_(std::move(golden)) {}

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    Scratch scratch;
    const Wide wide(call, &scratch);
    return std::max(base().ForwardWorkspaceBytes(call, context),
                    scratch.used() + golden_->ForwardWorkspaceBytes(wide.call, context));
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    // What the backward, which stays right, wants saved.
    PLUMBLINE_RETURN_IF_ERROR(base().Forward(context, call));
    Scratch scratch(context);
    const Wide wide(call, &scratch);
    for (size_t i = 0; i < 3; ++i) {
      PLUMBLINE_RETURN_IF_ERROR(context.device->Convert(context, call.inputs[i], wide.inputs[i]));
    }
    PLUMBLINE_RETURN_IF_ERROR(golden_->Forward(scratch.Rest(context), wide.call));
    return context.device->Convert(context, wide.call.output, call.output);
  }

 private:
  // x, scale, shift and the output in float32; index and weight as they are.
  struct Wide {
    Wide(const ForwardCall& from, Scratch* scratch) : call(from) {
      for (size_t i = 0; i < 3; ++i) inputs[i] = Float(from.inputs[i], scratch);
      inputs[3] = from.inputs[3];
      call.inputs = inputs;
      call.output = Float(from.output, scratch);
      call.saved = nullptr;
    }
    Wide(const Wide&) = delete;
    Wide& operator=(const Wide&) = delete;

    static Tensor Float(const Tensor& like, Scratch* scratch) {
      return scratch->Dense(DType::kF32, like.batch, like.rows, like.width);
    }

    std::array<Tensor, 4> inputs;
    ForwardCall call;
  };

  const SharedOperation golden_;
};

}  // namespace

SharedOperation MakeSwappedSwiGlu(SharedOperation base) {
  return std::make_shared<SwappedSwiGlu>(std::move(base));
}

SharedOperation MakeRoundedAdaln(SharedOperation base) {
  return std::make_shared<RoundedAdaln>(std::move(base));
}

SharedOperation MakeFloat32Norm(SharedOperation base, SharedOperation golden) {
  return std::make_shared<Float32Norm>(std::move(base), std::move(golden));
}

}  // namespace plumbline::drift
