#include "worker/h3/device_weights.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
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

absl::StatusOr<Tensor> ShapeOf(const ParameterSource& source, absl::string_view name) {
  const ParameterSpec* parameter = source.Find(name);
  if (parameter == nullptr) {
    return absl::NotFoundError(absl::StrCat("the model has no parameter '", name, "'"));
  }
  return ParameterView(nullptr, parameter->dtype, parameter->shape);
}

}  // namespace

absl::StatusOr<Tensor> DeviceWeights::Shape(absl::string_view name) const {
  return ShapeOf(*source_, name);
}

absl::StatusOr<int64_t> DeviceWeights::TwoSegmentBytes(const Graph& graph) const {
  std::vector<int64_t> bytes(graph.segments().size());
  for (size_t segment = 0; segment < bytes.size(); ++segment) {
    absl::flat_hash_set<absl::string_view> names;
    const int index = static_cast<int>(segment);
    for (NodeId id = graph.SegmentBegin(index); id < graph.SegmentEnd(index); ++id) {
      for (const std::string& name : graph.nodes()[id].parameters) {
        if (!names.insert(name).second) continue;
        PLUMBLINE_ASSIGN_OR_RETURN(const Tensor shape, Shape(name));
        bytes[segment] += static_cast<int64_t>(shape.NumBytes());
      }
    }
  }
  int64_t most = 0;
  for (size_t segment = 0; segment < bytes.size(); ++segment) {
    most = std::max(most, bytes[segment] + bytes[(segment + 1) % bytes.size()]);
  }
  return most;
}

absl::Status DeviceWeights::ReadParameter(const ParameterSource& source, Device& device,
                                          const std::string& name, Loaded* loaded) {
  if (device.kind() == DeviceKind::kCpu) {
    PLUMBLINE_ASSIGN_OR_RETURN(loaded->host, source.Get(name));
    loaded->tensor = loaded->host.tensor;
    TouchPages(loaded->tensor);
    return absl::OkStatus();
  }
  PLUMBLINE_ASSIGN_OR_RETURN(loaded->tensor, ShapeOf(source, name));
  const size_t bytes = loaded->tensor.NumBytes();
  if (source.IsMadeOnDevice(name, device)) {
    PLUMBLINE_ASSIGN_OR_RETURN(loaded->buffer, device.Allocate(bytes));
    loaded->tensor.data = loaded->buffer.data();
    return source.MakeOnDevice(name, device, loaded->tensor);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const WeightView host, source.Get(name));
  PLUMBLINE_ASSIGN_OR_RETURN(loaded->buffer, device.Upload(host.tensor.data, bytes));
  loaded->tensor.data = loaded->buffer.data();
  return absl::OkStatus();
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
      PLUMBLINE_RETURN_IF_ERROR(ReadParameter(source, device, name, &loaded));
      read.bytes += static_cast<int64_t>(loaded.tensor.NumBytes());
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
