#include "server/http/local_channel.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/server.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>

namespace plumbline::server {

std::shared_ptr<grpc::Channel> LocalChannel::Get() {
  absl::MutexLock lock(&mutex_);
  if (channel_ != nullptr) {
    const grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/false);
    if (state != GRPC_CHANNEL_SHUTDOWN && state != GRPC_CHANNEL_TRANSIENT_FAILURE) return channel_;
  }
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, sockets) != 0) {
    return nullptr;
  }
  // Each owns its own.
  grpc::AddInsecureChannelFromFd(server_, sockets[0]);
  channel_ = grpc::CreateInsecureChannelFromFd("local", sockets[1]);
  return channel_;
}

}  // namespace plumbline::server
