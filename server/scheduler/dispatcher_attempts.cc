// The dispatcher's side of attempts: what their workers write, each under its fencing token.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/scheduler/dispatcher.h"

namespace plumbline::server {

absl::StatusOr<StepOwner> Dispatcher::BeginStep(const std::string& task, int64_t token,
                                                const std::string& run) {
  absl::MutexLock lock(&mutex_);
  StepOwner owner;
  PLUMBLINE_ASSIGN_OR_RETURN(owner.task, FindTask(task, token));
  PLUMBLINE_RETURN_IF_ERROR(AnnotateStatus(store_->CheckLease(owner.task, token), task));
  if (!run.empty()) PLUMBLINE_RETURN_IF_ERROR(scheduler_.NoteRun(owner.task, token, run));
  const v1::Attempt& attempt = *scheduler_.FindHeld(owner.task, token)->attempts().rbegin();
  owner.worker = attempt.worker();
  owner.attempt = attempt.number();
  owner.spec = *scheduler_.FindHeldSpec(owner.task, token);
  WriteSet set = scheduler_.TakeChanges();
  if (!set.empty()) Commit(std::move(set), nullptr);
  return owner;
}

void Dispatcher::NoteSavedStep(TaskKey key, int64_t token, std::optional<int32_t> step) {
  absl::MutexLock lock(&mutex_);
  scheduler_.NoteSavedStep(key, token, step);
  WriteSet set = scheduler_.TakeChanges();
  if (!set.empty()) Commit(std::move(set), nullptr);
}

void Dispatcher::ReportEvents(const v1::ReportEventsRequest& request, Done<int64_t> done) {
  absl::StatusOr<TaskKey> key = absl::InvalidArgumentError("");
  absl::Status status = CheckNumbers(request);
  if (status.ok()) {
    absl::MutexLock lock(&mutex_);
    key = FindTask(request.task(), request.fencing_token());
    status = key.status();
    if (status.ok()) {
      status = AnnotateStatus(store_->CheckLease(*key, request.fencing_token()), request.task());
    }
    if (status.ok()) {
      const int64_t token = request.fencing_token();
      const int64_t last = request.events().rbegin()->client_sequence();
      const v1::Progress* progress = nullptr;
      for (const auto& each : request.events()) {
        if (each.event().has_progress()) progress = &each.event().progress();
      }
      const absl::StatusOr<int64_t> fresh =
          scheduler_.AcceptEvents(*key, token, request.events(0).client_sequence(), last, progress);
      status = fresh.status();
      if (status.ok()) {
        for (int64_t i = request.events_size() - *fresh; i < request.events_size(); ++i) {
          const v1::JobEvent& event = request.events(static_cast<int>(i)).event();
          if (event.has_step()) {
            scheduler_.CountStep(*key, event.step());
            if (options_.on_step) options_.on_step(event.step());
          }
          if (event.has_sensitivity()) scheduler_.NoteSensitivity(*key, event.sensitivity());
        }
        // Durable once what was committed before is: known events cost an empty set.
        WriteSet set = scheduler_.TakeChanges();
        const v1::Task& task = *scheduler_.FindHeld(*key, token);
        for (int64_t i = request.events_size() - *fresh; i < request.events_size(); ++i) {
          v1::JobEvent event = request.events(static_cast<int>(i)).event();
          event.set_job(task.name().substr(0, task.name().find("/tasks/")));
          event.set_task(task.name());
          event.set_attempt(task.attempts().rbegin()->number());
          set.AppendEvent(key->job, std::move(event));
        }
        const int64_t newest = *scheduler_.NewestClientSequence(*key, token);
        const std::vector<v1::JobEvent> events =
            Commit(std::move(set), [done, newest](absl::Status committed) {
              committed.ok() ? done(newest) : done(std::move(committed));
            });
        if (!events.empty()) {
          scheduler_.NoteSequences(*key, events.front().sequence(), events.back().sequence());
        }
        return;
      }
    }
  }
  done(std::move(status));
}

absl::Status Dispatcher::CheckNumbers(const v1::ReportEventsRequest& request) {
  if (request.events().empty()) return FieldError("events", "is empty", "1 to 1000 events");
  for (int i = 1; i < request.events_size(); ++i) {
    const int64_t expected = request.events(i - 1).client_sequence() + 1;
    if (request.events(i).client_sequence() != expected) {
      return FieldError(absl::StrCat("events[", i, "].client_sequence"),
                        absl::StrCat(request.events(i).client_sequence(), " leaves a gap"),
                        absl::StrCat(expected));
    }
  }
  return absl::OkStatus();
}

void Dispatcher::AddArtifact(const Caller& caller, TaskKey key, int64_t token,
                             const v1::Artifact& artifact, Done<std::string> done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = store_->CheckLease(key, token);
    const v1::Task* const task = scheduler_.FindHeld(key, token);
    if (status.ok() && task == nullptr) status = absl::InternalError("a lease without its task");
    if (status.ok()) {
      WriteSet set;
      set.RequireLease(key, token);
      std::string replaced;
      const absl::StatusOr<v1::Artifact> earlier =
          store_->FindTaskArtifact(key, artifact.file_name());
      if (earlier.ok()) {
        set.DeleteArtifact(*earlier);
        replaced = earlier->name();
      }
      set.PutArtifact(artifact, key);
      v1::JobEvent event;
      event.set_job(task->name().substr(0, task->name().find("/tasks/")));
      *event.mutable_time() = ToTimestamp(clock_->Now());
      event.set_task(task->name());
      event.set_attempt(task->attempts().rbegin()->number());
      *event.mutable_artifact() = artifact;
      set.AppendEvent(key.job, std::move(event));
      set.AppendAudit(Audit(caller, artifact.name()));
      Commit(std::move(set), [done, replaced](absl::Status committed) {
        committed.ok() ? done(replaced) : done(std::move(committed));
      });
      return;
    }
  }
  done(std::move(status));
}

void Dispatcher::CompleteTask(const Caller& caller, const v1::CompleteTaskRequest& request,
                              DoneStatus done) {
  absl::StatusOr<TaskKey> key = absl::InternalError("");
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    const int64_t token = request.fencing_token();
    key = FindTask(request.task(), token);
    status = key.status();
    if (status.ok()) {
      status = AnnotateStatus(store_->CheckLease(*key, token), request.task());
      if (absl::IsAborted(status)) {
        // Perhaps this is the same call again. Once what is queued is durable, the store knows.
        Commit(WriteSet(), [store = store_, done, key = *key, token, status](absl::Status) {
          done(CheckEnded(*store, key, token, status));
        });
        return;
      }
    }
    if (status.ok()) {
      const absl::StatusOr<int64_t> newest = scheduler_.NewestClientSequence(*key, token);
      status = newest.status();
      if (newest.ok() && *newest < request.last_client_sequence()) {
        status =
            absl::UnavailableError(absl::StrCat("events up to ", request.last_client_sequence(),
                                                " are not all here yet; the newest is ", *newest));
      }
    }
    if (status.ok()) {
      const absl::Time start =
          FromTimestamp(scheduler_.FindHeld(*key, token)->attempts().rbegin()->start_time());
      status = request.has_report() ? scheduler_.Complete(*key, token, request.report())
                                    : scheduler_.Fail(*key, token, request.failure());
      if (status.ok()) {
        if (options_.on_attempt_done) options_.on_attempt_done(clock_->Now() - start);
        CommitChanges(Audit(caller, request.task(), request.failure().status().message()),
                      std::move(done));
        return;
      }
    }
  }
  done(std::move(status));
}

absl::Status Dispatcher::CheckEnded(const Store& store, TaskKey key, int64_t token,
                                    absl::Status otherwise) {
  const absl::StatusOr<store::TaskRecord> record = store.ReadTask(key);
  if (absl::IsNotFound(record.status())) return otherwise;
  PLUMBLINE_RETURN_IF_ERROR(record.status());
  const auto& attempts = record->task().attempts();
  const bool ended =
      std::any_of(attempts.begin(), attempts.end(), [token](const v1::Attempt& attempt) {
        return attempt.fencing_token() == token && (attempt.end() == v1::ATTEMPT_END_COMPLETED ||
                                                    attempt.end() == v1::ATTEMPT_END_FAILED ||
                                                    attempt.end() == v1::ATTEMPT_END_CANCELLED);
      });
  return ended ? absl::OkStatus() : otherwise;
}

void Dispatcher::ReleaseTask(const Caller& caller, const v1::ReleaseTaskRequest& request,
                             DoneStatus done) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    const absl::StatusOr<TaskKey> key = FindTask(request.task(), request.fencing_token());
    status = key.status();
    if (status.ok()) {
      status = AnnotateStatus(store_->CheckLease(*key, request.fencing_token()), request.task());
    }
    if (status.ok()) status = scheduler_.Release(request, *key);
    if (status.ok()) {
      CommitChanges(Audit(caller, request.task(), request.message()), std::move(done));
      return;
    }
  }
  done(std::move(status));
}

}  // namespace plumbline::server
