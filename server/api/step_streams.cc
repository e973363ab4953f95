#include "common/grpc_status.h"
#include "common/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/call.h"
#include "server/api/worker_streams.h"

namespace plumbline::server {
namespace {

absl::Status NoStepStore() {
  return WithReason(absl::UnimplementedError("this server has no step store"), "UNIMPLEMENTED");
}

template <typename Reactor>
class Refusal final : public Reactor {
 public:
  Refusal(const Api& api, absl::string_view method) {
    CallTimer(api, method).End(NoStepStore());
    this->Finish(ToGrpcStatus(NoStepStore()));
  }
  void OnDone() override { delete this; }
};

}  // namespace

grpc::ServerReadReactor<v1::PutStepRequest>* RefusePutStep(const Api& api) {
  return new Refusal<grpc::ServerReadReactor<v1::PutStepRequest>>(api, "WorkerService/PutStep");
}

grpc::ServerWriteReactor<v1::GetStepResponse>* RefuseGetStep(const Api& api) {
  return new Refusal<grpc::ServerWriteReactor<v1::GetStepResponse>>(api, "WorkerService/GetStep");
}

}  // namespace plumbline::server
