#include "worker/h3/device_weights.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

// Reads a byte of every page, so that a mapped file comes from its disk here and not in the middle
// of a kernel.
void TouchPages(const Tensor& tensor) {
  constexpr size_t kPageBytes = 4096;
  const auto* bytes = static_cast<const volatile uint8_t*>(tensor.data);
  const size_t size = tensor.NumBytes();
  for (size_t i = 0; i < size; i += kPageBytes) static_cast<void>(bytes[i]);
}

}  // namespace

absl::StatusOr<Tensor> DeviceWeights::Shape(absl::string_view name) const {
  const ParameterSpec* parameter = source_->Find(name);
  if (parameter == nullptr) {
    return absl::NotFoundError(absl::StrCat("the model has no parameter '", name, "'"));
  }
  return ParameterView(nullptr, parameter->dtype, parameter->shape);
}

absl::StatusOr<DeviceWeights::Segment> DeviceWeights::Read(const ParameterSource& source,
                                                           Device& device, const Graph& graph,
                                                           int segment) {
  Segment read;
  for (NodeId id = graph.SegmentBegin(segment); id < graph.SegmentEnd(segment); ++id) {
    for (const std::string& name : graph.nodes()[id].parameters) {
      const auto [place, is_new] = read.parameters.try_emplace(name);
      if (!is_new) continue;
      Loaded& loaded = place->second;
      PLUMBLINE_ASSIGN_OR_RETURN(loaded.host, source.Get(name));
      loaded.tensor = loaded.host.tensor;
      read.bytes += static_cast<int64_t>(loaded.tensor.NumBytes());
      if (device.kind() == DeviceKind::kCpu) {
        TouchPages(loaded.tensor);
        continue;
      }
      PLUMBLINE_ASSIGN_OR_RETURN(loaded.buffer, device.Allocate(loaded.tensor.NumBytes()));
      const void* host = loaded.tensor.data;
      loaded.tensor.data = loaded.buffer.data();
      PLUMBLINE_RETURN_IF_ERROR(device.CopyToDevice(host, loaded.tensor));
      loaded.host = WeightView();
    }
  }
  read.graph = &graph;
  read.index = segment;
  return read;
}

absl::Status DeviceWeights::Load(const Graph& graph, int segment) {
  if (loaded_.Is(graph, segment)) return absl::OkStatus();
  if (keep_all_) {
    if (loaded_.graph != nullptr) kept_[loaded_.index] = std::move(loaded_);
    loaded_ = Segment();
    if (const auto kept = kept_.find(segment); kept != kept_.end()) {
      loaded_ = std::move(kept->second);
      kept_.erase(kept);
      return absl::OkStatus();
    }
  }
  // Should a parameter fail to load, nothing counts as loaded.
  loaded_ = Segment();
  std::future<absl::StatusOr<Segment>> next = std::move(next_);
  if (next.valid() && expected_.Is(graph, segment)) {
    PLUMBLINE_ASSIGN_OR_RETURN(loaded_, next.get());
  } else {
    next = {};  // Waits for it, so that there are never three.
    PLUMBLINE_ASSIGN_OR_RETURN(loaded_, Read(*source_, *device_, graph, segment));
  }
  loaded_bytes_ += loaded_.bytes;
  return absl::OkStatus();
}

void DeviceWeights::Prefetch(const Graph& graph, int segment) {
  if (loaded_.Is(graph, segment) || (next_.valid() && expected_.Is(graph, segment))) return;
  if (kept_.contains(segment)) return;
  next_ = {};
  expected_.graph = &graph;
  expected_.index = segment;
  next_ = std::async(std::launch::async, [source = source_, device = device_, &graph, segment] {
    return Read(*source, *device, graph, segment);
  });
}

absl::StatusOr<Tensor> DeviceWeights::Find(absl::string_view name) const {
  const auto found = loaded_.parameters.find(name);
  if (found == loaded_.parameters.end()) {
    return absl::FailedPreconditionError(absl::StrCat("parameter '", name, "' is not loaded"));
  }
  return found->second.tensor;
}

}  // namespace plumbline::h3
