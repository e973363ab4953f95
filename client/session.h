#ifndef PLUMBLINE_CLIENT_SESSION_H_
#define PLUMBLINE_CLIENT_SESSION_H_

#include <grpcpp/client_context.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/connector.h"
#include "client/interrupt.h"
#include "common/clock.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"

namespace plumbline::client {

struct SessionOptions {
  // How long the first connection may take, and how long a lost one is looked for.
  absl::Duration first_patience = absl::Seconds(10);
  absl::Duration lost_patience = absl::Minutes(5);
  // Of one unary call.
  absl::Duration call_deadline = absl::Minutes(1);
  // Told once for each connection to a server that was lost. May be empty.
  std::function<void(const std::string&)> on_lost;
};

// A connection to a coordinator that is made again when it is lost. One thread.
class Session {
 public:
  // `clock` and `interrupt` must outlive the session.
  Session(std::unique_ptr<Connector> connector, Clock* clock, Interrupt* interrupt,
          SessionOptions options);

  // UNAVAILABLE where no coordinator answers in time, CANCELLED when interrupted; at once what
  // Connector::WhyNotConnected says.
  absl::Status Connect();
  // Whether a call ended with this because the coordinator went away: UNAVAILABLE, or CANCELLED,
  // which is what a server that shuts down makes of the calls that it has.
  static bool IsLoss(const absl::Status& status);
  // The same as Connect after such an end; waits a little longer each time until NoteAnswer.
  absl::Status Reconnect();
  // The coordinator answered: what comes next is a new loss.
  void NoteAnswer() { losses_ = 0; }

  // A unary call, made again over a new connection as long as that is lost (IsLoss): every method
  // of the API may be repeated (CreateJob carries a request_id).
  //   session.Call(&v1::JobService::StubInterface::GetJob, request)
  template <typename Stub, typename Request, typename Response>
  absl::StatusOr<Response> Call(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                             Response*),
                                const Request& request) {
    Response response;
    const absl::Status status = Retry([&](grpc::ClientContext* context) {
      response.Clear();
      return (StubOf(static_cast<Stub*>(nullptr)).*method)(context, request, &response);
    });
    if (!status.ok()) return status;
    return response;
  }

  // Any attempt, repeated in the same way. The context has the deadline of a unary call.
  absl::Status Retry(const std::function<grpc::Status(grpc::ClientContext*)>& attempt);
  // The same for streams, which last as long as they last.
  absl::Status RetryStream(const std::function<grpc::Status(grpc::ClientContext*)>& attempt);

  v1::JobService::StubInterface& jobs() { return *jobs_; }
  v1::ArtifactService::StubInterface& artifacts() { return *artifacts_; }
  bool is_embedded() const { return connector_->is_embedded(); }
  Interrupt* interrupt() { return interrupt_; }
  Clock* clock() { return clock_; }

 private:
  // `is_first`: what stands in the way of a lost connection may be put right while it is looked
  // for.
  absl::Status ConnectWithin(absl::Duration patience, bool is_first);
  absl::Status RetryWithin(absl::Duration deadline,
                           const std::function<grpc::Status(grpc::ClientContext*)>& attempt);

  v1::JobService::StubInterface& StubOf(v1::JobService::StubInterface*) { return *jobs_; }
  v1::ArtifactService::StubInterface& StubOf(v1::ArtifactService::StubInterface*) {
    return *artifacts_;
  }
  v1::AdminService::StubInterface& StubOf(v1::AdminService::StubInterface*) { return *admin_; }
  v1::StoreService::StubInterface& StubOf(v1::StoreService::StubInterface*) { return *store_; }

  const std::unique_ptr<Connector> connector_;
  Clock* const clock_;
  Interrupt* const interrupt_;
  const SessionOptions options_;
  int losses_ = 0;  // In a row, without an answer between them.
  absl::Time lost_since_ = absl::InfinitePast();
  std::unique_ptr<v1::JobService::StubInterface> jobs_;
  std::unique_ptr<v1::ArtifactService::StubInterface> artifacts_;
  std::unique_ptr<v1::AdminService::StubInterface> admin_;
  std::unique_ptr<v1::StoreService::StubInterface> store_;
};

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SESSION_H_
