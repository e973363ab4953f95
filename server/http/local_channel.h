#ifndef PLUMBLINE_SERVER_HTTP_LOCAL_CHANNEL_H_
#define PLUMBLINE_SERVER_HTTP_LOCAL_CHANNEL_H_

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace grpc {
class Channel;
class Server;
}  // namespace grpc

namespace plumbline::server {

// A connection to a gRPC server of this process, over a pair of sockets that nobody else can reach.
// (gRPC's own in-process transport loses the answer of a call that reads late.) Any thread may
// call.
class LocalChannel {
 public:
  // `server` must outlive it.
  explicit LocalChannel(grpc::Server* server) : server_(server) {}

  // The channel; a new one after the last was found broken. UNAVAILABLE after Close;
  // RESOURCE_EXHAUSTED if the process has no file left for it.
  absl::StatusOr<std::shared_ptr<grpc::Channel>> Get();
  // A call over `channel` was UNAVAILABLE: whether it was the channel's fault is not told.
  void Renew(const std::shared_ptr<grpc::Channel>& channel);
  // Before the server shuts down.
  void Close();

 private:
  grpc::Server* const server_;
  absl::Mutex mutex_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_LOCAL_CHANNEL_H_
