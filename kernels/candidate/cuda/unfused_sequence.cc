#include "kernels/candidate/cuda/unfused_sequence.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::candidate_cuda {

UnfusedSequence::UnfusedSequence(absl::string_view name,
                                 std::vector<std::shared_ptr<const Operation>> operations,
                                 std::vector<int> reads)
    : name_(name), operations_(std::move(operations)), reads_(std::move(reads)) {}

absl::Status UnfusedSequence::Check(absl::Span<const ForwardCall> calls) const {
  if (calls.size() != operations_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name_, ": covers ", operations_.size(), " nodes, got ", calls.size()));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    PLUMBLINE_RETURN_IF_ERROR(operations_[i]->Check(calls[i]));
  }
  return absl::OkStatus();
}

size_t UnfusedSequence::WorkspaceBytes(absl::Span<const ForwardCall> calls,
                                       const ExecutionContext& context) const {
  size_t bytes = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    bytes = std::max(bytes, operations_[i]->ForwardWorkspaceBytes(calls[i], context));
  }
  return bytes;
}

absl::Status UnfusedSequence::Forward(const ExecutionContext& context,
                                      absl::Span<const ForwardCall> calls) const {
  std::vector<Tensor> outputs;
  for (const ForwardCall& call : calls) outputs.push_back(call.output);
  // From the last reader to the first, so that a chain of nulls ends where something is written.
  for (size_t reader = calls.size(); reader-- > 0;) {
    if (reads_[reader] < 0) continue;
    Tensor& read = outputs[static_cast<size_t>(reads_[reader])];
    if (read.IsNull()) read = outputs[reader];
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    std::vector<Tensor> inputs(calls[i].inputs.begin(), calls[i].inputs.end());
    if (reads_[i] >= 0) inputs[0] = outputs[static_cast<size_t>(reads_[i])];
    ForwardCall call = calls[i];
    call.inputs = inputs;
    call.output = outputs[i];
    PLUMBLINE_RETURN_IF_ERROR(operations_[i]->Forward(context, call));
  }
  return absl::OkStatus();
}

}  // namespace plumbline::candidate_cuda
