#ifndef PLUMBLINE_WORKER_JOBS_REPLAY_SETUP_H_
#define PLUMBLINE_WORKER_JOBS_REPLAY_SETUP_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "worker/drift/block_entries.h"
#include "worker/drift/faults.h"
#include "worker/h3/composition.h"
#include "worker/h3/graph.h"
#include "worker/h3/weight_source.h"
#include "worker/jobs/block_replay.h"
#include "worker/jobs/replay_inputs.h"

namespace plumbline::jobs {

// A request understood: what a replay runs, on what, and what it reads instead. Its parts point
// into one another, so it stays where it was made.
struct ReplaySetup {
  ReplaySetup(const h3::WeightSource& weights, const JobContext& context)
      : weights(weights), context(context) {}
  ReplaySetup(const ReplaySetup&) = delete;
  ReplaySetup& operator=(const ReplaySetup&) = delete;

  // See BlockReplay::Create.
  static absl::StatusOr<std::unique_ptr<ReplaySetup>> Make(const BlockReplayRequest& request,
                                                           const h3::WeightSource& weights,
                                                           const JobContext& context);

  bool captured_candidate() const { return captures.candidate != nullptr; }
  // Golden and provider compositions are what candidates are held to: measured and not judged.
  bool is_reference() const;
  // Device memory at the peak, an estimate from above.
  int64_t EstimatedBytes() const;

  const h3::WeightSource& weights;
  const JobContext& context;
  int64_t block = 0;
  bool backward = false;
  std::string save_tensors_path;

  OpenCaptures captures;
  ReplayInputs inputs;
  h3::Graph graph;
  std::optional<drift::BlockEntries> entries;
  // What a capture may hold even where gradients are not asked for.
  std::optional<drift::BlockEntries> entries_with_gradients;

  h3::Composition composition;  // of the candidate
  std::string candidate_name;   // what reports call it
  std::string provider_name;
  // Unset where a capture stands for the side.
  std::optional<h3::ResolvedComposition> golden;
  std::optional<h3::ResolvedComposition> provider;
  std::optional<h3::ResolvedComposition> candidate;
  std::optional<drift::Fault> fault;
  // Why one that was asked for changes nothing here, and so is left out.
  std::string inert_fault;

 private:
  absl::Status ReadSpec(const BlockReplayRequest& request);
  absl::Status CheckInputNames() const;
  absl::Status ResolveSides(const v1::BlockReplaySpec& spec);
  absl::Status PrepareFault(const std::string& name);
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_REPLAY_SETUP_H_
