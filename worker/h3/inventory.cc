#include "worker/h3/inventory.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "worker/h3/inventory_names.h"
#include "worker/h3/parameters.h"

namespace plumbline::h3 {
namespace {

class InventoryBuilder {
 public:
  InventoryBuilder(const TransformerConfig& config, const Graph& graph, const RowCounts& rows)
      : graph_(graph), rows_(rows) {
    for (ParameterSpec& parameter : TransformerParameters(config)) {
      parameter_shapes_.emplace(std::move(parameter.name), std::move(parameter.shape));
    }
  }

  std::vector<InventoryTensor> Build() {
    const NodeId count = static_cast<NodeId>(graph_.nodes().size());
    for (NodeId id = 0; id < count; ++id) AddForward(id);
    for (NodeId id = count - 1; id >= 0; --id) AddGradient(id);
    for (NodeId id = count - 1; id >= 0; --id) AddLeaves(id);
    return std::move(inventory_);
  }

 private:
  const Value& OutputOf(NodeId id) const { return graph_.values()[graph_.nodes()[id].output]; }

  std::vector<int64_t> Shape(const Value& value) const {
    const int64_t count = rows_.Of(value.rows);
    if (!value.batched) return {count, value.width};
    return {1, count, value.width};
  }

  void AddForward(NodeId id) {
    const Node& node = graph_.nodes()[id];
    const std::string name = InventoryNameOfNode(node.name);
    if (name.empty()) return;
    inventory_.push_back({name, node.name, TapKind::kForward, Shape(OutputOf(id))});
  }

  // The gradients of the outputs are the upstream: given, not computed.
  void AddGradient(NodeId id) {
    const Node& node = graph_.nodes()[id];
    const std::string name = InventoryNameOfNode(node.name);
    if (!absl::StartsWith(name, "nodes.") || !OutputOf(id).differentiable) return;
    inventory_.push_back({absl::StrCat(name, ".grad"), absl::StrCat(node.name, ".grad"),
                          TapKind::kGradient, Shape(OutputOf(id))});
  }

  // In the order in which the executor hands them out when the node has run backward.
  void AddLeaves(NodeId id) {
    const Node& node = graph_.nodes()[id];
    for (const std::string& parameter : node.parameters) {
      const std::string name = absl::StrCat("parameter.", parameter);
      inventory_.push_back(
          {name, name, TapKind::kParameterGradient, parameter_shapes_.at(parameter)});
    }
    for (size_t value_id = 0; value_id < graph_.values().size(); ++value_id) {
      const Value& input = graph_.values()[value_id];
      if (input.producer != kNoNode || !input.differentiable) continue;
      const std::vector<Reader>& readers = graph_.readers(static_cast<ValueId>(value_id));
      // Backward, the first reader is the last to add to the gradient.
      if (readers.empty() || readers.front().node != id) continue;
      const std::string tap = absl::StrCat(input.name, ".grad");
      inventory_.push_back(
          {InventoryNameOfInputGradient(tap), tap, TapKind::kInputGradient, Shape(input)});
    }
  }

  const Graph& graph_;
  const RowCounts rows_;
  absl::flat_hash_map<std::string, std::vector<int64_t>> parameter_shapes_;
  std::vector<InventoryTensor> inventory_;
};

}  // namespace

std::vector<InventoryTensor> MakeInventory(const TransformerConfig& config, const Graph& graph,
                                           const RowCounts& rows) {
  return InventoryBuilder(config, graph, rows).Build();
}

}  // namespace plumbline::h3
