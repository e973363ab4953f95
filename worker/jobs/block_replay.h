// The block replay job: one transformer block, node by node, at one layout, as validation.md's
// "Block replay" lays it down. Runs executors over the block's graph and compares what they hand
// out; has no loop over nodes of its own.
#ifndef PLUMBLINE_WORKER_JOBS_BLOCK_REPLAY_H_
#define PLUMBLINE_WORKER_JOBS_BLOCK_REPLAY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/block_replay.pb.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "proto/plumbline/v1/job.pb.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/job_context.h"

namespace plumbline::jobs {

// Where the captures of a specification lie on this machine; empty: not given.
struct CaptureFiles {
  std::string inputs;
  std::string golden;
  std::string provider;  // of the only entry of CaptureSet.providers
  std::string candidate;
};

struct BlockReplayRequest {
  // Its kind is block_replay, with at most one layout.
  v1::JobSpec spec;
  CaptureFiles captures;
  // File to write, if the specification asks for tensors.
  std::string save_tensors_path;
};

struct BlockReplayResult {
  v1::BlockReplayReport report;
  v1::Verdict verdict;
  std::string composition;  // canonical
  bool hybrid = false;
  // Set when a fault was injected.
  std::optional<v1::ControlResult> control;
};

// One replay. One thread at a time; `weights` and what `context` points to must outlive it.
class BlockReplay {
 public:
  // Reads everything that a request can have wrong and computes nothing. INVALID_ARGUMENT names
  // the field (of JobSpec or BlockReplaySpec) and what is accepted: the block, layout, composition
  // or fault; a capture with missing or extra names, other shapes, or of other inputs.
  static absl::StatusOr<std::unique_ptr<BlockReplay>> Create(const BlockReplayRequest& request,
                                                             const h3::WeightSource& weights,
                                                             const JobContext& context);
  virtual ~BlockReplay() = default;

  // Device memory that Run() needs at its peak, weights included; an estimate from above.
  virtual int64_t EstimatedBytes() const = 0;

  // RESOURCE_EXHAUSTED, before any work, when the device has less than EstimatedBytes().
  virtual absl::StatusOr<BlockReplayResult> Run() = 0;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_BLOCK_REPLAY_H_
