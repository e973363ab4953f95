// The two kinds of unary call: answered on the pool's threads, or whenever the dispatcher is done.
#ifndef PLUMBLINE_SERVER_API_CALL_H_
#define PLUMBLINE_SERVER_API_CALL_H_

#include <functional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/api.h"
#include "server/caller.h"

namespace plumbline::server {

// Measures one call of any kind, from its construction to End.
class CallTimer {
 public:
  // `method`: a literal.
  CallTimer(const Api& api, absl::string_view method);
  void End(const absl::Status& status) const;
  absl::string_view method() const { return method_; }

 private:
  const Api& api_;
  const absl::string_view method_;
  const absl::Time start_;
};

// Deletes itself when gRPC is done with it.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  UnaryCall(const Api& api, absl::string_view method) : timer_(api, method) {}

  // Ends the call. Once, on any thread.
  void End(const absl::Status& status);

  // Calls `on_cancel` if the caller leaves before End; at once if it has left. Once.
  void OnceCancelled(std::function<void()> on_cancel);
  bool IsCancelled() const;

  void OnCancel() override;
  void OnDone() override { delete this; }

 private:
  const CallTimer timer_;
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::function<void()> on_cancel_ ABSL_GUARDED_BY(mutex_);
};

// What a call ends with whose caller has left, or whose deadline has passed, before its work is
// done.
absl::Status CallerLeft();

// Posts `work` (a void(UnaryCall*), which ends the call) to the pool. If the caller has left before
// its turn comes, the call ends and the work is never begun.
template <typename Work>
grpc::ServerUnaryReactor* PostToPool(const Api& api, absl::string_view method, Work work) {
  auto* const call = new UnaryCall(api, method);
  api.pool->Post([call, work = std::move(work)]() mutable {
    call->IsCancelled() ? call->End(CallerLeft()) : work(call);
  });
  return call;
}

// Runs `work` (an absl::Status()) on the pool and ends the call with what it returns.
template <typename Work>
grpc::ServerUnaryReactor* RunOnPool(const Api& api, absl::string_view method, Work work) {
  return PostToPool(api, method,
                    [work = std::move(work)](UnaryCall* call) mutable { call->End(work()); });
}

// A call that ends at once.
grpc::ServerUnaryReactor* Refuse(const Api& api, absl::string_view method, absl::Status status);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_CALL_H_
