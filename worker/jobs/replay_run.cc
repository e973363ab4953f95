#include "worker/jobs/replay_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/drift/capture.h"
#include "worker/jobs/replay_timing.h"

namespace plumbline::jobs {
namespace {

using drift::BlockEntry;
using drift::RowSelection;
using drift::TensorStore;

constexpr char kGolden[] = "golden";
constexpr char kRepeat[] = "repeat";
constexpr char kBatchOfTwo[] = "batch of 2";

// Other row counts to run row-wise nodes at: about half of the rows, an odd number of them, none
// where it stood; and a single one, for which kernels often have a path of their own.
std::vector<RowSelection> OtherRowCounts(int64_t rows) {
  std::vector<RowSelection> selections;
  const int64_t half = rows / 2 % 2 == 1 ? rows / 2 : rows / 2 - 1;
  if (half > 1) selections.push_back({1, 2, half});
  if (rows > 1) selections.push_back({rows / 2, 1, 1});
  return selections;
}

bool CanBeRunAmongOthers(const BlockEntry& entry) { return entry.row_wise && !entry.sums_rows; }

}  // namespace

ReplayRun::ReplayRun(ReplaySetup& setup)
    : setup_(setup),
      entries_(*setup.entries),
      device_(*setup.context.device),
      context_(setup.context),
      model_{setup.graph, setup.graph.values()[setup.graph.outputs().front()].name,
             setup.inputs.Rows(), *setup.context.registry, *setup.context.device},
      threads_(device_.Context().threads != nullptr ? *device_.Context().threads : own_threads_),
      weights_(&setup.weights, setup.context.device),
      golden_(setup.context.device),
      provider_(setup.context.device),
      chained_(setup.context.device),
      isolated_(setup.context.device),
      reports_(setup.entries->size()),
      executed_(setup.graph.nodes().size(), true) {
  for (size_t i = 0; i < entries_.size(); ++i) {
    reports_[i].set_name(entries_[i].name);
    reports_[i].set_kind(entries_[i].kind);
    reports_[i].set_node(entries_[i].role);
  }
}

absl::StatusOr<BlockReplayResult> ReplayRun::Run() {
  device_.ResetHighWater();
  total_ = CountTensors();
  PLUMBLINE_RETURN_IF_ERROR(PrepareSides());
  PLUMBLINE_RETURN_IF_ERROR(RunGolden());
  PLUMBLINE_RETURN_IF_ERROR(RunProvider());
  if (setup_.captured_candidate()) {
    PLUMBLINE_RETURN_IF_ERROR(LoadCandidate());
  } else {
    PLUMBLINE_RETURN_IF_ERROR(RunCandidate());
  }
  // The last thing, so that a job that was cancelled leaves no file behind.
  if (!setup_.save_tensors_path.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(
        drift::WriteCapture(setup_.save_tensors_path, entries_, chained_, device_));
  }
  return Finish();
}

int64_t ReplayRun::CountTensors() const {
  const int64_t all = static_cast<int64_t>(entries_.size());
  int64_t total = (setup_.golden.has_value() ? all : 0) + (setup_.provider.has_value() ? all : 0);
  if (setup_.captured_candidate()) return total;
  const int64_t batch = std::count_if(entries_.all().begin(), entries_.all().end(),
                                      [](const BlockEntry& entry) { return !entry.sums_rows; });
  const int64_t row_wise =
      std::count_if(entries_.all().begin(), entries_.all().end(), CanBeRunAmongOthers);
  const int64_t row_counts = static_cast<int64_t>(OtherRowCounts(model_.rows.packed).size());
  return total + 4 * all + batch + row_wise * row_counts;
}

absl::Status ReplayRun::Tick(absl::string_view activity) {
  PLUMBLINE_RETURN_IF_ERROR(context_.check_cancelled());
  v1::Progress progress;
  progress.set_done(std::min(++done_, total_));
  progress.set_total(total_);
  progress.set_unit("tensors");
  progress.set_activity(absl::StrCat(setup_.inputs.label, ": ", activity));
  context_.on_progress(progress);
  return absl::OkStatus();
}

absl::Status ReplayRun::PrepareSides() {
  const auto make_inputs =
      [&](const h3::BlockInputs& values) -> absl::StatusOr<std::unique_ptr<DeviceInputs>> {
    PLUMBLINE_ASSIGN_OR_RETURN(DeviceInputs made,
                               DeviceInputs::Make(device_, values, nullptr, setup_.backward));
    return std::make_unique<DeviceInputs>(std::move(made));
  };
  PLUMBLINE_ASSIGN_OR_RETURN(inputs_, make_inputs(setup_.inputs.values));
  if (setup_.golden.has_value()) golden_side_ = {&*setup_.golden, &weights_, inputs_.get(), {}};
  if (setup_.provider.has_value()) {
    provider_side_ = {&*setup_.provider, &weights_, inputs_.get(), {}};
  }
  if (!setup_.candidate.has_value()) return absl::OkStatus();
  candidate_side_ = {&*setup_.candidate, &weights_, inputs_.get(), {}};
  if (!setup_.fault.has_value()) return absl::OkStatus();
  const drift::Fault& fault = *setup_.fault;
  candidate_side_.faults = fault.operations;
  if (fault.weights != nullptr) {
    faulty_weights_ = std::make_unique<h3::DeviceWeights>(fault.weights.get(), &device_);
    candidate_side_.weights = faulty_weights_.get();
  }
  if (fault.change_layout != nullptr) {
    h3::BlockInputs changed = setup_.inputs.values;
    fault.change_layout(&changed.layout);
    PLUMBLINE_ASSIGN_OR_RETURN(candidate_inputs_, make_inputs(changed));
    candidate_side_.inputs = candidate_inputs_.get();
  }
  return absl::OkStatus();
}

absl::Status ReplayRun::Execute(const ReplaySide& side, const ExecutionOptions& options,
                                h3::TapSink* sink) {
  PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<h3::Executor> executor,
                             MakeExecution(model_, side, options, sink));
  PLUMBLINE_RETURN_IF_ERROR(executor->Run());
  if (side.composition == candidate_side_.composition) {
    NoteTraces(executor->trace(), options.backward);
  }
  return absl::OkStatus();
}

absl::Status ReplayRun::RunGolden() {
  if (setup_.captures.golden != nullptr) {
    report_.add_captured(kGolden);
    return drift::LoadCapture("block_replay.captures.golden", *setup_.captures.golden, entries_,
                              *setup_.entries_with_gradients, &golden_);
  }
  RecordingSink sink(entries_, &golden_, [&](size_t) { return Tick(kGolden); });
  return Execute(golden_side_, {setup_.backward}, &sink);
}

absl::Status ReplayRun::RunProvider() {
  const auto compare = [&](size_t entry) -> absl::Status {
    PLUMBLINE_ASSIGN_OR_RETURN(*reports_[entry].mutable_provider_error(),
                               Compare(entry, kGolden, golden_, setup_.provider_name, provider_));
    return absl::OkStatus();
  };
  if (setup_.captures.provider != nullptr) {
    report_.add_captured(setup_.provider_name);
    PLUMBLINE_RETURN_IF_ERROR(drift::LoadCapture("block_replay.captures.providers",
                                                 *setup_.captures.provider, entries_,
                                                 *setup_.entries_with_gradients, &provider_));
    for (size_t i = 0; i < entries_.size(); ++i) PLUMBLINE_RETURN_IF_ERROR(compare(i));
    return absl::OkStatus();
  }
  RecordingSink sink(entries_, &provider_, [&](size_t entry) {
    PLUMBLINE_RETURN_IF_ERROR(compare(entry));
    return Tick(setup_.provider_name);
  });
  return Execute(provider_side_, {setup_.backward}, &sink);
}

absl::Status ReplayRun::LoadCandidate() {
  report_.add_captured("candidate");
  PLUMBLINE_RETURN_IF_ERROR(drift::LoadCapture("block_replay.captures.candidate",
                                               *setup_.captures.candidate, entries_,
                                               *setup_.entries_with_gradients, &chained_));
  for (size_t i = 0; i < entries_.size(); ++i) {
    PLUMBLINE_RETURN_IF_ERROR(CompareChained(i));
    reports_[i].mutable_repeat()->set_result(v1::EQUALITY_NOT_MEASURED);
    if (entries_[i].sums_rows) continue;
    reports_[i].mutable_batch()->set_result(v1::EQUALITY_NOT_MEASURED);
  }
  return absl::OkStatus();
}

// Whatever is not needed any more is dropped at once: at the released size a set of tensors is
// tens of gigabytes.
absl::Status ReplayRun::RunCandidate() {
  PLUMBLINE_RETURN_IF_ERROR(RunChained());
  PLUMBLINE_RETURN_IF_ERROR(RunIsolated());
  golden_.Clear();
  PLUMBLINE_RETURN_IF_ERROR(Repeat(chained_, nullptr));
  PLUMBLINE_RETURN_IF_ERROR(Repeat(isolated_, &provider_));
  isolated_.Clear();
  provider_.Clear();
  PLUMBLINE_RETURN_IF_ERROR(RunInBatch());
  for (const RowSelection& selection : OtherRowCounts(model_.rows.packed)) {
    PLUMBLINE_RETURN_IF_ERROR(RunAmongOtherRows(selection));
  }
  PLUMBLINE_RETURN_IF_ERROR(RunPermuted());
  return Time();
}

absl::Status ReplayRun::RunChained() {
  RecordingSink sink(entries_, &chained_, [&](size_t entry) {
    PLUMBLINE_RETURN_IF_ERROR(CompareChained(entry));
    Send(entry, v1::FEED_CHAINED, reports_[entry].chained_error());
    return Tick(absl::StrCat(setup_.candidate_name, ", chained"));
  });
  return Execute(candidate_side_, {setup_.backward}, &sink);
}

absl::Status ReplayRun::RunIsolated() {
  RecordingSink sink(entries_, &isolated_, [&](size_t entry) -> absl::Status {
    v1::EntryReport& report = reports_[entry];
    PLUMBLINE_ASSIGN_OR_RETURN(
        *report.mutable_isolated(),
        Compare(entry, setup_.provider_name, provider_, setup_.candidate_name, isolated_));
    PLUMBLINE_ASSIGN_OR_RETURN(*report.mutable_isolated_error(),
                               Compare(entry, kGolden, golden_, setup_.candidate_name, isolated_));
    // What is decided already; equality over executions is still open.
    if (!setup_.is_reference()) {
      drift::JudgeEntry(entries_[entry], drift::CandidateKind::kExecuted, true, &report);
    }
    Send(entry, v1::FEED_ISOLATED, report.isolated());
    return Tick(absl::StrCat(setup_.candidate_name, ", isolated"));
  });
  return Execute(candidate_side_, {setup_.backward, &provider_}, &sink);
}

absl::Status ReplayRun::Repeat(const TensorStore& first, const h3::TensorSource* isolated_from) {
  EqualitySink::Options options;
  options.variation = kRepeat;
  options.wants = [](const BlockEntry&) { return true; };
  options.check = [&](size_t entry) { return reports_[entry].mutable_repeat(); };
  options.row_namer = [&](const BlockEntry& entry) { return NamerOf(entry); };
  options.tick = [&] { return Tick(kRepeat); };
  EqualitySink sink(entries_, first, &device_, std::move(options));
  return Execute(candidate_side_, {setup_.backward, isolated_from}, &sink);
}

absl::Status ReplayRun::RunInBatch() {
  h3::BlockInputs values = setup_.inputs.values;
  PLUMBLINE_ASSIGN_OR_RETURN(
      const h3::BlockInputs other,
      h3::StandInBlockInputs(setup_.weights.config(), values.layout, h3::kOtherBatchItemSeed));
  if (setup_.fault.has_value() && setup_.fault->change_layout != nullptr) {
    setup_.fault->change_layout(&values.layout);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceInputs inputs,
                             DeviceInputs::Make(device_, values, &other, setup_.backward));
  ReplaySide side = candidate_side_;
  side.inputs = &inputs;

  EqualitySink::Options options;
  options.variation = kBatchOfTwo;
  options.wants = [](const BlockEntry& entry) { return !entry.sums_rows; };
  options.check = [&](size_t entry) { return reports_[entry].mutable_batch(); };
  options.row_namer = [&](const BlockEntry& entry) { return NamerOf(entry); };
  options.tick = [&] { return Tick(kBatchOfTwo); };
  EqualitySink sink(entries_, chained_, &device_, std::move(options));
  return Execute(side, {setup_.backward, nullptr, nullptr, 2}, &sink);
}

absl::Status ReplayRun::RunAmongOtherRows(const RowSelection& selection) {
  const std::string variation = absl::StrCat("rows ", selection.count, " of ", model_.rows.packed);
  const drift::SelectedRows fed(setup_.graph, chained_, selection);
  EqualitySink::Options options;
  options.variation = variation;
  options.selection = &selection;
  options.wants = CanBeRunAmongOthers;
  options.check = [&](size_t entry) { return reports_[entry].mutable_batch(); };
  options.row_namer = [&](const BlockEntry& entry) { return NamerOf(entry); };
  options.tick = [&] { return Tick(variation); };
  EqualitySink sink(entries_, chained_, &device_, std::move(options));
  return Execute(candidate_side_, {setup_.backward, &fed, &selection}, &sink);
}

absl::Status ReplayRun::Time() {
  const ReplaySide* provider = setup_.provider.has_value() ? &provider_side_ : nullptr;
  for (bool backward : {false, true}) {
    if (backward && !setup_.backward) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(*report_.add_timings(),
                               MeasureTimes(model_, candidate_side_, provider, backward,
                                            *context_.clock, [&] { return Tick("timing"); }));
  }
  return absl::OkStatus();
}

}  // namespace plumbline::jobs
