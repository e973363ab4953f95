#include "client/watch.h"

#include <chrono>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

using Jobs = v1::JobService::StubInterface;

// Why a queued job waits is told by GetJob alone. While nothing runs, a stream ends after this long
// and the job is looked at.
constexpr std::chrono::seconds kLookAtQueuedJob(1);

class Watcher {
 public:
  Watcher(Session* session, const std::string& job, int64_t after_sequence,
          const std::function<void(const v1::JobEvent&)>& on_event)
      : session_(session), job_(job), on_event_(on_event) {
    result_.last_sequence = after_sequence;
  }

  absl::StatusOr<WatchResult> Run() {
    while (true) {
      const absl::Status status = FollowStream();
      if (session_->interrupt()->IsRaised()) {
        result_.end = WatchEnd::kInterrupted;
        return result_;
      }
      if (Session::IsLoss(status)) {
        const absl::Status connected = session_->Reconnect();
        if (session_->interrupt()->IsRaised()) continue;
        if (!connected.ok()) return connected;
        continue;
      }
      if (!status.ok() && !absl::IsDeadlineExceeded(status)) return status;
      PLUMBLINE_ASSIGN_OR_RETURN(const bool ended, LookAtJob());
      if (ended) return result_;
    }
  }

 private:
  // Hands on events until the stream ends.
  absl::Status FollowStream() {
    grpc::ClientContext context;
    if (!running_) context.set_deadline(std::chrono::system_clock::now() + kLookAtQueuedJob);
    v1::WatchJobRequest request;
    request.set_name(job_);
    request.set_after_sequence(result_.last_sequence);
    const auto stream = session_->jobs().WatchJob(&context, request);
    const Interrupt::Reaction reaction(session_->interrupt(), [&context] { context.TryCancel(); });
    v1::JobEvent event;
    absl::Status status = absl::OkStatus();
    while (status.ok() && stream->Read(&event)) status = Take(event);
    if (!status.ok()) context.TryCancel();
    const absl::Status finished = FromGrpcStatus(stream->Finish());
    return status.ok() ? finished : status;
  }

  absl::Status Take(const v1::JobEvent& event) {
    const int64_t expected = result_.last_sequence + 1;
    if (event.sequence() != expected) {
      return absl::DataLossError(
          absl::StrCat(job_, ": event ", event.sequence(), " came where ", expected, " was due"));
    }
    result_.last_sequence = event.sequence();
    session_->NoteAnswer();
    if (event.has_job_state()) running_ = event.job_state().state() == v1::JOB_STATE_RUNNING;
    on_event_(event);
    return absl::OkStatus();
  }

  // Whether there is nothing more to wait for; then `result_` is complete.
  absl::StatusOr<bool> LookAtJob() {
    v1::GetJobRequest request;
    request.set_name(job_);
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, session_->Call(&Jobs::GetJob, request));
    const bool final = job.state() == v1::JOB_STATE_SUCCEEDED ||
                       job.state() == v1::JOB_STATE_FAILED ||
                       job.state() == v1::JOB_STATE_CANCELLED;
    if (final) return result_.last_sequence >= job.last_sequence();
    running_ = job.state() == v1::JOB_STATE_RUNNING;
    switch (job.waiting_reason().code()) {
      case v1::WaitingReason::CODE_MEMORY:
        result_.end = WatchEnd::kNeedsMemory;
        break;
      case v1::WaitingReason::CODE_PLUGIN:
        result_.end = WatchEnd::kNeedsPlugin;
        break;
      case v1::WaitingReason::CODE_NO_FIT:
        // To a server others may come.
        if (!session_->is_embedded()) return false;
        result_.end = WatchEnd::kHasNoWorker;
        break;
      default:
        return false;
    }
    result_.message = job.waiting_reason().message();
    return true;
  }

  Session* const session_;
  const std::string job_;
  const std::function<void(const v1::JobEvent&)>& on_event_;
  WatchResult result_;
  bool running_ = false;
};

}  // namespace

absl::StatusOr<WatchResult> WatchJob(Session* session, const std::string& job,
                                     int64_t after_sequence,
                                     const std::function<void(const v1::JobEvent&)>& on_event) {
  return Watcher(session, job, after_sequence, on_event).Run();
}

}  // namespace plumbline::client
