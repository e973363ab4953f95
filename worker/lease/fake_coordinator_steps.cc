// The step store of the coordinator in memory.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/lease/fake_coordinator.h"

namespace plumbline::worker {

void FakeCoordinator::FailPuts(std::vector<PutFault> faults) {
  absl::MutexLock lock(&mutex_);
  put_faults_.assign(faults.begin(), faults.end());
}

void FakeCoordinator::BreakStreams(std::vector<int> steps) {
  absl::MutexLock lock(&mutex_);
  broken_streams_.assign(steps.begin(), steps.end());
}

void FakeCoordinator::Quarantine(const std::string& run, int32_t step) {
  absl::MutexLock lock(&mutex_);
  runs_[run][step].record.set_quarantined(true);
}

int FakeCoordinator::put_step_calls() const {
  absl::MutexLock lock(&mutex_);
  return put_step_calls_;
}

int FakeCoordinator::get_step_calls() const {
  absl::MutexLock lock(&mutex_);
  return get_step_calls_;
}

int FakeCoordinator::verify_run_calls() const {
  absl::MutexLock lock(&mutex_);
  return verify_run_calls_;
}

absl::StatusOr<v1::PutStepResponse> FakeCoordinator::PutStep(
    const v1::PutStepRequest::Header& header, absl::Span<const absl::string_view> tensors,
    const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  ++put_step_calls_;
  if (away_) return absl::UnavailableError("the coordinator is away");
  PLUMBLINE_RETURN_IF_ERROR(CheckLease(header.fencing_token()));
  PutFault fault;
  if (!put_faults_.empty()) {
    fault = std::move(put_faults_.front());
    put_faults_.pop_front();
  }
  if (!fault.status.ok() && !fault.stored) return fault.status;

  const std::string run = absl::StrCat("runs/", header.identity().sha256());
  v1::PutStepResponse response;
  if (!header.has_record()) {
    runs_[run];  // The run alone.
    return response;
  }
  StoredStep& step = runs_[run][header.record().index()];
  std::string bytes;
  for (const absl::string_view tensor : tensors) absl::StrAppend(&bytes, tensor);
  if (!step.record.input_digest().empty() && !step.record.quarantined()) {
    if (step.bytes != bytes) {
      return absl::DataLossError(
          absl::StrCat(run, ": step ", header.record().index(), " is there with other bytes"));
    }
    response.set_already_stored(true);
  } else {
    step.bytes = std::move(bytes);
    step.record = header.record();
    step.record.set_run(run);
    step.record.set_quarantined(false);
  }
  *response.mutable_record() = step.record;
  if (!fault.status.ok()) return fault.status;
  return response;
}

absl::Status FakeCoordinator::GetSteps(
    const v1::GetStepRequest& request,
    absl::FunctionRef<absl::Status(v1::StepRecord record, absl::string_view bytes)> sink,
    const CallOptions& options) {
  std::vector<StoredStep> steps;
  int breaks_after = -1;
  {
    absl::MutexLock lock(&mutex_);
    ++get_step_calls_;
    if (away_) return absl::UnavailableError("the coordinator is away");
    if (!broken_streams_.empty()) {
      breaks_after = broken_streams_.front();
      broken_streams_.pop_front();
    }
    const std::map<int32_t, StoredStep>& run = runs_[request.run()];
    for (int32_t i = request.index(); i < request.index() + std::max(request.count(), 1); ++i) {
      const auto found = run.find(i);
      if (found == run.end() || found->second.record.quarantined()) break;
      steps.push_back(found->second);
    }
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    if (static_cast<int>(i) == breaks_after) return absl::UnavailableError("the stream broke");
    PLUMBLINE_RETURN_IF_ERROR(sink(steps[i].record, steps[i].bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Run> FakeCoordinator::GetRun(const v1::GetRunRequest& request,
                                                const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (away_) return absl::UnavailableError("the coordinator is away");
  const auto found = runs_.find(request.name());
  if (found == runs_.end()) return absl::NotFoundError(request.name());
  v1::Run run;
  run.set_name(request.name());
  for (const auto& [index, step] : found->second) *run.add_steps() = step.record;
  return run;
}

absl::StatusOr<v1::VerifyRunResponse> FakeCoordinator::VerifyRun(
    const v1::VerifyRunRequest& request, const CallOptions& options) {
  absl::MutexLock lock(&mutex_);
  ++verify_run_calls_;
  if (away_) return absl::UnavailableError("the coordinator is away");
  return v1::VerifyRunResponse();
}

}  // namespace plumbline::worker
