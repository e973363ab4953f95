#include "server/retention.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/logging.h"
#include "common/status.h"
#include "server/caller.h"

namespace plumbline::server {
namespace {

// So many jobs are looked at before others may stop it.
constexpr int kPageJobs = 256;

}  // namespace

Retention::Retention(Clock* clock, Store* store, Dispatcher* dispatcher, ArtifactFiles* files,
                     RetentionOptions options)
    : clock_(clock), store_(store), dispatcher_(dispatcher), files_(files), options_(options) {
  if (options_.keep_jobs == absl::InfiniteDuration() &&
      options_.keep_events == absl::InfiniteDuration()) {
    return;
  }
  thread_ = std::thread([this] { Loop(); });
}

Retention::~Retention() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

bool Retention::stopping() const {
  absl::MutexLock lock(&mutex_);
  return stopping_;
}

void Retention::Loop() {
  while (true) {
    const absl::Time now = clock_->Now();
    absl::Status status = DeleteJobs(now - options_.keep_jobs);
    status.Update(TrimEvents(now - options_.keep_events));
    if (!status.ok()) {
      Log(LogLevel::kWarning, "old jobs and events cannot be deleted",
          {{"error", status.ToString()}});
    }
    absl::MutexLock lock(&mutex_);
    if (clock_->AwaitUntil(&mutex_, absl::Condition(&stopping_), now + options_.interval)) return;
  }
}

absl::Status Retention::DeleteJobs(absl::Time end) {
  while (!stopping()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const auto jobs,
                               store_->FinishedJobs({absl::UnixEpoch(), 0}, end, kPageJobs));
    for (const auto& [time, number] : jobs) PLUMBLINE_RETURN_IF_ERROR(DeleteJob(number));
    if (jobs.empty()) break;
  }
  return absl::OkStatus();
}

absl::Status Retention::DeleteJob(int64_t number) {
  PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, store_->ReadJob(number));
  PLUMBLINE_ASSIGN_OR_RETURN(std::vector<v1::Artifact> artifacts, store_->ReadArtifactsOf(number));
  std::vector<std::string> names;
  for (const v1::Artifact& artifact : artifacts) names.push_back(artifact.name());
  absl::Notification done;
  absl::Status status;
  dispatcher_->DeleteJob(Caller{"", "", "retention"}, number, record, std::move(artifacts),
                         [&](absl::Status deleted) {
                           status = std::move(deleted);
                           done.Notify();
                         });
  done.WaitForNotification();
  PLUMBLINE_RETURN_IF_ERROR(status);
  for (const std::string& name : names) files_->Delete(name);
  return absl::OkStatus();
}

absl::Status Retention::TrimEvents(absl::Time end) {
  while (!stopping()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const auto jobs, store_->FinishedJobs(trimmed_, end, kPageJobs));
    for (const auto& [time, number] : jobs) {
      PLUMBLINE_RETURN_IF_ERROR(dispatcher_->TrimEvents(number));
      trimmed_ = {time, number};
    }
    if (jobs.empty()) break;
  }
  return absl::OkStatus();
}

}  // namespace plumbline::server
