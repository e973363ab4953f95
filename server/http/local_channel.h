#ifndef PLUMBLINE_SERVER_HTTP_LOCAL_CHANNEL_H_
#define PLUMBLINE_SERVER_HTTP_LOCAL_CHANNEL_H_

#include <memory>

#include "absl/base/thread_annotations.h"
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

  // The channel; a new one if the last has broken. Null if the process has no file left for it.
  std::shared_ptr<grpc::Channel> Get();

 private:
  grpc::Server* const server_;
  absl::Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_HTTP_LOCAL_CHANNEL_H_
