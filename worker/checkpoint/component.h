// One part of a checkpoint while it is scanned: the transformer or a decoder. Internal to scan.cc.
#ifndef PLUMBLINE_WORKER_CHECKPOINT_COMPONENT_H_
#define PLUMBLINE_WORKER_CHECKPOINT_COMPONENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/plumbline/v1/checkpoint.pb.h"
#include "worker/checkpoint/scan.h"
#include "worker/checkpoint/shard_file.h"
#include "worker/h3/checkpoint_files.h"
#include "worker/h3/config.h"
#include "worker/h3/parameters.h"
#include "worker/h3/stored_tensors.h"

namespace plumbline::checkpoint {

// A weight file with what is known of it before its data are read.
struct Shard {
  h3::CheckpointFile file;
  std::optional<ShardFile> contents;  // None: it is missing or no file.
  v1::CheckpointReport::File report;
  std::vector<v1::CheckpointFinding> findings;
  std::vector<ScannedTensor> tensors;

  // The header can be read, and so it is known which tensors are here.
  bool HasHeader() const { return contents.has_value() && contents->header().ok(); }
};

// How the transformer's tensors are laid out; for decoders, nothing.
struct TensorPlan {
  h3::CheckpointLayout layout = h3::CheckpointLayout::kReleased;
  std::optional<h3::TransformerConfig> config;
  std::vector<h3::ParameterSpec> parameters;
  std::vector<h3::StoredTensor> stored;
  std::string prefix;  // Of the names of decoders' tensors: "vae.".

  const h3::StoredTensor* Find(absl::string_view name) const;
};

// Opens the shards and notes what is missing, cut short or malformed.
std::vector<Shard> OpenShards(const std::vector<h3::CheckpointFile>& files);

// What names, shapes and types in the headers have wrong, by the plan, and what the index says
// otherwise. `index_text_path` is where the index lies; empty: there is none.
std::vector<v1::CheckpointFinding> CheckNames(const std::vector<Shard>& shards,
                                              const h3::CheckpointFile& index,
                                              const TensorPlan& plan);

// Reads the data of a shard, all of it once, and measures its tensors. `on_bytes` is told how many
// were read; where it returns false the reading ends. From one thread a shard.
void ReadShard(const TensorPlan& plan, const std::function<bool(int64_t)>& on_bytes, Shard* shard);

}  // namespace plumbline::checkpoint

#endif  // PLUMBLINE_WORKER_CHECKPOINT_COMPONENT_H_
