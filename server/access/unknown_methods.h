#ifndef PLUMBLINE_SERVER_ACCESS_UNKNOWN_METHODS_H_
#define PLUMBLINE_SERVER_ACCESS_UNKNOWN_METHODS_H_

#include "common/status.h"
#include "grpcpp/generic/async_generic_service.h"
#include "server/error_details.h"

namespace plumbline::server {

// Answers what is no method of any service, with details as every error has them.
class UnknownMethods final : public grpc::CallbackGenericService {
 private:
  class Refusal final : public grpc::ServerGenericBidiReactor {
   public:
    Refusal() {
      Finish(ToClientStatus(
          WithReason(absl::UnimplementedError("there is no such method"), "UNIMPLEMENTED")));
    }
    void OnDone() override { delete this; }
  };

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext*) override {
    return new Refusal;
  }
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_UNKNOWN_METHODS_H_
