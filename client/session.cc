#include "client/session.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <chrono>

#include "absl/strings/str_cat.h"
#include "common/grpc_status.h"

namespace plumbline::client {
namespace {

// How long one look for a connection lasts, so that Ctrl-C is heeded in between.
constexpr absl::Duration kConnectionSlice = absl::Milliseconds(200);

// Between two times that it is asked why there is none.
constexpr absl::Duration kQuestionPause = absl::Seconds(1);

// Before a lost connection is looked for.
constexpr int kShortestPauseMs = 20;
constexpr int kLongestPauseMs = 2000;

absl::Status Interrupted() { return absl::CancelledError("interrupted"); }

// gRPC measures deadlines by the machine's clock whatever our own is.
std::chrono::system_clock::time_point FromNow(absl::Duration duration) {
  return std::chrono::system_clock::now() + absl::ToChronoMilliseconds(duration);
}

}  // namespace

Session::Session(std::unique_ptr<Connector> connector, Clock* clock, Interrupt* interrupt,
                 SessionOptions options)
    : connector_(std::move(connector)),
      clock_(clock),
      interrupt_(interrupt),
      options_(std::move(options)) {}

bool Session::IsLoss(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsCancelled(status);
}

absl::Status Session::Connect() { return ConnectWithin(options_.first_patience, true); }

absl::Status Session::Reconnect() {
  if (losses_ == 0) {
    lost_since_ = clock_->Now();
    // Embedded coordinators come and go with commands, which is nobody's concern.
    if (options_.on_lost && !connector_->is_embedded()) {
      options_.on_lost(absl::StrCat("lost ", connector_->Description(), "; connecting again"));
    }
  } else if (clock_->Now() - lost_since_ >= options_.lost_patience) {
    return absl::UnavailableError(absl::StrCat(connector_->Description(), " has not come back"));
  }
  // A coordinator that accepts connections and refuses calls is starting or stopping.
  const int pause_ms = std::min(kLongestPauseMs, kShortestPauseMs << std::min(losses_, 10));
  ++losses_;
  if (interrupt_->WaitFor(pause_ms)) return Interrupted();
  return ConnectWithin(options_.lost_patience, false);
}

absl::Status Session::ConnectWithin(absl::Duration patience, bool is_first) {
  const absl::Time deadline = clock_->Now() + patience;
  const absl::Status silence = absl::UnavailableError(
      absl::StrCat(connector_->Description(), " does not answer; is it running?"));
  absl::Status last = silence;
  absl::Time next_question = absl::InfinitePast();
  do {
    if (interrupt_->IsRaised()) return Interrupted();
    absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = connector_->Connect();
    if (!channel.ok()) {
      if (!absl::IsUnavailable(channel.status())) return channel.status();
      last = channel.status();
      if (interrupt_->WaitFor(static_cast<int>(absl::ToInt64Milliseconds(kConnectionSlice)))) {
        return Interrupted();
      }
      continue;
    }
    // An embedded coordinator may pass to another process while we wait: ask again soon.
    const absl::Time channel_deadline =
        connector_->is_embedded() ? std::min(deadline, clock_->Now() + absl::Seconds(1)) : deadline;
    do {
      if (interrupt_->IsRaised()) return Interrupted();
      if ((*channel)->WaitForConnected(FromNow(kConnectionSlice))) {
        jobs_ = v1::JobService::NewStub(*channel);
        artifacts_ = v1::ArtifactService::NewStub(*channel);
        admin_ = v1::AdminService::NewStub(*channel);
        store_ = v1::StoreService::NewStub(*channel);
        return absl::OkStatus();
      }
      const absl::Time now = clock_->Now();
      if (now < next_question || (*channel)->GetState(false) != GRPC_CHANNEL_TRANSIENT_FAILURE) {
        continue;
      }
      next_question = now + kQuestionPause;
      const absl::Status why = connector_->WhyNotConnected();
      if (!why.ok() && is_first) return why;
      last = why.ok() ? silence : why;
    } while (clock_->Now() < channel_deadline);
  } while (clock_->Now() < deadline);
  return last;
}

absl::Status Session::Retry(const std::function<grpc::Status(grpc::ClientContext*)>& attempt) {
  return RetryWithin(options_.call_deadline, attempt);
}

absl::Status Session::RetryStream(
    const std::function<grpc::Status(grpc::ClientContext*)>& attempt) {
  return RetryWithin(absl::InfiniteDuration(), attempt);
}

absl::Status Session::RetryWithin(
    absl::Duration deadline, const std::function<grpc::Status(grpc::ClientContext*)>& attempt) {
  while (true) {
    grpc::ClientContext context;
    if (deadline != absl::InfiniteDuration()) context.set_deadline(FromNow(deadline));
    absl::Status status;
    {
      const Interrupt::Reaction reaction(interrupt_, [&context] { context.TryCancel(); });
      status = FromGrpcStatus(attempt(&context));
    }
    if (!IsLoss(status)) NoteAnswer();
    if (status.ok()) return status;  // What was done is done, interrupted or not.
    if (interrupt_->IsRaised()) return Interrupted();
    if (!IsLoss(status)) return status;
    if (const absl::Status connected = Reconnect(); !connected.ok()) return connected;
  }
}

}  // namespace plumbline::client
