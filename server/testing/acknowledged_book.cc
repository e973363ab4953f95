#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "server/store/testing/step_store_harness.h"
#include "server/testing/acknowledged_load.h"

namespace plumbline::server {
namespace {

constexpr size_t kMostProblems = 50;

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(SystemClock()->Now() + absl::Minutes(1)));
}

std::string JobOf(const std::string& task) { return task.substr(0, task.find("/tasks/")); }

}  // namespace

void AcknowledgedBook::Created(const std::string& request_id, const std::string& job) {
  absl::MutexLock lock(&mutex_);
  jobs_[job].request_id = request_id;
  ++operations_;
}

void AcknowledgedBook::Cancelled(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  jobs_[job].cancelled = true;
  ++operations_;
}

void AcknowledgedBook::Deletes(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  jobs_[job].deletes = true;
}

void AcknowledgedBook::Deleted(const std::string& job) {
  absl::MutexLock lock(&mutex_);
  jobs_[job].deleted = true;
  ++operations_;
}

void AcknowledgedBook::Reported(const std::string& task, int32_t attempt, int64_t count) {
  absl::MutexLock lock(&mutex_);
  int64_t& newest = tasks_[JobOf(task)][task].events[attempt];
  newest = std::max(newest, count);
  ++operations_;
}

void AcknowledgedBook::Completed(const std::string& task, const std::string& verdict) {
  absl::MutexLock lock(&mutex_);
  std::string& known = tasks_[JobOf(task)][task].verdict;
  if (!known.empty() && known != verdict) WrongLocked(absl::StrCat(task, " is done twice"));
  known = verdict;
  ++operations_;
}

void AcknowledgedBook::Saved(uint64_t seed, int32_t step) {
  absl::MutexLock lock(&mutex_);
  steps_[seed].insert(step);
  ++operations_;
}

void AcknowledgedBook::Computes(uint64_t seed, int32_t step) {
  absl::MutexLock lock(&mutex_);
  if (steps_[seed].count(step) == 0 || bytes_may_rot_) return;
  WrongLocked(
      absl::StrCat("step ", step, " of seed ", seed, " was acknowledged and is computed again"));
}

void AcknowledgedBook::Given(const std::string& task) {
  absl::MutexLock lock(&mutex_);
  if (tasks_[JobOf(task)][task].verdict.empty()) return;
  WrongLocked(absl::StrCat(task, " is done and is given to a worker"));
}

void AcknowledgedBook::BytesMayRot() {
  absl::MutexLock lock(&mutex_);
  bytes_may_rot_ = true;
}

void AcknowledgedBook::DeletesRun(uint64_t seed) {
  absl::MutexLock lock(&mutex_);
  steps_.erase(seed);
}

bool AcknowledgedBook::MayBeGone(const std::string& job) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = jobs_.find(job);
  return entry != jobs_.end() && entry->second.deletes;
}

void AcknowledgedBook::Wrong(std::string sentence) {
  absl::MutexLock lock(&mutex_);
  WrongLocked(std::move(sentence));
}

void AcknowledgedBook::WrongLocked(std::string sentence) {
  Note("PROBLEM", sentence);
  if (problems_.size() < kMostProblems) problems_.push_back(std::move(sentence));
}

void AcknowledgedBook::Note(absl::string_view who, absl::string_view what) {
  if (journal_ != nullptr) journal_->Note(who, what);
}

std::vector<std::string> AcknowledgedBook::problems() const {
  absl::MutexLock lock(&mutex_);
  return problems_;
}

std::string AcknowledgedBook::Summary() const {
  absl::MutexLock lock(&mutex_);
  int64_t completed = 0, events = 0, steps = 0;
  for (const auto& [job, tasks] : tasks_) {
    for (const auto& [name, task] : tasks) {
      completed += task.verdict.empty() ? 0 : 1;
      for (const auto& [attempt, count] : task.events) events += count;
    }
  }
  for (const auto& [seed, saved] : steps_) steps += static_cast<int64_t>(saved.size());
  return absl::StrCat(jobs_.size(), " jobs, ", completed, " verdicts, ", events, " events, ", steps,
                      " steps acknowledged; ", problems_.size(), " problems");
}

void AcknowledgedBook::Check(const std::shared_ptr<grpc::Channel>& channel, size_t count,
                             std::mt19937* random, bool may_end) {
  std::vector<std::pair<std::string, Entries>> chosen;
  {
    absl::MutexLock lock(&mutex_);
    std::vector<std::string> names;
    for (const auto& [name, entry] : jobs_) names.push_back(name);
    if (count > 0 && count < names.size()) {
      std::shuffle(names.begin(), names.end(), *random);
      names.resize(count);
    }
    for (const std::string& name : names) {
      const auto tasks = tasks_.find(name);
      chosen.push_back({name,
                        {jobs_[name], tasks == tasks_.end() ? std::map<std::string, TaskEntry>()
                                                            : tasks->second}});
    }
  }
  const auto stub = v1::JobService::NewStub(channel);
  for (const auto& [name, entries] : chosen) {
    const grpc::Status status = CheckJob(stub.get(), name, entries);
    if (status.ok()) continue;
    if (!may_end) Wrong(absl::StrCat(name, " cannot be asked for: ", status.error_message()));
    return;
  }
  if (count == 0) CheckSteps(channel);
}

void AcknowledgedBook::CheckSteps(const std::shared_ptr<grpc::Channel>& channel) {
  std::map<uint64_t, std::set<int32_t>> expected;
  {
    absl::MutexLock lock(&mutex_);
    if (bytes_may_rot_) return;
    expected = steps_;
  }
  const auto stub = v1::WorkerService::NewStub(channel);
  for (const auto& [seed, steps] : expected) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::GetStepRequest request;
    request.set_run("runs/" + RunIdOf(seed));
    if (!steps.empty()) request.set_count(*steps.rbegin() + 1);
    const auto stream = stub->GetStep(&context, request);
    v1::GetStepResponse response;
    std::set<int32_t> there;
    while (stream->Read(&response)) {
      if (response.has_record()) there.insert(response.record().index());
    }
    const std::string answer = Describe("GetStep", context, stream->Finish());
    for (const int32_t step : steps) {
      if (there.count(step) > 0) continue;
      Wrong(absl::StrCat("step ", step, " of seed ", seed, " was acknowledged and is not there; ",
                         answer));
    }
  }
}

grpc::Status AcknowledgedBook::CheckJob(v1::JobService::Stub* stub, const std::string& name,
                                        const Entries& entries) {
  v1::Job job;
  {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::GetJobRequest request;
    request.set_name(name);
    const grpc::Status status = stub->GetJob(&context, request, &job);
    const std::string answer = Describe("GetJob", context, status);
    if (!status.ok()) Note("check", absl::StrCat(name, ": ", answer));
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return status;
    if (entries.job.deleted) {
      if (status.error_code() != grpc::StatusCode::NOT_FOUND) {
        Wrong(absl::StrCat(name, " was deleted; ", answer));
      }
      return grpc::Status::OK;
    }
    if (!status.ok()) {
      if (status.error_code() != grpc::StatusCode::NOT_FOUND || !MayBeGone(name)) {
        Wrong(absl::StrCat(name, " is gone; ", answer));
      }
      return grpc::Status::OK;
    }
  }
  if (entries.job.cancelled && !job.cancel_requested() && job.state() != v1::JOB_STATE_CANCELLED &&
      job.state() != v1::JOB_STATE_SUCCEEDED && job.state() != v1::JOB_STATE_FAILED) {
    Wrong(absl::StrCat(name, " was cancelled and goes on"));
  }
  for (const v1::Task& task : job.tasks()) {
    const auto entry = entries.tasks.find(task.name());
    if (entry == entries.tasks.end() || entry->second.verdict.empty()) continue;
    if (task.state() != v1::JOB_STATE_SUCCEEDED) {
      Wrong(absl::StrCat(task.name(), " was done and is ", v1::JobState_Name(task.state())));
    } else if (task.verdict().sentence() != entry->second.verdict) {
      Wrong(absl::StrCat(task.name(), " has the verdict ", task.verdict().sentence(), ", not ",
                         entry->second.verdict));
    }
  }
  return CheckEvents(stub, job, entries);
}

grpc::Status AcknowledgedBook::CheckEvents(v1::JobService::Stub* stub, const v1::Job& job,
                                           const Entries& entries) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WatchJobRequest request;
  request.set_name(job.name());
  const auto stream = stub->WatchJob(&context, request);
  v1::JobEvent event;
  int64_t sequence = 0;
  std::map<std::string, std::map<int32_t, int64_t>> logs;
  std::map<std::string, int> reports;
  std::map<std::string, int32_t> superseded;
  bool ended = false;  // By itself: cancelled after that, its status would be the cancellation's.
  while (sequence < job.last_sequence()) {
    ended = !stream->Read(&event);
    if (ended) break;
    if (event.sequence() != ++sequence) {
      Wrong(absl::StrCat(job.name(), ": event ", event.sequence(), " comes as number ", sequence));
      break;
    }
    if (event.has_log()) {
      int64_t& newest = logs[event.task()][event.attempt()];
      if (event.log().message() != absl::StrCat(++newest)) {
        Wrong(absl::StrCat(event.task(), " attempt ", event.attempt(), ": event ",
                           event.log().message(), " comes as number ", newest));
      }
      const auto dead = superseded.find(event.task());
      if (dead != superseded.end() && event.attempt() <= dead->second) {
        Wrong(absl::StrCat(event.task(), ": attempt ", event.attempt(),
                           " wrote after it was superseded"));
      }
    }
    if (event.has_report_ready() && !event.task().empty()) ++reports[event.task()];
    if (event.has_attempt_superseded()) {
      superseded[event.task()] = event.attempt_superseded().superseded_attempt();
    }
  }
  if (!ended) {
    context.TryCancel();
    while (stream->Read(&event)) {
    }
  }
  const grpc::Status status = stream->Finish();
  const std::string answer = absl::StrCat(Describe("WatchJob", context, status), ", after event ",
                                          sequence, ended ? "" : ", cancelled by this test");
  if (ended && !status.ok()) Note("check", absl::StrCat(job.name(), ": ", answer));
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return status;
  // One that was deleted meanwhile has none any more.
  if (sequence < job.last_sequence() && MayBeGone(job.name())) return grpc::Status::OK;
  if (sequence < job.last_sequence()) {
    Wrong(absl::StrCat(job.name(), " has ", job.last_sequence(), " events and shows ", sequence,
                       "; ", answer));
  }
  for (const auto& [task, entry] : entries.tasks) {
    for (const auto& [attempt, count] : entry.events) {
      if (logs[task][attempt] < count) {
        Wrong(absl::StrCat(task, " attempt ", attempt, ": ", count,
                           " events were acknowledged, there are ", logs[task][attempt], "; ",
                           answer));
      }
    }
    if (!entry.verdict.empty() && reports[task] != 1) {
      Wrong(absl::StrCat(task, " has ", reports[task], " reports; ", answer));
    }
  }
  return grpc::Status::OK;
}

}  // namespace plumbline::server
