// What a replay makes of its tensors: comparisons, judgement, the report.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/drift/compare.h"
#include "worker/drift/faults.h"
#include "worker/drift/row_names.h"
#include "worker/jobs/replay_run.h"

namespace plumbline::jobs {
namespace {

using drift::BlockEntry;
using drift::RowSelection;
using drift::TensorStore;

v1::NodeStatus StatusToProto(BindingStatus status) {
  switch (status) {
    case BindingStatus::kBound:
      return v1::NODE_STATUS_BOUND;
    case BindingStatus::kInterim:
      return v1::NODE_STATUS_INTERIM;
    case BindingStatus::kReference:
      return v1::NODE_STATUS_REFERENCE;
  }
  return v1::NODE_STATUS_UNSPECIFIED;
}

// Keeps the output of the block alone.
class OutputSink : public h3::TapSink {
 public:
  OutputSink(const std::string& output, TensorStore* store) : output_(output), store_(store) {}
  bool Wants(absl::string_view name, h3::TapKind kind) const override { return name == output_; }
  absl::Status OnTensor(const h3::Tap& tap) override { return store_->Put(tap.name, tap.tensor); }

 private:
  const std::string& output_;
  TensorStore* const store_;
};

}  // namespace

drift::RowNamer ReplayRun::NamerOf(const BlockEntry& entry) const {
  return entry.packed ? drift::PackedRowNamer(setup_.inputs.values.layout) : drift::NameOtherRow;
}

absl::StatusOr<v1::TensorComparison> ReplayRun::Compare(size_t entry,
                                                        absl::string_view reference_name,
                                                        TensorStore& reference,
                                                        absl::string_view name, TensorStore& x) {
  const BlockEntry& about = entries_[entry];
  // A gradient never leaves a GPU, so that nobody there can tell its digest.
  const bool digested = device_.kind() == DeviceKind::kCpu || about.kind == v1::ENTRY_KIND_FORWARD;
  const auto side = [&](TensorStore& store) -> absl::StatusOr<drift::ComparedTensor> {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store.Find(about.tensor_name));
    drift::ComparedTensor compared{tensor, about.shape, ""};
    if (digested) {
      PLUMBLINE_ASSIGN_OR_RETURN(compared.sha256, store.Sha256(about.tensor_name));
    }
    return compared;
  };
  PLUMBLINE_ASSIGN_OR_RETURN(const drift::ComparedTensor a, side(reference));
  PLUMBLINE_ASSIGN_OR_RETURN(const drift::ComparedTensor b, side(x));
  return drift::CompareOnDevice(device_, reference_name, a, name, b, NamerOf(about), threads_);
}

absl::Status ReplayRun::CompareChained(size_t entry) {
  v1::EntryReport& report = reports_[entry];
  PLUMBLINE_ASSIGN_OR_RETURN(
      *report.mutable_chained(),
      Compare(entry, setup_.provider_name, provider_, setup_.candidate_name, chained_));
  PLUMBLINE_ASSIGN_OR_RETURN(*report.mutable_chained_error(),
                             Compare(entry, "golden", golden_, setup_.candidate_name, chained_));
  report.set_sha256(report.chained_error().sha256());
  const double provider = report.provider_error().relative_l2();
  if (provider > 0) report.set_error_ratio(report.chained_error().relative_l2() / provider);
  return absl::OkStatus();
}

void ReplayRun::Send(size_t entry, v1::Feed feed, const v1::TensorComparison& comparison) {
  v1::NodeEvent event;
  event.set_layout(setup_.inputs.label);
  event.set_entry(entries_[entry].name);
  event.set_kind(entries_[entry].kind);
  event.set_composition(setup_.candidate_name);
  event.set_feed(feed);
  *event.mutable_comparison() = comparison;
  for (const v1::GateResult& gate : reports_[entry].gates()) {
    if (!gate.passed() && !gate.not_measured()) event.add_failed_gates(gate.gate());
  }
  context_.on_node(event);
}

absl::Status ReplayRun::RunPermuted() {
  const RowSelection reversed = RowSelection::Reversed(model_.rows.packed);
  TensorStore store(&device_);
  OutputSink sink(model_.output, &store);
  PLUMBLINE_RETURN_IF_ERROR(
      Execute(candidate_side_, {/*backward=*/false, nullptr, &reversed}, &sink));
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor permuted, store.Find(model_.output));
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor straight, chained_.Find(model_.output));
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, drift::ToHost(device_, permuted));
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor reference, drift::ToHost(device_, straight));
  const std::vector<int64_t> shape = {1, straight.rows, straight.width};
  const drift::ComparedTensor back = {reversed.Of(host.tensor), shape, ""};
  const v1::TensorComparison found =
      drift::CompareTensors(setup_.candidate_name, {reference.tensor, shape, ""}, "permuted", back,
                            drift::NameOtherRow, threads_);
  int32_t rows_changed = 0;
  const size_t row_bytes = straight.width * DTypeSize(straight.dtype);
  for (int64_t row = 0; row < straight.rows; ++row) {
    const char* const a = reference.tensor.Row<const char>(0) + row * row_bytes;
    const char* const b = host.tensor.Row<const char>(0) + reversed.Row(row) * row_bytes;
    if (std::memcmp(a, b, row_bytes) != 0) ++rows_changed;
  }
  v1::PermutationControl& control = *report_.mutable_permutation();
  control.set_rows(static_cast<int32_t>(straight.rows));
  control.set_rows_changed(rows_changed);
  control.set_relative_l2(found.relative_l2());
  control.set_max_abs(found.max_abs());
  return absl::OkStatus();
}

// A fused operation of the requested implementation is what was asked for.
bool ReplayRun::RanAsRequested(const h3::NodeTrace& trace) const {
  if (trace.actual == trace.requested) return true;
  for (const FusedRegistration* fused : model_.registry.Fused(trace.requested, device_.kind())) {
    if (fused->name == trace.actual) return true;
  }
  return false;
}

void ReplayRun::NoteTraces(const std::vector<h3::NodeTrace>& traces, bool backward) {
  // The first one is the chained execution, which reports tell of.
  if (traces_.empty()) traces_ = traces;
  for (size_t i = 0; i < traces.size(); ++i) {
    const bool ran = traces[i].executed_forward && (!backward || traces[i].executed_backward);
    if (!ran || !RanAsRequested(traces[i])) executed_[i] = false;
  }
}

void ReplayRun::SetImplementations() {
  if (traces_.empty()) return;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const h3::NodeTrace& trace = traces_[entries_[i].node];
    v1::Implementation& implementation = *reports_[i].mutable_implementation();
    implementation.set_requested(trace.requested);
    implementation.set_owner(trace.owner);
    implementation.set_status(StatusToProto(trace.status));
    // Fused operations are forward only; the unfused backwards serve them.
    const bool unfused = entries_[i].kind != v1::ENTRY_KIND_FORWARD && RanAsRequested(trace);
    implementation.set_actual(unfused ? trace.requested : trace.actual);
  }
}

void ReplayRun::JudgeAll() {
  const drift::CandidateKind kind = setup_.captured_candidate() ? drift::CandidateKind::kCaptured
                                                                : drift::CandidateKind::kExecuted;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (setup_.is_reference()) {
      reports_[i].set_passed(true);
    } else {
      drift::JudgeEntry(entries_[i], kind, executed_[entries_[i].node], &reports_[i]);
    }
  }
}

// Gates hold every implementation to the same; what one promised and did not keep is said besides,
// of the first place where it shows.
void ReplayRun::AddBrokenPromises(std::vector<std::string>* qualifications) const {
  if (traces_.empty()) return;
  const auto broken = [&](auto check, bool h3::NodeTrace::*promise, absl::string_view what) {
    for (size_t i = 0; i < entries_.size(); ++i) {
      if ((reports_[i].*check)().result() != v1::EQUALITY_DIFFERENT) continue;
      const h3::NodeTrace& trace = traces_[entries_[i].node];
      if (trace.*promise) {
        qualifications->push_back(absl::StrCat(trace.requested, " promises to be ", what,
                                               " and is not, at ", entries_[i].name));
      }
      return;  // What comes after it may only follow from it.
    }
  };
  broken(&v1::EntryReport::repeat, &h3::NodeTrace::promises_repeatable, "repeatable");
  broken(&v1::EntryReport::batch, &h3::NodeTrace::promises_row_invariant, "row-invariant");
}

BlockReplayResult ReplayRun::Finish() {
  SetImplementations();
  JudgeAll();
  const drift::CandidateKind kind = setup_.captured_candidate() ? drift::CandidateKind::kCaptured
                                                                : drift::CandidateKind::kExecuted;
  BlockReplayResult result;
  result.composition = setup_.candidate_name;
  result.hybrid = setup_.composition.IsHybrid();
  std::vector<std::string> qualifications;
  if (result.hybrid) qualifications.push_back("hybrid composition: diagnostic only");
  if (setup_.candidate.has_value()) {
    for (const std::string& empty : setup_.candidate->empty_overrides) {
      qualifications.push_back(absl::StrCat(empty, " names no node of this block"));
    }
  }
  if (setup_.fault.has_value()) {
    qualifications.push_back(absl::StrCat("fault ", setup_.fault->info->name, " injected"));
  }
  AddBrokenPromises(&qualifications);
  if (!setup_.inert_fault.empty()) qualifications.push_back(setup_.inert_fault);
  result.verdict =
      setup_.is_reference()
          ? drift::NotJudged(setup_.inputs.label, setup_.candidate_name)
          : drift::JudgeReplay(reports_, setup_.inputs.label, std::move(qualifications));
  if (setup_.fault.has_value()) {
    result.control = drift::JudgeControl(*setup_.fault->info, &result.verdict);
  }

  *report_.mutable_layout() = setup_.inputs.layout;
  report_.set_rows(static_cast<int32_t>(model_.rows.packed));
  report_.set_block(static_cast<int32_t>(setup_.block));
  for (float timestep : setup_.inputs.values.layout.timestep) report_.add_timesteps(timestep);
  report_.set_backward(setup_.backward);
  for (auto& [name, digest] : InputDigests(setup_.inputs, setup_.backward)) {
    (*report_.mutable_input_sha256())[name] = digest;
  }
  *report_.mutable_firsts() = drift::FindFirsts(reports_, kind, setup_.backward);
  for (v1::EntryReport& entry : reports_) *report_.add_entries() = std::move(entry);
  report_.set_peak_memory_bytes(device_.HighWaterBytes());
  result.report = std::move(report_);
  return result;
}

}  // namespace plumbline::jobs
