// rope-128: every channel of a head is rotated.
#include <array>
#include <utility>

#include "common/status.h"
#include "worker/drift/fault_operation.h"
#include "worker/drift/fault_operations.h"

namespace plumbline::drift {
namespace {

// A head of D channels becomes one of 6 F >= D, F = ceil(D / 6): its halves lie at the beginnings
// of the padded head's halves, so that channel j turns with channel j + D / 2.
struct PaddedHeads {
  explicit PaddedHeads(const Attributes& attributes, int64_t width)
      : head(attributes.head_width),
        padded(6 * ((head + 5) / 6)),
        heads(width / head),
        attributes(attributes) {
    this->attributes.head_width = padded;
    this->attributes.rotary_frequencies = padded / 6;
  }

  Tensor Place(const Tensor& like, Scratch* scratch) const {
    return scratch->Dense(like.dtype, like.batch, like.rows, heads * padded);
  }

  absl::Status Pad(const ExecutionContext& context, const Tensor& from, const Tensor& to) const {
    return ForEachHalf([&](int64_t column, int64_t padded_column) {
      return context.device->Convert(context, from.Columns(column, head / 2),
                                     to.Columns(padded_column, head / 2));
    });
  }
  absl::Status Unpad(const ExecutionContext& context, const Tensor& from, const Tensor& to) const {
    return ForEachHalf([&](int64_t column, int64_t padded_column) {
      return context.device->Convert(context, from.Columns(padded_column, head / 2),
                                     to.Columns(column, head / 2));
    });
  }

  template <typename Copy>
  absl::Status ForEachHalf(Copy copy) const {
    for (int64_t half = 0; half < 2 * heads; ++half) {
      PLUMBLINE_RETURN_IF_ERROR(copy(half * (head / 2), half * (padded / 2)));
    }
    return absl::OkStatus();
  }

  int64_t head;
  int64_t padded;
  int64_t heads;
  Attributes attributes;
};

class FullRope final : public FaultyOperation {
 public:
  using FaultyOperation::FaultyOperation;

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(FaultyOperation::Check(call));
    if (call.attributes.head_width % 2 != 0) {
      return absl::InvalidArgumentError("a head must have an even number of channels");
    }
    Scratch scratch;
    const Padded padded(call, &scratch);
    return base().Check(padded.call);
  }
  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    Scratch scratch;
    const Padded padded(call, &scratch);
    return scratch.used() + base().ForwardWorkspaceBytes(padded.call, context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    Scratch scratch;
    const PaddedBackward padded(call, &scratch);
    return scratch.used() + base().BackwardWorkspaceBytes(padded.call, context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    Scratch scratch(context);
    const Padded padded(call, &scratch);
    PLUMBLINE_RETURN_IF_ERROR(padded.heads.Pad(context, call.inputs[0], padded.inputs[0]));
    PLUMBLINE_RETURN_IF_ERROR(base().Forward(scratch.Rest(context), padded.call));
    return padded.heads.Unpad(context, padded.call.output, call.output);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    if (call.grad_inputs[0].IsNull()) return absl::OkStatus();
    Scratch scratch(context);
    const PaddedBackward padded(call, &scratch);
    PLUMBLINE_RETURN_IF_ERROR(padded.heads.Pad(context, call.inputs[0], padded.inputs[0]));
    PLUMBLINE_RETURN_IF_ERROR(padded.heads.Pad(context, call.output, padded.call.output));
    PLUMBLINE_RETURN_IF_ERROR(padded.heads.Pad(context, call.grad_output, padded.call.grad_output));
    PLUMBLINE_RETURN_IF_ERROR(base().Backward(scratch.Rest(context), padded.call));
    return padded.heads.Unpad(context, padded.grad_inputs[0], call.grad_inputs[0]);
  }

 private:
  // A call on padded heads, its tensors in scratch.
  struct Padded {
    Padded(const ForwardCall& from, Scratch* scratch)
        : heads(from.attributes, from.inputs[0].width), call(from) {
      inputs = {heads.Place(from.inputs[0], scratch), from.inputs[1]};
      call.inputs = inputs;
      call.attributes = heads.attributes;
      call.output = heads.Place(from.output, scratch);
    }
    Padded(const Padded&) = delete;
    Padded& operator=(const Padded&) = delete;

    PaddedHeads heads;
    std::array<Tensor, 2> inputs;
    ForwardCall call;
  };

  struct PaddedBackward {
    PaddedBackward(const BackwardCall& from, Scratch* scratch)
        : heads(from.attributes, from.inputs[0].width), call(from) {
      inputs = {heads.Place(from.inputs[0], scratch), from.inputs[1]};
      grad_inputs = {heads.Place(from.inputs[0], scratch), Tensor()};
      call.inputs = inputs;
      call.attributes = heads.attributes;
      call.output = heads.Place(from.output, scratch);
      call.grad_output = heads.Place(from.grad_output, scratch);
      call.grad_inputs = grad_inputs;
    }
    PaddedBackward(const PaddedBackward&) = delete;
    PaddedBackward& operator=(const PaddedBackward&) = delete;

    PaddedHeads heads;
    std::array<Tensor, 2> inputs;
    std::array<Tensor, 2> grad_inputs;
    BackwardCall call;
  };
};

}  // namespace

SharedOperation MakeFullRope(SharedOperation base) {
  return std::make_shared<FullRope>(std::move(base));
}

}  // namespace plumbline::drift
