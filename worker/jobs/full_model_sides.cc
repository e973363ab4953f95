#include "worker/jobs/full_model_sides.h"

#include "absl/strings/strip.h"
#include "common/status.h"
#include "worker/drift/tensor_store.h"

namespace plumbline::jobs {
namespace {

// Where a tensor of the inventory stands in a graph.
struct Place {
  h3::NodeId node = h3::kNoNode;  // whose segment hands it out
  h3::RowSpace rows = h3::RowSpace::kTimesteps;
};

Place PlaceOf(const h3::Graph& graph, const h3::InventoryTensor& tensor) {
  absl::string_view name = tensor.tap;
  if (tensor.kind == h3::TapKind::kParameterGradient) {
    absl::ConsumePrefix(&name, "parameter.");
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      for (const std::string& parameter : graph.nodes()[id].parameters) {
        if (parameter == name) return {static_cast<h3::NodeId>(id)};
      }
    }
    return {};
  }
  if (tensor.kind != h3::TapKind::kForward) absl::ConsumeSuffix(&name, ".grad");
  const absl::StatusOr<h3::ValueId> id = graph.FindValue(name);
  if (!id.ok()) return {};
  const h3::Value& value = graph.values()[*id];
  if (value.producer != h3::kNoNode) return {value.producer, value.rows};
  // An input's gradient is complete when its first reader has run backward.
  const std::vector<h3::Reader>& readers = graph.readers(*id);
  return {readers.empty() ? h3::kNoNode : readers.front().node, value.rows};
}

}  // namespace

InventoryIndex::InventoryIndex(const h3::Graph& graph,
                               const std::vector<h3::InventoryTensor>& inventory)
    : inventory_(inventory), forward_(graph.segments().size()), backward_(graph.segments().size()) {
  for (size_t i = 0; i < inventory.size(); ++i) {
    by_tap_[inventory[i].tap] = static_cast<int>(i);
    const Place place = PlaceOf(graph, inventory[i]);
    rows_.push_back(place.rows);
    if (place.node == h3::kNoNode) continue;
    auto& phase = inventory[i].IsGradient() ? backward_ : forward_;
    phase[graph.nodes()[place.node].segment].push_back(i);
  }
}

int InventoryIndex::Find(absl::string_view tap, h3::TapKind kind) const {
  const auto found = by_tap_.find(tap);
  if (found == by_tap_.end() || inventory_[found->second].kind != kind) return -1;
  return found->second;
}

absl::Status InventorySink::OnTensor(const h3::Tap& tap) {
  const size_t index = static_cast<size_t>(inventory_.Find(tap.name, tap.kind));
  return function_(index, tap.tensor, inventory_[index].shape);
}

absl::Status CaptureSide::HandOn(const std::vector<size_t>& indices) {
  for (size_t index : indices) {
    const TensorInfo* tensor = file_.Find(inventory_[index].name);
    if (tensor == nullptr) continue;
    Tensor found =
        drift::AsComparedTensor(file_.Bytes(*tensor).data(), tensor->dtype, tensor->shape).tensor;
    DeviceBuffer uploaded;
    if (device_.kind() != DeviceKind::kCpu) {
      PLUMBLINE_ASSIGN_OR_RETURN(uploaded, device_.Upload(found.data, found.NumBytes()));
      found.data = uploaded.data();
    }
    PLUMBLINE_RETURN_IF_ERROR(function_(index, found, tensor->shape));
  }
  return absl::OkStatus();
}

absl::Status ReferenceTensors::Put(size_t index, const Tensor& tensor,
                                   const std::vector<int64_t>& shape, std::string sha256) {
  Tensor copy = Tensor::Dense(nullptr, tensor.dtype, tensor.batch, tensor.rows, tensor.width);
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer memory, device_.Allocate(copy.NumBytes()));
  copy.data = memory.data();
  PLUMBLINE_RETURN_IF_ERROR(device_.Convert(device_.Context(), tensor, copy));
  tensors_[index] = {std::move(memory), {copy, shape, std::move(sha256)}};
  return absl::OkStatus();
}

absl::StatusOr<TensorFile> TensorFile::Create(const std::string& path,
                                              const InventoryIndex& inventory,
                                              const std::vector<bool>& chosen,
                                              const h3::Executor& executor, Device* device) {
  std::vector<TensorSpec> specs;
  for (size_t i = 0; i < inventory.size(); ++i) {
    if (!chosen[i]) continue;
    const h3::InventoryTensor& tensor = inventory[i];
    PLUMBLINE_ASSIGN_OR_RETURN(const DType dtype, executor.TapType(tensor.tap, tensor.kind));
    specs.push_back({tensor.name, dtype, tensor.shape});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs));
  return TensorFile(inventory, chosen, std::move(writer), device);
}

absl::Status TensorFile::Write(size_t index, const Tensor& tensor) {
  if (!chosen_[index]) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, drift::ToHost(*device_, tensor));
  return writer_.Write(inventory_[index].name, host.Bytes());
}

}  // namespace plumbline::jobs
