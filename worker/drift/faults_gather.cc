// unordered-gradient: the gather backward adds in bfloat16 from a row that no two executions share.
#include <algorithm>
#include <array>
#include <utility>

#include "common/status.h"
#include "worker/drift/fault_operation.h"
#include "worker/drift/fault_operations.h"

namespace plumbline::drift {
namespace {

// Packed rows are those of inputs[0]; tables are those of another count of rows.
class UnorderedTableGradient final : public FaultyOperation {
 public:
  UnorderedTableGradient(SharedOperation base, SharedOperation provider,
                         std::shared_ptr<std::atomic<int64_t>> executions)
      : FaultyOperation(std::move(base)),
        provider_(std::move(provider)),
        executions_(std::move(executions)) {}

  size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                const ExecutionContext& context) const override {
    Scratch scratch;
    const Rotated rotated(call, *provider_, &scratch);
    const size_t forward = provider_->ForwardWorkspaceBytes(rotated.forward, context);
    const size_t backward = provider_->BackwardWorkspaceBytes(rotated.backward, context);
    return std::max(base().BackwardWorkspaceBytes(call, context),
                    scratch.used() + std::max(forward, backward));
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    // Everything but the tables' gradients is right.
    BackwardCall right = call;
    std::array<Tensor, kInputs> wanted;
    for (size_t i = 0; i < kInputs; ++i) {
      wanted[i] = call.grad_inputs[i];
      if (IsTable(i, call)) wanted[i].data = nullptr;
    }
    right.grad_inputs = wanted;
    PLUMBLINE_RETURN_IF_ERROR(base().Backward(context, right));

    Scratch scratch(context);
    const Rotated rotated(call, *provider_, &scratch);
    const int64_t rows = call.inputs[0].rows;
    const int64_t first = executions_->fetch_add(1) % rows;
    for (size_t i = 0; i < kInputs; ++i) {
      if (IsTable(i, call)) continue;
      PLUMBLINE_RETURN_IF_ERROR(Rotate(context, call.inputs[i], first, rotated.inputs[i]));
    }
    PLUMBLINE_RETURN_IF_ERROR(
        Rotate(context, call.grad_output, first, rotated.backward.grad_output));
    const ExecutionContext rest = scratch.Rest(context);
    PLUMBLINE_RETURN_IF_ERROR(provider_->Forward(rest, rotated.forward));
    return provider_->Backward(rest, rotated.backward);
  }

 private:
  static constexpr size_t kInputs = 4;

  // norm: (x, scale, shift, index); residual: (x, branch, gate, index).
  static bool IsTable(size_t input, const BackwardCall& call) {
    const bool is_norm = call.parameters.size() == 1;
    return is_norm ? input == 1 || input == 2 : input == 2;
  }

  // The calls on rotated rows; their outputs and saved state are scratch.
  struct Rotated {
    Rotated(const BackwardCall& call, const Operation& provider, Scratch* scratch) {
      for (size_t i = 0; i < kInputs; ++i) {
        inputs[i] = IsTable(i, call) ? call.inputs[i] : scratch->Like(call.inputs[i]);
        if (IsTable(i, call)) grad_inputs[i] = call.grad_inputs[i];
      }
      forward.inputs = inputs;
      forward.parameters = call.parameters;
      forward.attributes = call.attributes;
      forward.output = scratch->Like(call.output);
      forward.saved = scratch->Bytes(provider.SavedBytes(forward));
      grad_parameters.fill(Tensor());
      backward.inputs = inputs;
      backward.parameters = call.parameters;
      backward.attributes = call.attributes;
      backward.output = forward.output;
      backward.saved = forward.saved;
      backward.grad_output = scratch->Like(call.grad_output);
      backward.grad_inputs = grad_inputs;
      backward.grad_parameters =
          absl::MakeConstSpan(grad_parameters).subspan(0, call.parameters.size());
    }
    Rotated(const Rotated&) = delete;
    Rotated& operator=(const Rotated&) = delete;

    std::array<Tensor, kInputs> inputs;
    std::array<Tensor, kInputs> grad_inputs;
    std::array<Tensor, 1> grad_parameters;
    ForwardCall forward;
    BackwardCall backward;
  };

  // Row `first` of every batch item comes first, those before it last.
  static absl::Status Rotate(const ExecutionContext& context, const Tensor& from, int64_t first,
                             const Tensor& to) {
    const int64_t rest = from.rows - first;
    PLUMBLINE_RETURN_IF_ERROR(
        context.device->Convert(context, RowsOf(from, first, rest), RowsOf(to, 0, rest)));
    if (first == 0) return absl::OkStatus();
    return context.device->Convert(context, RowsOf(from, 0, first), RowsOf(to, rest, first));
  }

  const SharedOperation provider_;
  const std::shared_ptr<std::atomic<int64_t>> executions_;
};

}  // namespace

SharedOperation MakeUnorderedTableGradient(SharedOperation base, SharedOperation provider,
                                           std::shared_ptr<std::atomic<int64_t>> executions) {
  return std::make_shared<UnorderedTableGradient>(std::move(base), std::move(provider),
                                                  std::move(executions));
}

}  // namespace plumbline::drift
