#ifndef PLUMBLINE_WORKER_DRIFT_BLOCK_ENTRIES_H_
#define PLUMBLINE_WORKER_DRIFT_BLOCK_ENTRIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/block_replay.pb.h"
#include "worker/h3/config.h"
#include "worker/h3/graph.h"

namespace plumbline::drift {

// One tensor that a block replay looks at.
struct BlockEntry {
  std::string name;  // "q_proj", "q_proj.grad", "leaf.attn.to_q.weight", "leaf.input"
  std::string
      tensor_name;  // the executor's: "block.0/q_proj.grad", "parameter.NAME", "block.input.grad"
  std::string capture_name;  // a file's: "node.q_proj.grad", "leaf.input"
  v1::EntryKind kind = v1::ENTRY_KIND_FORWARD;
  // The node whose implementation computed it: for the gradient of a value the last one that adds
  // to it.
  h3::NodeId node = h3::kNoNode;
  std::string role;            // of that node: "q_proj"
  std::vector<int64_t> shape;  // as captures have it, batch 1
  bool packed = false;         // its rows are those of the packed sequence
  // A gradient that is summed over packed rows: other company changes it.
  bool sums_rows = false;
  // Its rows depend on the same packed rows alone, so that it can be asked for under other counts.
  bool row_wise = false;
};

// The entries of one block in the order in which reports list them: nodes in execution order; if
// `backward`, the gradients reaching them, last node first; then leaves: input, temb, parameters.
// Immutable.
class BlockEntries {
 public:
  // `graph` is BuildBlockGraph(config, block).
  BlockEntries(const h3::TransformerConfig& config, const h3::Graph& graph, int64_t block,
               const h3::RowCounts& rows, bool backward);

  const std::vector<BlockEntry>& all() const { return entries_; }
  size_t size() const { return entries_.size(); }
  const BlockEntry& operator[](size_t index) const { return entries_[index]; }

  // The index of the entry with this tensor name, or -1.
  int IndexOf(absl::string_view tensor_name) const;

 private:
  void Add(BlockEntry entry);

  std::vector<BlockEntry> entries_;
  absl::flat_hash_map<std::string, int> index_by_tensor_name_;
};

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_BLOCK_ENTRIES_H_
