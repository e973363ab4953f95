// last-keys: attention drops the last eighth of the keys.
//
// An attention takes as many queries as keys. K >= R / 2 keys are left of R, so two calls with
// those K keys cover all queries: rows [0, K), and rows [R - K, R), which overlap the first. A
// query's result depends on its own row and on all keys alone, so the overlap agrees.
#include <algorithm>
#include <array>
#include <utility>

#include "common/status.h"
#include "worker/drift/fault_operation.h"
#include "worker/drift/fault_operations.h"

namespace plumbline::drift {
namespace {

struct Split {
  // The only key of a single row stays.
  explicit Split(int64_t rows)
      : dropped(rows < 2 ? 0 : std::max<int64_t>(1, rows / 8)), kept(rows - dropped) {}

  int64_t dropped;  // also the first row of the second call's queries
  int64_t kept;
};

Tensor Part(const Tensor& tensor, int64_t first, int64_t count) {
  return tensor.IsNull() ? tensor : RowsOf(tensor, first, count);
}

// The call on `kept` queries from row `first` on.
struct ForwardPart {
  ForwardPart(const ForwardCall& from, const Split& split, int64_t first) : call(from) {
    inputs = {RowsOf(from.inputs[0], first, split.kept), RowsOf(from.inputs[1], 0, split.kept),
              RowsOf(from.inputs[2], 0, split.kept)};
    call.inputs = inputs;
    call.output = RowsOf(from.output, first, split.kept);
  }
  ForwardPart(const ForwardPart&) = delete;
  ForwardPart& operator=(const ForwardPart&) = delete;

  std::array<Tensor, 3> inputs;
  ForwardCall call;
};

struct BackwardPart {
  BackwardPart(const BackwardCall& from, const Split& split, int64_t first) : call(from) {
    inputs = {RowsOf(from.inputs[0], first, split.kept), RowsOf(from.inputs[1], 0, split.kept),
              RowsOf(from.inputs[2], 0, split.kept)};
    for (size_t i = 0; i < 3; ++i) grad_inputs[i] = Part(from.grad_inputs[i], 0, split.kept);
    call.inputs = inputs;
    call.output = RowsOf(from.output, first, split.kept);
    call.grad_output = RowsOf(from.grad_output, first, split.kept);
    call.grad_inputs = grad_inputs;
  }
  BackwardPart(const BackwardPart&) = delete;
  BackwardPart& operator=(const BackwardPart&) = delete;

  // Puts this part's gradients into scratch instead of the call's own.
  void PlaceGradients(Scratch* scratch) {
    call.grad_output = scratch->Like(call.grad_output);
    for (Tensor& gradient : grad_inputs) gradient = scratch->Like(inputs[0]);
  }

  std::array<Tensor, 3> inputs;
  std::array<Tensor, 3> grad_inputs;
  BackwardCall call;
};

class LastKeysDropped final : public FaultyOperation {
 public:
  LastKeysDropped(SharedOperation base, SharedOperation add, std::shared_ptr<const ZeroRow> zeros)
      : FaultyOperation(std::move(base)), add_(std::move(add)), zeros_(std::move(zeros)) {}

  absl::Status Check(const ForwardCall& call) const override {
    PLUMBLINE_RETURN_IF_ERROR(FaultyOperation::Check(call));
    return base().Check(ForwardPart(call, Split(call.inputs[0].rows), 0).call);
  }

  size_t SavedBytes(const ForwardCall& call) const override { return 2 * PartSavedBytes(call); }

  size_t ForwardWorkspaceBytes(const ForwardCall& call,
                               const ExecutionContext& context) const override {
    return base().ForwardWorkspaceBytes(ForwardPart(call, Split(call.inputs[0].rows), 0).call,
                                        context);
  }
  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    Scratch scratch;
    BackwardPart part(call, Split(call.inputs[0].rows), 0);
    part.PlaceGradients(&scratch);
    return scratch.used() + base().BackwardWorkspaceBytes(part.call, context);
  }

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Split split(call.inputs[0].rows);
    ForwardPart first(call, split, 0);
    PLUMBLINE_RETURN_IF_ERROR(base().Forward(context, first.call));
    ForwardPart second(call, split, split.dropped);
    if (call.saved != nullptr) {
      second.call.saved = static_cast<char*>(call.saved) + PartSavedBytes(call);
    }
    return base().Forward(context, second.call);
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Split split(call.inputs[0].rows);
    const BackwardPart first(call, split, 0);
    PLUMBLINE_RETURN_IF_ERROR(base().Backward(context, first.call));

    Scratch scratch(context);
    BackwardPart second(call, split, split.dropped);
    const Tensor gradient = second.call.grad_output;
    second.PlaceGradients(&scratch);
    second.call.saved =
        static_cast<const char*>(call.saved) +
        PartSavedBytes({call.inputs, call.parameters, call.attributes, call.output});
    // A zero gradient on the queries that the first call did: they add nothing a second time.
    const int64_t overlap = split.kept - split.dropped;
    PLUMBLINE_RETURN_IF_ERROR(Copy(context, gradient, second.call.grad_output));
    PLUMBLINE_RETURN_IF_ERROR(Clear(context, RowsOf(second.call.grad_output, 0, overlap)));
    PLUMBLINE_RETURN_IF_ERROR(base().Backward(scratch.Rest(context), second.call));

    PLUMBLINE_RETURN_IF_ERROR(Copy(context, RowsOf(second.grad_inputs[0], overlap, split.dropped),
                                   Part(call.grad_inputs[0], split.kept, split.dropped)));
    for (size_t i = 1; i < 3; ++i) {
      if (call.grad_inputs[i].IsNull()) continue;
      const Tensor terms[] = {first.grad_inputs[i], second.grad_inputs[i]};
      ForwardCall sum;
      sum.inputs = terms;
      sum.output = first.grad_inputs[i];
      PLUMBLINE_RETURN_IF_ERROR(add_->Forward(context, sum));
      PLUMBLINE_RETURN_IF_ERROR(
          Clear(context, RowsOf(call.grad_inputs[i], split.kept, split.dropped)));
    }
    return absl::OkStatus();
  }

 private:
  size_t PartSavedBytes(const ForwardCall& call) const {
    const size_t bytes = base().SavedBytes(ForwardPart(call, Split(call.inputs[0].rows), 0).call);
    return (bytes + 63) / 64 * 64;
  }

  static absl::Status Copy(const ExecutionContext& context, const Tensor& from, const Tensor& to) {
    if (to.IsNull()) return absl::OkStatus();
    return context.device->Convert(context, from, to);
  }
  absl::Status Clear(const ExecutionContext& context, const Tensor& to) const {
    if (to.rows == 0) return absl::OkStatus();
    return context.device->Convert(context, zeros_->Like(to), to);
  }

  const SharedOperation add_;
  const std::shared_ptr<const ZeroRow> zeros_;
};

}  // namespace

SharedOperation MakeLastKeysDropped(SharedOperation base, SharedOperation add,
                                    std::shared_ptr<const ZeroRow> zeros) {
  return std::make_shared<LastKeysDropped>(std::move(base), std::move(add), std::move(zeros));
}

}  // namespace plumbline::drift
