#include "worker/jobs/replay_execution.h"

#include <utility>

#include "common/status.h"
#include "worker/drift/equality.h"

namespace plumbline::jobs {

absl::StatusOr<std::unique_ptr<h3::Executor>> MakeExecution(const ReplayModel& model,
                                                            const ReplaySide& side,
                                                            const ExecutionOptions& options,
                                                            h3::TapSink* sink) {
  h3::PlanOptions plan;
  plan.rows = model.rows;
  if (options.selection != nullptr) plan.rows.packed = options.selection->count;
  plan.batch = options.batch;
  plan.backward = options.backward;
  plan.isolated_from = options.isolated_from;
  plan.faults = side.faults;
  plan.guarded = options.guarded;
  PLUMBLINE_ASSIGN_OR_RETURN(
      std::unique_ptr<h3::Executor> executor,
      h3::Executor::Create(model.graph, *side.composition, model.registry, *side.weights,
                           model.device, sink, std::move(plan)));
  PLUMBLINE_RETURN_IF_ERROR(side.inputs->Set(
      *executor, options.backward ? absl::string_view(model.output) : "", options.selection));
  return executor;
}

absl::Status RecordingSink::OnTensor(const h3::Tap& tap) {
  PLUMBLINE_RETURN_IF_ERROR(store_->Put(tap.name, tap.tensor));
  return on_entry_(static_cast<size_t>(entries_.IndexOf(tap.name)));
}

absl::Status EqualitySink::OnTensor(const h3::Tap& tap) {
  const size_t index = static_cast<size_t>(entries_.IndexOf(tap.name));
  const drift::BlockEntry& entry = entries_[index];
  PLUMBLINE_ASSIGN_OR_RETURN(Tensor first, first_.Find(tap.name));
  Tensor other = tap.tensor;
  other.batch = 1;
  drift::RowNamer name_row = options_.row_namer(entry);
  if (options_.selection != nullptr && entry.packed) {
    first = options_.selection->Of(first);
    name_row = [name_row, selection = *options_.selection](int64_t batch, int64_t row) {
      return name_row(batch, selection.Row(row));
    };
  }
  PLUMBLINE_RETURN_IF_ERROR(drift::AddExecutionOnDevice(device_, first, other, options_.variation,
                                                        name_row, options_.check(index)));
  return options_.tick();
}

}  // namespace plumbline::jobs
