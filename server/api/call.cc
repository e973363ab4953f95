#include "server/api/call.h"

#include "absl/strings/str_cat.h"
#include "server/error_details.h"

namespace plumbline::server {

CallTimer::CallTimer(const Api& api, absl::string_view method)
    : api_(api), method_(method), start_(api.clock->Now()) {}

void CallTimer::End(const absl::Status& status) const {
  api_.metrics->RecordCall(method_, absl::StatusCodeToString(status.code()),
                           api_.clock->Now() - start_);
}

absl::Status CallerLeft() { return absl::CancelledError("the caller has left"); }

void UnaryCall::End(const absl::Status& status) {
  timer_.End(status);
  {
    absl::MutexLock lock(&mutex_);
    on_cancel_ = nullptr;
  }
  Finish(ToClientStatus(status));
}

void UnaryCall::OnceCancelled(std::function<void()> on_cancel) {
  {
    absl::MutexLock lock(&mutex_);
    if (!cancelled_) {
      on_cancel_ = std::move(on_cancel);
      return;
    }
  }
  on_cancel();
}

bool UnaryCall::IsCancelled() const {
  absl::MutexLock lock(&mutex_);
  return cancelled_;
}

void UnaryCall::OnCancel() {
  std::function<void()> on_cancel;
  {
    absl::MutexLock lock(&mutex_);
    cancelled_ = true;
    on_cancel.swap(on_cancel_);
  }
  if (on_cancel) on_cancel();
}

grpc::ServerUnaryReactor* Refuse(const Api& api, absl::string_view method, absl::Status status) {
  auto* const call = new UnaryCall(api, method);
  call->End(status);
  return call;
}

}  // namespace plumbline::server
