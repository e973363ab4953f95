// What the generated gates of server/access/gates.h are made of.
#ifndef PLUMBLINE_SERVER_ACCESS_GATE_H_
#define PLUMBLINE_SERVER_ACCESS_GATE_H_

#include "absl/status/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/access/gatekeeper.h"
#include "server/error_details.h"

namespace plumbline::server {

// Calls that end at once. They delete themselves when gRPC is done with them.
class RefusedCall final : public grpc::ServerUnaryReactor {
 public:
  RefusedCall(Gatekeeper* gatekeeper, const MethodAccess& access, const absl::Status& status) {
    gatekeeper->RecordRefusal(access, status);
    Finish(ToClientStatus(status));
  }
  void OnDone() override { delete this; }
};

template <typename Request>
class RefusedReader final : public grpc::ServerReadReactor<Request> {
 public:
  RefusedReader(Gatekeeper* gatekeeper, const MethodAccess& access, const absl::Status& status) {
    gatekeeper->RecordRefusal(access, status);
    this->Finish(ToClientStatus(status));
  }
  void OnDone() override { delete this; }
};

template <typename Response>
class RefusedWriter final : public grpc::ServerWriteReactor<Response> {
 public:
  RefusedWriter(Gatekeeper* gatekeeper, const MethodAccess& access, const absl::Status& status) {
    gatekeeper->RecordRefusal(access, status);
    this->Finish(ToClientStatus(status));
  }
  void OnDone() override { delete this; }
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_GATE_H_
