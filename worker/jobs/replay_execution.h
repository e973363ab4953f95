#ifndef PLUMBLINE_WORKER_JOBS_REPLAY_EXECUTION_H_
#define PLUMBLINE_WORKER_JOBS_REPLAY_EXECUTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "worker/drift/block_entries.h"
#include "worker/drift/compare.h"
#include "worker/drift/row_selection.h"
#include "worker/drift/tensor_store.h"
#include "worker/h3/executor.h"
#include "worker/jobs/replay_inputs.h"

// The executions of a block replay, and the sinks that look at what they hand out.

namespace plumbline::jobs {

// What every execution of one replay shares. Owns nothing.
struct ReplayModel {
  const h3::Graph& graph;
  std::string output;  // the graph's only one
  h3::RowCounts rows;
  const Registry& registry;
  Device& device;
};

// A composition with what it reads.
struct ReplaySide {
  const h3::ResolvedComposition* composition = nullptr;
  h3::DeviceWeights* weights = nullptr;
  const DeviceInputs* inputs = nullptr;
  std::vector<h3::OperationFault> faults;
};

struct ExecutionOptions {
  bool backward = false;
  const h3::TensorSource* isolated_from = nullptr;
  const drift::RowSelection* selection = nullptr;  // null: all rows
  int64_t batch = 1;                               // as `inputs` have it
  bool guarded = true;                             // false where it is timed
};

// An executor whose inputs are set, to run as often as wanted.
absl::StatusOr<std::unique_ptr<h3::Executor>> MakeExecution(const ReplayModel& model,
                                                            const ReplaySide& side,
                                                            const ExecutionOptions& options,
                                                            h3::TapSink* sink);

// Told about every tensor that an execution handed out; an error stops it.
using Tick = std::function<absl::Status()>;

// Copies every entry into a store, then calls `on_entry` with its index.
class RecordingSink : public h3::TapSink {
 public:
  RecordingSink(const drift::BlockEntries& entries, drift::TensorStore* store,
                std::function<absl::Status(size_t entry)> on_entry)
      : entries_(entries), store_(store), on_entry_(std::move(on_entry)) {}

  bool Wants(absl::string_view name, h3::TapKind kind) const override {
    return entries_.IndexOf(name) >= 0;
  }
  absl::Status OnTensor(const h3::Tap& tap) override;

 private:
  const drift::BlockEntries& entries_;
  drift::TensorStore* const store_;
  const std::function<absl::Status(size_t)> on_entry_;
};

// Compares the bytes of one more execution with those of a store as they come.
class EqualitySink : public h3::TapSink {
 public:
  struct Options {
    std::string variation;
    // The rows that the execution was given; null: all. Of a batch item 0 is compared.
    const drift::RowSelection* selection = nullptr;
    // Which entries.
    std::function<bool(const drift::BlockEntry&)> wants;
    // Where the result of an entry goes.
    std::function<v1::EqualityCheck*(size_t entry)> check;
    std::function<drift::RowNamer(const drift::BlockEntry&)> row_namer;
    Tick tick;
  };

  EqualitySink(const drift::BlockEntries& entries, const drift::TensorStore& first, Device* device,
               Options options)
      : entries_(entries), first_(first), device_(*device), options_(std::move(options)) {}

  bool Wants(absl::string_view name, h3::TapKind kind) const override {
    const int index = entries_.IndexOf(name);
    return index >= 0 && options_.wants(entries_[index]);
  }
  absl::Status OnTensor(const h3::Tap& tap) override;

 private:
  const drift::BlockEntries& entries_;
  const drift::TensorStore& first_;
  Device& device_;
  const Options options_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_REPLAY_EXECUTION_H_
