#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/call.h"
#include "server/api/worker_streams.h"
#include "server/error_details.h"

namespace plumbline::server {
namespace {

constexpr int kMaxEvents = 1000;
constexpr size_t kMaxPreviewBytes = 64 << 10;
constexpr size_t kMaxLogBytes = 4 << 10;

absl::Status CheckEvent(const std::string& field, const v1::JobEvent& event) {
  // Bodies from workers have the larger field numbers.
  if (event.body_case() < v1::JobEvent::kProgress) {
    return FieldError(field, "has no body that comes from workers",
                      "progress, node, step, latent_drift, preview, log, rule_frozen, sensitivity");
  }
  if (event.preview().png().size() > kMaxPreviewBytes) {
    return FieldError(field + ".preview.png", "is too large", "at most 64 KiB");
  }
  if (event.log().message().size() > kMaxLogBytes) {
    return FieldError(field + ".log.message", "is too long", "at most 4 KiB");
  }
  return absl::OkStatus();
}

absl::Status CheckBatch(const v1::ReportEventsRequest& request) {
  if (request.events_size() < 1 || request.events_size() > kMaxEvents ||
      static_cast<int64_t>(request.ByteSizeLong()) > kMaxChunkBytes) {
    return FieldError(
        "events",
        absl::StrCat("are ", request.events_size(), " in ", request.ByteSizeLong(), " bytes"),
        "1 to 1000, at most 1 MiB together");
  }
  for (int i = 0; i < request.events_size(); ++i) {
    PLUMBLINE_RETURN_IF_ERROR(
        CheckEvent(absl::StrCat("events[", i, "].event"), request.events(i).event()));
  }
  return absl::OkStatus();
}

// Reads a batch, makes it durable, and only then reads the next.
class ReportEventsStream final : public grpc::ServerReadReactor<v1::ReportEventsRequest> {
 public:
  ReportEventsStream(const Api& api, const Caller& caller, v1::ReportEventsResponse* response)
      : api_(api), caller_(caller), timer_(api, "WorkerService/ReportEvents"), response_(response) {
    StartRead(&batch_);
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      End(absl::OkStatus());
      return;
    }
    absl::Status status = CheckBatch(batch_);
    if (status.ok() && !task_.empty() &&
        (task_ != batch_.task() || token_ != batch_.fencing_token())) {
      status = FieldError("task", "differs from the stream's first", "one attempt a stream");
    }
    if (!status.ok()) {
      End(status);
      return;
    }
    task_ = batch_.task();
    token_ = batch_.fencing_token();
    api_.dispatcher->ReportEvents(batch_, [this](absl::StatusOr<int64_t> acknowledged) {
      if (!acknowledged.ok()) {
        End(acknowledged.status());
        return;
      }
      response_->set_acknowledged_client_sequence(*acknowledged);
      StartRead(&batch_);
    });
  }

  void OnDone() override { delete this; }

 private:
  void End(const absl::Status& status) {
    timer_.End(status);
    Finish(ToClientStatus(status));
  }

  const Api& api_;
  const Caller caller_;
  const CallTimer timer_;
  v1::ReportEventsResponse* const response_;
  v1::ReportEventsRequest batch_;
  std::string task_;
  int64_t token_ = 0;
};

}  // namespace

grpc::ServerReadReactor<v1::ReportEventsRequest>* NewReportEventsStream(
    const Api& api, const Caller& caller, v1::ReportEventsResponse* response) {
  return new ReportEventsStream(api, caller, response);
}

}  // namespace plumbline::server
