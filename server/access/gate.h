// What the generated gates of server/access/gates.h are made of.
#ifndef PLUMBLINE_SERVER_ACCESS_GATE_H_
#define PLUMBLINE_SERVER_ACCESS_GATE_H_

#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/status.h"
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

// What a call ends with whose request is no `message`, e.g. "plumbline.v1.GetJobRequest".
inline absl::Status NoSuchMessage(absl::string_view message) {
  return FieldError("request", absl::StrCat("is no ", message), "the message, strings in UTF-8");
}

// Hands requests that cannot be decoded to a handler of their own. gRPC alone ends such calls as
// UNIMPLEMENTED, without a word.
class DecodingHandler final : public grpc::internal::MethodHandler {
 public:
  // Both of the same type; that for `bad` requests must not read the request.
  DecodingHandler(std::unique_ptr<grpc::internal::MethodHandler> good,
                  std::unique_ptr<grpc::internal::MethodHandler> bad)
      : good_(std::move(good)), bad_(std::move(bad)) {}

  void* Deserialize(grpc_call* call, grpc_byte_buffer* request, grpc::Status* status,
                    void** handler_data) override {
    return good_->Deserialize(call, request, status, handler_data);
  }

  void RunHandler(const HandlerParameter& parameter) override {
    if (parameter.status.ok()) {
      good_->RunHandler(parameter);
      return;
    }
    bad_->RunHandler(HandlerParameter(parameter.call, parameter.server_context, parameter.request,
                                      grpc::Status::OK, parameter.internal_data,
                                      parameter.call_requester));
  }

 private:
  const std::unique_ptr<grpc::internal::MethodHandler> good_;
  const std::unique_ptr<grpc::internal::MethodHandler> bad_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_GATE_H_
