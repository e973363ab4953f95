#include "worker/drift/block_entries.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "worker/h3/parameters.h"

namespace plumbline::drift {
namespace {

using h3::Graph;
using h3::Node;
using h3::NodeId;
using h3::Reader;
using h3::Value;
using h3::ValueId;

// Nodes whose captures keep the heads apart: (1, rows, heads, D).
bool KeepsHeads(const Node& node) {
  return node.op == OpKind::kRmsNorm || node.op == OpKind::kRope;
}

std::vector<int64_t> ValueShape(const h3::TransformerConfig& config, const Value& value,
                                const h3::RowCounts& rows, bool keeps_heads) {
  const int64_t count = rows.Of(value.rows);
  if (!value.batched) return {count, value.width};
  if (!keeps_heads) return {1, count, value.width};
  return {1, count, config.num_attention_heads, config.attention_head_dim};
}

BlockEntry ForwardEntry(const h3::TransformerConfig& config, const Graph& graph, NodeId id,
                        const h3::RowCounts& rows) {
  const Node& node = graph.nodes()[id];
  const Value& value = graph.values()[node.output];
  BlockEntry entry;
  entry.name = node.role;
  entry.tensor_name = node.name;
  entry.capture_name = absl::StrCat("node.", node.role);
  entry.node = id;
  entry.role = node.role;
  entry.shape = ValueShape(config, value, rows, KeepsHeads(node));
  entry.packed = value.rows == h3::RowSpace::kPacked;
  entry.row_wise = node.IsRowWise();
  return entry;
}

// What follows for the gradient of a value from who reads it.
void SetReaders(const Graph& graph, ValueId value, BlockEntry* entry) {
  const std::vector<Reader>& readers = graph.readers(value);
  entry->packed = graph.values()[value].rows == h3::RowSpace::kPacked;
  entry->sums_rows = !entry->packed;
  entry->row_wise =
      entry->packed && std::all_of(readers.begin(), readers.end(), [&](const Reader& reader) {
        return graph.nodes()[reader.node].IsRowWise();
      });
  if (readers.empty()) return;
  entry->node = readers.front().node;
  entry->role = graph.nodes()[entry->node].role;
}

}  // namespace

BlockEntries::BlockEntries(const h3::TransformerConfig& config, const Graph& graph, int64_t block,
                           const h3::RowCounts& rows, bool backward) {
  const NodeId nodes = static_cast<NodeId>(graph.nodes().size());
  for (NodeId id = 0; id < nodes; ++id) Add(ForwardEntry(config, graph, id, rows));
  if (!backward) return;
  for (NodeId id = nodes - 1; id >= 0; --id) {
    BlockEntry entry = ForwardEntry(config, graph, id, rows);
    for (std::string* name : {&entry.name, &entry.tensor_name, &entry.capture_name}) {
      absl::StrAppend(name, ".grad");
    }
    entry.kind = v1::ENTRY_KIND_GRADIENT;
    SetReaders(graph, graph.nodes()[id].output, &entry);
    Add(std::move(entry));
  }
  for (size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.producer != h3::kNoNode || !value.differentiable) continue;
    BlockEntry entry;
    // "block.input" is the leaf "input".
    entry.name = absl::StrCat("leaf", value.name.substr(value.name.find('.')));
    entry.tensor_name = absl::StrCat(value.name, ".grad");
    entry.capture_name = entry.name;
    entry.kind = v1::ENTRY_KIND_LEAF;
    entry.shape = ValueShape(config, value, rows, false);
    SetReaders(graph, static_cast<ValueId>(id), &entry);
    Add(std::move(entry));
  }
  const std::string prefix = h3::BlockPrefix(block);
  for (const h3::ParameterSpec& parameter : h3::BlockParameters(config, "")) {
    BlockEntry entry;
    entry.name = absl::StrCat("leaf.", parameter.name);
    entry.tensor_name = absl::StrCat("parameter.", prefix, parameter.name);
    entry.capture_name = entry.name;
    entry.kind = v1::ENTRY_KIND_LEAF;
    entry.shape = parameter.shape;
    entry.sums_rows = true;
    for (NodeId id = 0; id < nodes; ++id) {
      const std::vector<std::string>& read = graph.nodes()[id].parameters;
      if (std::find(read.begin(), read.end(), absl::StrCat(prefix, parameter.name)) == read.end()) {
        continue;
      }
      entry.node = id;
      entry.role = graph.nodes()[id].role;
    }
    Add(std::move(entry));
  }
}

void BlockEntries::Add(BlockEntry entry) {
  index_by_tensor_name_.emplace(entry.tensor_name, static_cast<int>(entries_.size()));
  entries_.push_back(std::move(entry));
}

int BlockEntries::IndexOf(absl::string_view tensor_name) const {
  const auto found = index_by_tensor_name_.find(tensor_name);
  return found == index_by_tensor_name_.end() ? -1 : found->second;
}

}  // namespace plumbline::drift
