#include "server/grpc_connections.h"

namespace plumbline::server {
namespace {

// A peer that vanished without a word is noticed within a minute, so that what it held is freed.
constexpr int kKeepaliveMs = 30'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// For TLS, and to begin HTTP/2: whoever only connects keeps one of our files open until then.
constexpr int kHandshakeMs = 10'000;
constexpr int kLeastPingIntervalMs = 5'000;

}  // namespace

void ConfigureConnections(grpc::ServerBuilder* builder) {
  // Two servers must not share a port unnoticed.
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                              kLeastPingIntervalMs);
}

}  // namespace plumbline::server
