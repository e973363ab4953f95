#include "worker/h3/device_weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::h3 {

absl::StatusOr<Tensor> DeviceWeights::Shape(absl::string_view name) const {
  const ParameterSpec* parameter = source_->Find(name);
  if (parameter == nullptr) {
    return absl::NotFoundError(absl::StrCat("the model has no parameter '", name, "'"));
  }
  const bool is_vector = parameter->shape.size() == 1;
  return Tensor::Dense(nullptr, parameter->dtype, 1, is_vector ? 1 : parameter->shape[0],
                       is_vector ? parameter->shape[0] : parameter->shape[1]);
}

absl::Status DeviceWeights::Load(const Graph& graph, int segment) {
  if (graph_ == &graph && segment_ == segment) return absl::OkStatus();
  // Should a parameter fail to load, nothing counts as loaded.
  graph_ = nullptr;
  loaded_.clear();
  for (NodeId id = graph.SegmentBegin(segment); id < graph.SegmentEnd(segment); ++id) {
    for (const std::string& name : graph.nodes()[id].parameters) {
      Loaded& loaded = loaded_[name];
      PLUMBLINE_ASSIGN_OR_RETURN(loaded.host, source_->Get(name));
      loaded.tensor = loaded.host.tensor;
      if (device_->kind() == DeviceKind::kCpu) continue;
      PLUMBLINE_ASSIGN_OR_RETURN(loaded.buffer, device_->Allocate(loaded.tensor.NumBytes()));
      const void* host = loaded.tensor.data;
      loaded.tensor.data = loaded.buffer.data();
      PLUMBLINE_RETURN_IF_ERROR(device_->CopyToDevice(host, loaded.tensor));
      loaded.host = WeightView();
    }
  }
  graph_ = &graph;
  segment_ = segment;
  return absl::OkStatus();
}

absl::StatusOr<Tensor> DeviceWeights::Find(absl::string_view name) const {
  const auto found = loaded_.find(name);
  if (found == loaded_.end()) {
    return absl::FailedPreconditionError(absl::StrCat("parameter '", name, "' is not loaded"));
  }
  return found->second.tensor;
}

}  // namespace plumbline::h3
