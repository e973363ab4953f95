#include "worker/h3/decoders/graph_calls.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::h3 {

absl::Status GraphCalls::Output::OnTensor(const Tap& tap) {
  if (tap.tensor.dtype != DType::kF32 || !tap.tensor.IsDense()) {
    return absl::InternalError(absl::StrCat(tap.name, " is not a dense float32 tensor"));
  }
  values_.resize(static_cast<size_t>(tap.tensor.NumElements()));
  return device_.CopyToHost(tap.tensor, values_.data());
}

GraphCalls::GraphCalls(const Graph& graph, const ResolvedComposition& composition,
                       const ParameterSource& weights, const Registry& registry, Device& device,
                       std::function<absl::Status()> check_cancelled)
    : graph_(graph),
      composition_(composition),
      registry_(registry),
      device_(device),
      check_cancelled_(std::move(check_cancelled)),
      keeps_weights_(TotalParameterBytes(weights.parameters()) <= device.MemoryBytes() / 2),
      weights_(&weights, &device),
      output_(graph, &device) {
  if (keeps_weights_) weights_.KeepAll();
}

absl::Status GraphCalls::Prepare(const RowCounts& rows, int64_t batch) {
  const bool same = executor_ != nullptr && rows.voxels == rows_.voxels &&
                    rows.audio_latents == rows_.audio_latents && batch == batch_;
  if (same) return absl::OkStatus();
  executor_.reset();  // First, so that its memory is free.
  PlanOptions options;
  options.rows = rows;
  options.batch = batch;
  PLUMBLINE_ASSIGN_OR_RETURN(executor_, Executor::Create(graph_, composition_, registry_, weights_,
                                                         device_, &output_, std::move(options)));
  rows_ = rows;
  batch_ = batch;
  return absl::OkStatus();
}

absl::Status GraphCalls::SetInput(absl::string_view name, const Tensor& host) {
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer buffer, device_.Allocate(host.NumBytes()));
  Tensor copy = host;
  copy.data = buffer.data();
  PLUMBLINE_RETURN_IF_ERROR(device_.CopyToDevice(host.data, copy));
  PLUMBLINE_RETURN_IF_ERROR(executor_->SetInput(name, copy));
  return device_.Synchronize();
}

absl::StatusOr<std::vector<float>> GraphCalls::Run() {
  const int segments = static_cast<int>(graph_.segments().size());
  for (int segment = 0; segment < segments; ++segment) {
    PLUMBLINE_RETURN_IF_ERROR(check_cancelled_());
    PLUMBLINE_RETURN_IF_ERROR(weights_.Load(graph_, segment));
    // Behind the last comes the next run's first.
    if (!keeps_weights_) weights_.Prefetch(graph_, (segment + 1) % segments);
    PLUMBLINE_RETURN_IF_ERROR(executor_->Forward(segment));
  }
  return output_.Take();
}

}  // namespace plumbline::h3
