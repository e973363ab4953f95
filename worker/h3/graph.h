// The model as data: values, and the nodes that compute them in execution order. Built once
// (transformer_graph.h) and run by one executor (executor.h) under any composition.
#ifndef PLUMBLINE_WORKER_H3_GRAPH_H_
#define PLUMBLINE_WORKER_H3_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/dtype.h"
#include "kernels/ops.h"

namespace plumbline::h3 {

// What the rows of a value are; the counts come with a layout (RowCounts).
enum class RowSpace {
  kPacked,
  kText,
  kVideo,
  kAudio,
  kTimesteps,
  kVoxels,        // latent voxels of a tile that is decoded
  kAudioLatents,  // audio latents of one channel that are decoded
};

struct RowCounts {
  int64_t packed = 0;
  int64_t text = 0;
  int64_t video = 0;  // keyframe rows included
  int64_t audio = 0;
  int64_t timesteps = 0;
  int64_t voxels = 0;
  int64_t audio_latents = 0;

  int64_t Of(RowSpace space) const;
};

using ValueId = int;
using NodeId = int;
inline constexpr NodeId kNoNode = -1;

// A tensor that flows: a graph input or the output of a node.
struct Value {
  std::string name;  // a node's value has the node's name: "block.0/q_proj"
  RowSpace rows = RowSpace::kPacked;
  int64_t width = 0;
  DType dtype =
      DType::kBF16;  // in mixed precision; float32 in full precision if it is bfloat16 here
  // Rows of this value are replicated by the batch axis; what only depends on timesteps or
  // positions is not.
  bool batched = true;
  // Whether a gradient flows back to it.
  bool differentiable = true;
  NodeId producer = kNoNode;  // kNoNode: a graph input
  // It has row_factor * (rows of its space) + extra_rows rows.
  int64_t row_factor = 1;
  int64_t extra_rows = 0;
};

// How a node reads a value: all of it, or after reading its rows as `split_rows` rows each,
// `columns` columns of it.
struct Use {
  ValueId value = 0;
  int64_t split_rows = 1;
  int64_t first_column = 0;
  int64_t columns = 0;  // 0: all

  bool IsWhole() const { return split_rows == 1 && columns == 0; }
};

struct Node {
  std::string name;  // "block.0/q_proj"
  std::string role;  // "q_proj": what compositions call it
  OpKind op = OpKind::kLinear;
  std::vector<Use> inputs;
  std::vector<std::string> parameters;  // diffusers names
  Attributes attributes;
  ValueId output = 0;
  // Nodes of one segment stand together; between segments only persistent values pass. A block is a
  // segment.
  int segment = 0;

  // Whether a row of the output depends on that row of the packed inputs alone.
  bool IsRowWise() const;
};

// One place where a value is read.
struct Reader {
  NodeId node = 0;
  int slot = 0;
};

class Graph {
 public:
  ValueId AddInput(Value value);
  // Adds `node` after all others, in the current segment, with an output value of its name.
  ValueId AddNode(Node node, Value output);
  // Nodes added from now on are in a new segment.
  void StartSegment(std::string name);
  void MarkOutput(ValueId value) { outputs_.push_back(value); }

  const std::vector<Value>& values() const { return values_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<std::string>& segments() const { return segments_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  // The readers of a value in execution order.
  const std::vector<Reader>& readers(ValueId value) const { return readers_[value]; }

  // The first node of a segment, and one past its last.
  NodeId SegmentBegin(int segment) const { return segment_begin_[segment]; }
  NodeId SegmentEnd(int segment) const;

  // NOT_FOUND names the graph's inputs when `name` is no value.
  absl::StatusOr<ValueId> FindValue(absl::string_view name) const;
  absl::StatusOr<NodeId> FindNode(absl::string_view name) const;

  // Whether a value lives beyond its segment: graph inputs and outputs, and what a later segment
  // reads.
  bool IsPersistent(ValueId value) const;

  // Whether the uses of a value are column slices that do not overlap and cover it, so that its
  // gradient is assembled and not summed.
  bool IsReadInSlices(ValueId value) const;

 private:
  std::vector<Value> values_;
  std::vector<Node> nodes_;
  std::vector<std::string> segments_;
  std::vector<NodeId> segment_begin_;
  std::vector<ValueId> outputs_;
  std::vector<std::vector<Reader>> readers_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_GRAPH_H_
