#include "worker/h3/graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::h3 {

int64_t RowCounts::Of(RowSpace space) const {
  switch (space) {
    case RowSpace::kPacked:
      return packed;
    case RowSpace::kText:
      return text;
    case RowSpace::kVideo:
      return video;
    case RowSpace::kAudio:
      return audio;
    case RowSpace::kTimesteps:
      return timesteps;
    case RowSpace::kVoxels:
      return voxels;
    case RowSpace::kAudioLatents:
      return audio_latents;
  }
  return 0;
}

bool Node::IsRowWise() const {
  switch (op) {
    case OpKind::kAttention:
    case OpKind::kScatterRows:
    case OpKind::kGatherRows:
    case OpKind::kDecoderAttention:
    case OpKind::kAppendTokens:
    case OpKind::kConv1d:
    case OpKind::kConvTranspose1d:
    case OpKind::kSnakeBeta:
      return false;
    default:
      return true;
  }
}

ValueId Graph::AddInput(Value value) {
  value.producer = kNoNode;
  values_.push_back(std::move(value));
  readers_.emplace_back();
  return static_cast<ValueId>(values_.size()) - 1;
}

ValueId Graph::AddNode(Node node, Value output) {
  if (segments_.empty()) StartSegment("all");
  const NodeId id = static_cast<NodeId>(nodes_.size());
  output.name = node.name;
  output.producer = id;
  values_.push_back(std::move(output));
  readers_.emplace_back();
  node.output = static_cast<ValueId>(values_.size()) - 1;
  node.segment = static_cast<int>(segments_.size()) - 1;
  for (size_t slot = 0; slot < node.inputs.size(); ++slot) {
    readers_[node.inputs[slot].value].push_back({id, static_cast<int>(slot)});
  }
  nodes_.push_back(std::move(node));
  return nodes_.back().output;
}

void Graph::StartSegment(std::string name) {
  segments_.push_back(std::move(name));
  segment_begin_.push_back(static_cast<NodeId>(nodes_.size()));
}

NodeId Graph::SegmentEnd(int segment) const {
  return segment + 1 < static_cast<int>(segment_begin_.size()) ? segment_begin_[segment + 1]
                                                               : static_cast<NodeId>(nodes_.size());
}

absl::StatusOr<ValueId> Graph::FindValue(absl::string_view name) const {
  std::vector<std::string> inputs;
  for (size_t i = 0; i < values_.size(); ++i) {
    if (values_[i].name == name) return static_cast<ValueId>(i);
    if (values_[i].producer == kNoNode) inputs.push_back(values_[i].name);
  }
  return absl::NotFoundError(absl::StrCat("the graph has no value '", name, "'; its inputs are ",
                                          absl::StrJoin(inputs, ", ")));
}

absl::StatusOr<NodeId> Graph::FindNode(absl::string_view name) const {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].name == name) return static_cast<NodeId>(i);
  }
  return absl::NotFoundError(absl::StrCat("the graph has no node '", name, "'"));
}

bool Graph::IsPersistent(ValueId value) const {
  const NodeId producer = values_[value].producer;
  if (producer == kNoNode) return true;
  if (std::find(outputs_.begin(), outputs_.end(), value) != outputs_.end()) return true;
  const int segment = nodes_[producer].segment;
  return std::any_of(readers_[value].begin(), readers_[value].end(),
                     [&](const Reader& reader) { return nodes_[reader.node].segment != segment; });
}

bool Graph::IsReadInSlices(ValueId value) const {
  if (readers_[value].size() < 2) return false;
  std::vector<std::pair<int64_t, int64_t>> slices;
  int64_t split_rows = 0;
  for (const Reader& reader : readers_[value]) {
    const Use& use = nodes_[reader.node].inputs[reader.slot];
    if (use.columns == 0) return false;
    if (split_rows != 0 && use.split_rows != split_rows) return false;
    split_rows = use.split_rows;
    slices.emplace_back(use.first_column, use.columns);
  }
  std::sort(slices.begin(), slices.end());
  int64_t covered = 0;
  for (const auto& [first, count] : slices) {
    if (first != covered) return false;
    covered += count;
  }
  return covered * split_rows == values_[value].width;
}

}  // namespace plumbline::h3
