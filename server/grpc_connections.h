#ifndef PLUMBLINE_SERVER_GRPC_CONNECTIONS_H_
#define PLUMBLINE_SERVER_GRPC_CONNECTIONS_H_

#include <grpcpp/server_builder.h>

namespace plumbline::server {

// How a coordinator's gRPC server treats its connections: whoever says nothing, or has vanished, is
// let go, clients may ask often whether it is there, and no other server shares its ports.
void ConfigureConnections(grpc::ServerBuilder* builder);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_GRPC_CONNECTIONS_H_
