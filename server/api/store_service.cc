#include "server/api/store_service.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "server/access/gates.h"
#include "server/api/call.h"
#include "server/proto_util.h"
#include "server/resource_name.h"
#include "server/store/run_name.h"

namespace plumbline::server {
namespace {

constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;

// Where a list that is sorted by last use, then name, goes on.
struct RunPosition {
  int64_t last_use_nanos = 0;
  std::string name;
};

RunPosition PositionOf(const v1::Run& run) {
  return {absl::ToUnixNanos(FromTimestamp(run.last_use_time())), run.name()};
}

bool IsAfter(const v1::Run& run, const RunPosition& position) {
  const RunPosition own = PositionOf(run);
  return own.last_use_nanos != position.last_use_nanos
             ? own.last_use_nanos < position.last_use_nanos
             : own.name > position.name;
}

absl::StatusOr<RunPosition> ParsePageToken(const std::string& token) {
  RunPosition position;
  const std::vector<std::string> parts = absl::StrSplit(token, absl::MaxSplits(':', 1));
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[0], &position.last_use_nanos)) {
    return FieldError("page_token", absl::StrCat(Quoted(token), " is no page token"),
                      "one from an answer of this call");
  }
  position.name = parts[1];
  return position;
}

class StoreServiceImpl final : public StoreServiceGate {
 public:
  explicit StoreServiceImpl(const Api& api) : StoreServiceGate(api.gatekeeper), api_(api) {}

  grpc::ServerUnaryReactor* ListRuns(const Caller& caller, const v1::ListRunsRequest* request,
                                     v1::ListRunsResponse* response) override {
    return RunOnPool(api_, "StoreService/ListRuns",
                     [this, request, response] { return List(*request, response); });
  }

  grpc::ServerUnaryReactor* GetRun(const Caller& caller, const v1::GetRunRequest* request,
                                   v1::Run* response) override {
    return RunOnPool(api_, "StoreService/GetRun", [this, request, response]() -> absl::Status {
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string id,
                                 ParseRunName(request->name(), "name", /*allow_prefix=*/true));
      return Fill(id, response);
    });
  }

  grpc::ServerUnaryReactor* VerifyRun(const Caller& caller, const v1::VerifyRunRequest* request,
                                      v1::VerifyRunResponse* response) override {
    return PostToPool(api_, "StoreService/VerifyRun", [this, request, response](UnaryCall* call) {
      call->End(Verify(request->name(), *call, response));
    });
  }

  grpc::ServerUnaryReactor* AdoptRun(const Caller& caller, const v1::AdoptRunRequest* request,
                                     v1::Run* response) override {
    constexpr absl::string_view kMethod = "StoreService/AdoptRun";
    return RunOnPool(api_, kMethod, [this, caller, request, response]() -> absl::Status {
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseRunName(request->name(), "name"));
      PLUMBLINE_RETURN_IF_ERROR(CheckSha256(request->from(), "from"));
      PLUMBLINE_RETURN_IF_ERROR(api_.steps->AdoptRun(
          id, request->from(),
          api_.dispatcher->Audit(caller, request->name(), absl::StrCat("from ", request->from()))));
      return Fill(id, response);
    });
  }

  grpc::ServerUnaryReactor* DeleteRun(const Caller& caller, const v1::DeleteRunRequest* request,
                                      google::protobuf::Empty*) override {
    constexpr absl::string_view kMethod = "StoreService/DeleteRun";
    return RunOnPool(api_, kMethod, [this, caller, request]() -> absl::Status {
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseRunName(request->name(), "name"));
      return api_.steps->DeleteRun(id, api_.dispatcher->Audit(caller, request->name()));
    });
  }

  grpc::ServerUnaryReactor* Compact(const Caller& caller, const v1::CompactRequest*,
                                    v1::CompactResponse* response) override {
    constexpr absl::string_view kMethod = "StoreService/Compact";
    return RunOnPool(api_, kMethod, [this, caller, response]() -> absl::Status {
      PLUMBLINE_ASSIGN_OR_RETURN(*response,
                                 api_.steps->Compact(api_.dispatcher->Audit(caller, "")));
      return absl::OkStatus();
    });
  }

  grpc::ServerUnaryReactor* Backup(const Caller& caller, const v1::BackupRequest*,
                                   v1::BackupResponse* response) override {
    constexpr absl::string_view kMethod = "StoreService/Backup";
    return RunOnPool(api_, kMethod, [this, caller, response]() -> absl::Status {
      PLUMBLINE_ASSIGN_OR_RETURN(*response, api_.backups->Create());
      WriteSet set;
      set.AppendAudit(
          api_.dispatcher->Audit(caller, "", absl::StrCat("backup ", response->backup_id())));
      return api_.store->CommitAndWait(&set);
    });
  }

 private:
  absl::Status Verify(const std::string& name, const UnaryCall& call,
                      v1::VerifyRunResponse* response) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseRunName(name, "name"));
    PLUMBLINE_ASSIGN_OR_RETURN(*response,
                               api_.steps->VerifyRun(id, [&call] { return call.IsCancelled(); }));
    return absl::OkStatus();
  }

  absl::Status Fill(absl::string_view id, v1::Run* response) const {
    PLUMBLINE_ASSIGN_OR_RETURN(*response, api_.steps->GetRun(id));
    // What ran is for people; what is needed to resume stays.
    if (static_cast<int64_t>(response->ByteSizeLong()) > kMaxPageBytes) {
      for (v1::StepRecord& step : *response->mutable_steps()) step.clear_trace();
    }
    return absl::OkStatus();
  }

  absl::Status List(const v1::ListRunsRequest& request, v1::ListRunsResponse* response) const {
    if (request.page_size() < 0 || request.page_size() > kMaxPageSize) {
      return FieldError("page_size", absl::StrCat(request.page_size(), " is out of range"),
                        "1 to 1000, or 0 for 50");
    }
    const int page_size = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
    if (!request.job().empty()) {
      PLUMBLINE_RETURN_IF_ERROR(ParseName(request.job(), "jobs", "job").status());
    }
    RunPosition after;
    if (!request.page_token().empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(after, ParsePageToken(request.page_token()));
    }
    response->set_total_size_bytes(api_.steps->size_bytes());
    response->set_budget_bytes(api_.steps->budget_bytes());
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> made, RunsMadeBy(request.job()));
    int64_t bytes = 0;
    for (v1::Run& run : api_.steps->ListRuns()) {
      if (!request.page_token().empty() && !IsAfter(run, after)) continue;
      const auto& states = request.states();
      if (!states.empty() && std::find(states.begin(), states.end(), run.state()) == states.end()) {
        continue;
      }
      for (std::string& job : api_.dispatcher->JobsNeeding(run)) run.add_jobs(std::move(job));
      if (!request.job().empty() &&
          std::find(run.jobs().begin(), run.jobs().end(), request.job()) == run.jobs().end() &&
          std::find(made.begin(), made.end(), run.name()) == made.end()) {
        continue;
      }
      bytes += static_cast<int64_t>(run.ByteSizeLong());
      if (response->runs_size() == page_size ||
          (bytes > kMaxPageBytes && response->runs_size() > 0)) {
        const RunPosition last = PositionOf(*response->runs().rbegin());
        response->set_next_page_token(absl::StrCat(last.last_use_nanos, ":", last.name));
        break;
      }
      *response->add_runs() = std::move(run);
    }
    return absl::OkStatus();
  }

  // Of a job that may have finished long ago. A job that is not there made none.
  absl::StatusOr<std::vector<std::string>> RunsMadeBy(const std::string& job) const {
    std::vector<std::string> runs;
    if (job.empty()) return runs;
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string id, ParseName(job, "jobs", "job"));
    const absl::StatusOr<int64_t> number = api_.store->FindJob(id);
    if (absl::IsNotFound(number.status())) return runs;
    if (!number.ok()) return number.status();
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<store::TaskRecord> tasks,
                               api_.store->ReadTasks(*number));
    for (const store::TaskRecord& task : tasks) {
      if (!task.task().run().empty()) runs.push_back(task.task().run());
    }
    return runs;
  }

  const Api& api_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewStoreService(const Api& api) {
  return std::make_unique<StoreServiceImpl>(api);
}

}  // namespace plumbline::server
