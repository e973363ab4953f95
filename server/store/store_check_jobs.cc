// StoreCheck's look at jobs: tasks, leases, reports, events, and the indices that find them.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/store/store_check.h"
#include "server/store/store_check_records.h"

namespace plumbline::server {
namespace {

bool IsFinalState(v1::JobState state) {
  return state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
         state == v1::JOB_STATE_CANCELLED;
}

std::string NameOf(TaskKey key) { return absl::StrCat("task ", key.task, " of job ", key.job); }

}  // namespace

void StoreCheck::CheckJobs() {
  Records<store::JobRecord>(Family::kJobs, keys::Jobs(),
                            [&](absl::string_view key, const store::JobRecord& record) {
                              jobs_[keys::TrailingNumber(key)].record = record;
                            });
  Records<store::TaskRecord>(
      Family::kJobs, "t", [&](absl::string_view key, const store::TaskRecord& record) {
        const TaskKey task = keys::TrailingTask(key);
        const auto job = jobs_.find(task.job);
        if (job == jobs_.end()) {
          Problem(absl::StrCat(NameOf(task), " has no job"));
        } else if (task.task != static_cast<int32_t>(job->second.tasks.size())) {
          Problem(absl::StrCat(NameOf(task), " comes where task ", job->second.tasks.size(),
                               " should"));
        } else {
          job->second.tasks.push_back(record);
        }
      });
  const absl::StatusOr<int64_t> newest_token = store_->NewestFencingToken();
  Note("read the newest fencing token", newest_token.status());
  Records<store::LeaseRecord>(Family::kLeases, keys::Leases(),
                              [&](absl::string_view key, const auto& lease) {
                                leases_[keys::TrailingTask(key)] = lease;
                                if (newest_token.ok() && lease.fencing_token() > *newest_token) {
                                  Problem(absl::StrCat("a lease has token ", lease.fencing_token(),
                                                       ", the newest is ", *newest_token));
                                }
                              });
  Records<v1::TaskReport>(Family::kJobs, "r", [&](absl::string_view key, const v1::TaskReport&) {
    reports_.insert(keys::TrailingTask(key));
  });
  const absl::StatusOr<int64_t> newest_job = store_->NewestJobNumber();
  Note("read the newest job's number", newest_job.status());
  for (const auto& [number, job] : jobs_) {
    if (newest_job.ok() && number > *newest_job) {
      Problem(absl::StrCat("job ", number, " is newer than the newest, ", *newest_job));
    }
    CheckJob(number, job);
  }
  for (const auto& [key, lease] : leases_) {
    if (jobs_.count(key.job) == 0) Problem(absl::StrCat("a lease is of ", NameOf(key), ", gone"));
  }
  for (const TaskKey& key : reports_) {
    if (jobs_.count(key.job) == 0) Problem(absl::StrCat("a report is of ", NameOf(key), ", gone"));
  }
}

void StoreCheck::CheckJob(int64_t number, const JobState& job) {
  ++result_.jobs;
  const bool ended = IsFinalState(job.record.job().state());
  const bool all_ended =
      std::all_of(job.tasks.begin(), job.tasks.end(),
                  [](const store::TaskRecord& task) { return IsFinalState(task.task().state()); });
  if (job.tasks.empty()) Problem(absl::StrCat(job.record.job().name(), " has no task"));
  if (ended != all_ended) {
    Problem(absl::StrCat(job.record.job().name(), " is ",
                         v1::JobState_Name(job.record.job().state()), " and its tasks are not"));
  }
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    CheckTask({number, static_cast<int32_t>(i)}, job);
  }
}

void StoreCheck::CheckTask(TaskKey key, const JobState& job) {
  ++result_.tasks;
  const v1::Task& task = job.tasks[key.task].task();
  if (task.name() != absl::StrCat(job.record.job().name(), "/tasks/", key.task)) {
    Problem(absl::StrCat(NameOf(key), " is called ", task.name()));
  }
  const auto lease = leases_.find(key);
  const bool held = lease != leases_.end();
  if (held != (task.state() == v1::JOB_STATE_RUNNING)) {
    Problem(absl::StrCat(task.name(), " is ", v1::JobState_Name(task.state()),
                         held ? " under a lease" : " without a lease"));
  }
  int64_t newest = 0;
  for (const v1::Attempt& attempt : task.attempts()) {
    if (attempt.fencing_token() <= newest) {
      Problem(absl::StrCat(task.name(), " has attempts whose tokens do not grow"));
    }
    newest = attempt.fencing_token();
  }
  if (held && lease->second.fencing_token() != newest) {
    Problem(absl::StrCat(task.name(), " is held under token ", lease->second.fencing_token(),
                         ", its newest attempt has ", newest));
  }
  const bool reported = reports_.count(key) > 0;
  if (reported != (task.state() == v1::JOB_STATE_SUCCEEDED)) {
    Problem(absl::StrCat(task.name(), " is ", v1::JobState_Name(task.state()),
                         reported ? " and has a report" : " and has no report"));
  }
}

void StoreCheck::CheckIndices() {
  const auto each_number = [this](const std::string& prefix, const auto& take) {
    Note("read an index of jobs",
         store_->impl_->Visit(Family::kJobs, prefix, keys::PrefixEnd(prefix), false,
                              [&take](absl::string_view key, absl::string_view value) {
                                take(key, value);
                                return true;
                              }));
  };
  std::set<int64_t> named, live, finished;
  each_number("i", [&](absl::string_view key, absl::string_view value) {
    const int64_t number = keys::TrailingNumber(value);
    const auto job = jobs_.find(number);
    if (job == jobs_.end() ||
        job->second.record.job().name() != absl::StrCat("jobs/", key.substr(1))) {
      Problem(absl::StrCat("the index of names has ", key.substr(1), " for job ", number));
    }
    named.insert(number);
  });
  each_number("q", [&](absl::string_view key, absl::string_view value) {
    const int64_t number = keys::TrailingNumber(value);
    const auto job = jobs_.find(number);
    if (job == jobs_.end() || job->second.record.request_id() != key.substr(1)) {
      Problem(absl::StrCat("the index of requests has another request for job ", number));
    }
  });
  each_number(keys::LiveJobs(), [&](absl::string_view key, absl::string_view) {
    live.insert(keys::TrailingNumber(key));
  });
  each_number(keys::FinishedJobs(), [&](absl::string_view key, absl::string_view) {
    const int64_t number = keys::TrailingNumber(key);
    finished.insert(number);
    const auto job = jobs_.find(number);
    if (job == jobs_.end() ||
        key != keys::FinishedJob(FromTimestamp(job->second.record.job().end_time()), number)) {
      Problem(absl::StrCat("the index of finished jobs has another time for job ", number));
    }
  });
  for (const auto& [number, job] : jobs_) {
    const bool ended = IsFinalState(job.record.job().state());
    // Before version 3 nothing was said of finished jobs.
    const bool indexed = store_->format().version() < 3 || (finished.count(number) > 0) == ended;
    if (named.count(number) == 0 || (live.count(number) > 0) == ended || !indexed) {
      Problem(absl::StrCat(job.record.job().name(), " is not in the indices that it belongs in"));
    }
    live.erase(number);
  }
  for (const int64_t number : live) {
    Problem(absl::StrCat("job ", number, " is marked as live and is not there"));
  }
}

void StoreCheck::CheckEvents() {
  std::map<int64_t, v1::JobState> states;
  Records<v1::JobEvent>(
      Family::kEvents, "e", [&](absl::string_view key, const v1::JobEvent& event) {
        ++result_.events;
        const int64_t sequence = keys::TrailingNumber(key);
        const int64_t number = keys::TrailingNumber(key.substr(0, key.size() - 8));
        const auto job = jobs_.find(number);
        if (job == jobs_.end()) {
          Problem(absl::StrCat("event ", sequence, " is of job ", number, ", which is gone"));
          return;
        }
        const auto [newest, first] = newest_events_.try_emplace(
            number, std::max<int64_t>(job->second.record.first_sequence(), 1) - 1);
        if (sequence != newest->second + 1 || event.sequence() != sequence) {
          Problem(absl::StrCat("event ", sequence, " of ", job->second.record.job().name(),
                               " follows event ", newest->second));
        }
        newest->second = sequence;
        if (event.has_job_state()) states[number] = event.job_state().state();
      });
  for (const auto& [number, job] : jobs_) {
    const auto state = states.find(number);
    if (state == states.end() || state->second != job.record.job().state()) {
      Problem(
          absl::StrCat("the events of ", job.record.job().name(), " do not end with its state"));
    }
  }
}

void StoreCheck::CheckRevisions() {
  int64_t expected = 0;
  Records<store::Revision>(
      Family::kEvents, keys::Revisions(), [&](absl::string_view key, const auto& revision) {
        const int64_t number = keys::TrailingNumber(key);
        if (expected != 0 && number != expected) {
          Problem(absl::StrCat("revision ", number, " comes where ", expected, " should"));
        }
        expected = number + 1;
        const auto newest = newest_events_.find(revision.job());
        if (revision.sequence() > 0 && jobs_.count(revision.job()) > 0 &&
            (newest == newest_events_.end() || revision.sequence() > newest->second)) {
          Problem(absl::StrCat("revision ", number, " is event ", revision.sequence(), " of job ",
                               revision.job(), ", which has fewer"));
        }
      });
}

}  // namespace plumbline::server
