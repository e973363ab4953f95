#include "server/api/admin_service.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/chosen_name.h"
#include "common/status.h"
#include "server/access/gates.h"
#include "server/api/call.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

constexpr int kDefaultPageSize = 100;
constexpr int kMaxPageSize = 1000;

absl::StatusOr<int> PageSize(int32_t asked) {
  if (asked < 0 || asked > kMaxPageSize) {
    return FieldError("page_size", absl::StrCat(asked, " is out of range"),
                      "1 to 1000, or 0 for 100");
  }
  return asked == 0 ? kDefaultPageSize : asked;
}

class AdminServiceImpl final : public AdminServiceGate {
 public:
  explicit AdminServiceImpl(const Api& api) : AdminServiceGate(api.gatekeeper), api_(api) {}

  grpc::ServerUnaryReactor* ListWorkers(const Caller& caller, const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override {
    return RunOnPool(api_, "AdminService/ListWorkers",
                     [this, request, response] { return List(*request, response); });
  }

  grpc::ServerUnaryReactor* GetWorker(const Caller& caller, const v1::GetWorkerRequest* request,
                                      v1::Worker* response) override {
    return RunOnPool(api_, "AdminService/GetWorker", [this, request, response]() -> absl::Status {
      PLUMBLINE_RETURN_IF_ERROR(ParseName(request->name(), "workers", "name").status());
      PLUMBLINE_ASSIGN_OR_RETURN(*response, api_.dispatcher->GetWorker(request->name()));
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* DrainWorker(const Caller& caller, const v1::DrainWorkerRequest* request,
                                        v1::Worker* response) override {
    constexpr absl::string_view kMethod = "AdminService/DrainWorker";
    absl::Status bad = ParseName(request->name(), "workers", "name").status();
    if (bad.ok()) bad = CheckRemark(request->reason(), "reason", kMaxReasonBytes);
    if (!bad.ok()) return Refuse(api_, kMethod, std::move(bad));
    auto* const call = new UnaryCall(api_, kMethod);
    api_.dispatcher->DrainWorker(caller, request->name(), request->reason(),
                                 [call, response](absl::StatusOr<v1::Worker> worker) {
                                   if (worker.ok()) *response = *std::move(worker);
                                   call->End(worker.status());
                                 });
    return call;
  }

  grpc::ServerUnaryReactor* ListAuditEvents(const Caller& caller,
                                            const v1::ListAuditEventsRequest* request,
                                            v1::ListAuditEventsResponse* response) override {
    return RunOnPool(api_, "AdminService/ListAuditEvents",
                     [this, request, response] { return ListAudit(*request, response); });
  }

 private:
  absl::Status List(const v1::ListWorkersRequest& request,
                    v1::ListWorkersResponse* response) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
    int64_t bytes = 0;
    for (v1::Worker& worker : api_.dispatcher->Workers()) {
      // By name, so a page ends with the name that the next one follows.
      if (worker.name() <= request.page_token()) continue;
      const auto& states = request.states();
      const bool matches =
          states.empty() ? worker.state() != v1::WORKER_STATE_GONE
                         : std::find(states.begin(), states.end(), worker.state()) != states.end();
      if (!matches) continue;
      bytes += static_cast<int64_t>(worker.ByteSizeLong());
      if (response->workers_size() == page_size ||
          (bytes > kMaxPageBytes && response->workers_size() > 0)) {
        response->set_next_page_token(response->workers().rbegin()->name());
        break;
      }
      *response->add_workers() = std::move(worker);
    }
    return absl::OkStatus();
  }

  absl::Status ListAudit(const v1::ListAuditEventsRequest& request,
                         v1::ListAuditEventsResponse* response) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const int page_size, PageSize(request.page_size()));
    int64_t before = std::numeric_limits<int64_t>::max();
    if (!request.page_token().empty() && !absl::SimpleAtoi(request.page_token(), &before)) {
      return FieldError("page_token",
                        absl::StrCat(Quoted(request.page_token()), " is no page token"),
                        "one from an answer of this call");
    }
    const auto matches = [](const std::string& asked, const std::string& is) {
      return asked.empty() || asked == is;
    };
    return api_.store->VisitAudit(before, [&](const v1::AuditEvent& event) {
      if (!matches(request.principal(), event.principal()) ||
          !matches(request.resource(), event.resource()) ||
          !matches(request.method(), event.method())) {
        return true;
      }
      if (response->events_size() == page_size) {
        response->set_next_page_token(absl::StrCat(response->events().rbegin()->sequence()));
        return false;
      }
      *response->add_events() = event;
      return true;
    });
  }

  const Api& api_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewAdminService(const Api& api) {
  return std::make_unique<AdminServiceImpl>(api);
}

}  // namespace plumbline::server
