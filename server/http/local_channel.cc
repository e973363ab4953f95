#include "server/http/local_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/server.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

#include "common/status.h"

namespace plumbline::server {

absl::StatusOr<std::shared_ptr<grpc::Channel>> LocalChannel::Get() {
  absl::MutexLock lock(&mutex_);
  if (closed_) return absl::UnavailableError("the server is shutting down");
  if (channel_ != nullptr) return channel_;
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0) {
    return WithReason(absl::ResourceExhaustedError("too many files are open"), "QUOTA");
  }
  // Each owns its own.
  grpc::AddInsecureChannelFromFd(server_, sockets[0]);
  channel_ = grpc::CreateInsecureChannelFromFd("local", sockets[1]);
  return channel_;
}

void LocalChannel::Close() {
  absl::MutexLock lock(&mutex_);
  closed_ = true;
  channel_ = nullptr;
}

void LocalChannel::Renew(const std::shared_ptr<grpc::Channel>& channel) {
  absl::MutexLock lock(&mutex_);
  if (channel_ == channel) channel_ = nullptr;
}

}  // namespace plumbline::server
