#ifndef PLUMBLINE_WORKER_JOBS_REPLAY_RUN_H_
#define PLUMBLINE_WORKER_JOBS_REPLAY_RUN_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/drift/gates.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/device_weights.h"
#include "worker/jobs/replay_execution.h"
#include "worker/jobs/replay_setup.h"

namespace plumbline::jobs {

// One run of a setup, from the golden's execution to the verdict. Used once, by one thread.
class ReplayRun {
 public:
  explicit ReplayRun(ReplaySetup& setup);

  absl::StatusOr<BlockReplayResult> Run();

 private:
  // How often a tensor will be handed out, for progress.
  int64_t CountTensors() const;
  absl::Status Tick(absl::string_view activity);

  absl::Status PrepareSides();
  absl::Status RunGolden();
  absl::Status RunProvider();
  absl::Status RunCandidate();
  absl::Status LoadCandidate();

  // Executes once under `sink` and notes what ran for the candidate's nodes.
  absl::Status Execute(const ReplaySide& side, const ExecutionOptions& options, h3::TapSink* sink);
  absl::Status RunChained();
  absl::Status RunIsolated();
  absl::Status Repeat(const drift::TensorStore& first, const h3::TensorSource* isolated_from);
  absl::Status RunInBatch();
  absl::Status RunAmongOtherRows(const drift::RowSelection& selection);
  absl::Status RunPermuted();
  absl::Status Time();

  absl::StatusOr<v1::TensorComparison> Compare(size_t entry, absl::string_view reference_name,
                                               drift::TensorStore& reference,
                                               absl::string_view name, drift::TensorStore& x);
  absl::Status CompareChained(size_t entry);
  drift::RowNamer NamerOf(const drift::BlockEntry& entry) const;
  void Send(size_t entry, v1::Feed feed, const v1::TensorComparison& comparison);

  void NoteTraces(const std::vector<h3::NodeTrace>& traces, bool backward);
  bool RanAsRequested(const h3::NodeTrace& trace) const;
  void SetImplementations();
  void AddBrokenPromises(std::vector<std::string>* qualifications) const;
  void JudgeAll();
  BlockReplayResult Finish();

  ReplaySetup& setup_;
  const drift::BlockEntries& entries_;
  Device& device_;
  const JobContext& context_;
  const ReplayModel model_;
  // For comparisons where the device has none.
  ThreadPool own_threads_{drift::ComparisonThreads(device_)};
  ThreadPool& threads_;

  h3::DeviceWeights weights_;
  std::unique_ptr<h3::DeviceWeights> faulty_weights_;
  std::unique_ptr<DeviceInputs> inputs_;
  std::unique_ptr<DeviceInputs> candidate_inputs_;
  ReplaySide golden_side_, provider_side_, candidate_side_;

  drift::TensorStore golden_, provider_, chained_, isolated_;
  std::vector<v1::EntryReport> reports_;
  // By node: of the chained execution; and whether every execution ran what was asked for.
  std::vector<h3::NodeTrace> traces_;
  std::vector<bool> executed_;
  v1::BlockReplayReport report_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_REPLAY_RUN_H_
