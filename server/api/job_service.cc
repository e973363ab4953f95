#include "server/api/job_service.h"

#include <limits>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/chosen_name.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/access/gates.h"
#include "server/api/call.h"
#include "server/api/generation_references.h"
#include "server/api/job_filter.h"
#include "server/api/job_reads.h"
#include "server/api/job_uploads.h"
#include "server/api/report.h"
#include "server/api/watch_streams.h"
#include "server/proto_util.h"
#include "server/resource_name.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/job_validation.h"

namespace plumbline::server {
namespace {

constexpr int kMaxPageSize = 1000;
constexpr int kDefaultPageSize = 50;
constexpr size_t kMaxRequestIdBytes = 128;
constexpr int kJobsBetweenLooks = 256;
constexpr absl::string_view kCreateJob = "JobService/CreateJob";
// A job that another one waits for ends once, so that few tries are enough.
constexpr int kMaxTries = 10;

class JobServiceImpl final : public JobServiceGate {
 public:
  explicit JobServiceImpl(const Api& api) : JobServiceGate(api.gatekeeper), api_(api) {}

  grpc::ServerUnaryReactor* CreateJob(const Caller& caller, const v1::CreateJobRequest* request,
                                      v1::Job* response) override {
    return PostToPool(api_, kCreateJob, [this, caller, request, response](UnaryCall* call) {
      Create(call, caller, request, response, 0);
    });
  }

  grpc::ServerUnaryReactor* GetJob(const Caller& caller, const v1::GetJobRequest* request,
                                   v1::Job* response) override {
    return RunOnPool(api_, "JobService/GetJob", [this, request, response]() -> absl::Status {
      PLUMBLINE_ASSIGN_OR_RETURN(const int64_t number, FindJob(api_, request->name(), "name"));
      return Fill(ReadWholeJob(api_, number), response);
    });
  }

  grpc::ServerUnaryReactor* ListJobs(const Caller& caller, const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override {
    return PostToPool(api_, "JobService/ListJobs", [this, request, response](UnaryCall* call) {
      call->End(List(*request, *call, response));
    });
  }

  grpc::ServerUnaryReactor* CancelJob(const Caller& caller, const v1::CancelJobRequest* request,
                                      v1::Job* response) override {
    constexpr absl::string_view kMethod = "JobService/CancelJob";
    return PostToPool(api_, kMethod, [this, caller, request, response](UnaryCall* call) {
      const absl::StatusOr<int64_t> number = FindJob(api_, request->name(), "name");
      if (!number.ok()) {
        call->End(number.status());
        return;
      }
      if (absl::Status bad = CheckRemark(request->reason(), "reason", kMaxReasonBytes); !bad.ok()) {
        call->End(std::move(bad));
        return;
      }
      api_.dispatcher->CancelJob(caller, *number, request->reason(),
                                 [this, call, response, number = *number](absl::Status status) {
                                   if (!status.ok()) {
                                     call->End(status);
                                     return;
                                   }
                                   api_.pool->Post([this, call, response, number] {
                                     call->End(Fill(ReadWholeJob(api_, number), response));
                                   });
                                 });
    });
  }

  grpc::ServerUnaryReactor* DeleteJob(const Caller& caller, const v1::DeleteJobRequest* request,
                                      google::protobuf::Empty*) override {
    constexpr absl::string_view kMethod = "JobService/DeleteJob";
    return PostToPool(api_, kMethod, [this, caller, request](UnaryCall* call) {
      const absl::StatusOr<int64_t> number = FindJob(api_, request->name(), "name");
      absl::Status status = number.status();
      if (number.ok()) {
        absl::StatusOr<store::JobRecord> record = api_.store->ReadJob(*number);
        absl::StatusOr<std::vector<v1::Artifact>> artifacts = api_.store->ReadArtifactsOf(*number);
        status.Update(record.status());
        status.Update(artifacts.status());
        if (status.ok()) {
          const auto uploads = UploadsOfJobAlone(*api_.store, *number, *record);
          status.Update(uploads.status());
          if (uploads.ok()) artifacts->insert(artifacts->end(), uploads->begin(), uploads->end());
        }
        if (status.ok()) {
          Delete(call, caller, *number, *record, *std::move(artifacts));
          return;
        }
      }
      call->End(status);
    });
  }

  grpc::ServerUnaryReactor* GetReport(const Caller& caller, const v1::GetReportRequest* request,
                                      v1::GetReportResponse* response) override {
    return RunOnPool(api_, "JobService/GetReport", [this, request, response]() -> absl::Status {
      std::string id;
      std::optional<int32_t> task;
      if (absl::StatusOr<TaskName> name = ParseTaskName(request->name(), "name"); name.ok()) {
        id = name->job_id;
        task = name->task;
      } else {
        PLUMBLINE_ASSIGN_OR_RETURN(id, ParseName(request->name(), "jobs", "name"));
      }
      PLUMBLINE_ASSIGN_OR_RETURN(const int64_t number, api_.store->FindJob(id));
      return Fill(ReadReportPage(*api_.store, number, task, request->page_token(), kMaxPageBytes),
                  response);
    });
  }

  grpc::ServerUnaryReactor* CompareJobs(const Caller& caller, const v1::CompareJobsRequest* request,
                                        v1::JobComparison* response) override {
    return RunOnPool(api_, "JobService/CompareJobs",
                     [this, request, response] { return Compare(*request, response); });
  }

  // Events are sent as they are stored, without being decoded.
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchJob(const Caller& caller,
                                                       const grpc::ByteBuffer* encoded) override {
    grpc::ByteBuffer buffer = *encoded;
    v1::WatchJobRequest request;
    const grpc::Status parsed =
        grpc::SerializationTraits<v1::WatchJobRequest>::Deserialize(&buffer, &request);
    // Without a name it ends by itself, as a bad request.
    if (!parsed.ok()) request.Clear();
    return NewWatchJobStream(api_, caller, request);
  }

  grpc::ServerWriteReactor<v1::WatchJobsResponse>* WatchJobs(
      const Caller& caller, const v1::WatchJobsRequest* request) override {
    return NewWatchJobsStream(api_, caller, *request);
  }

 private:
  template <typename T>
  static absl::Status Fill(absl::StatusOr<T> value, T* response) {
    if (value.ok()) *response = *std::move(value);
    return value.status();
  }

  // On the pool. `tries`: how often what the job refers to has changed meanwhile.
  void Create(UnaryCall* call, const Caller& caller, const v1::CreateJobRequest* request,
              v1::Job* response, int tries) {
    absl::StatusOr<NewJob> job = CheckNewJob(*request);
    if (!job.ok()) {
      call->End(job.status());
      return;
    }
    if (request->validate_only()) {
      *response = api_.dispatcher->DescribeJob(std::move(job->spec));
      call->End(absl::OkStatus());
      return;
    }
    api_.dispatcher->CreateJob(
        caller, *std::move(job),
        [this, call, caller, request, response, tries](absl::StatusOr<int64_t> number) {
          api_.pool->Post(
              [this, call, caller, request, response, tries, number = std::move(number)] {
                if (GetReason(number.status()) == kReferencesChangedReason && tries < kMaxTries) {
                  Create(call, caller, request, response, tries + 1);
                } else if (!number.ok()) {
                  call->End(number.status());
                } else {
                  call->End(Fill(ReadWholeJob(api_, *number), response));
                }
              });
        });
  }

  // Whether an artifact is a plug-in; null where there are none.
  std::function<bool(const std::string&)> PluginCheck() const {
    if (!api_.takes_plugin_uploads) return nullptr;
    return [this](const std::string& name) {
      const absl::StatusOr<v1::Artifact> artifact = api_.store->ReadArtifact(name);
      return artifact.ok() && artifact->role() == v1::ARTIFACT_ROLE_PLUGIN;
    };
  }

  absl::StatusOr<NewJob> CheckNewJob(const v1::CreateJobRequest& request) const {
    NewJob job;
    job.spec = request.spec();
    PLUMBLINE_RETURN_IF_ERROR(CheckKind(job.spec));
    if (request.request_id().size() > kMaxRequestIdBytes) {
      return FieldError("request_id", "is too long", "at most 128 bytes");
    }
    PLUMBLINE_RETURN_IF_ERROR(ValidateSpec(
        [this](const std::string& name) { return api_.store->ReadArtifact(name).ok(); },
        PluginCheck(), &job.spec));
    PLUMBLINE_RETURN_IF_ERROR(ResolveReferences(api_, &job));
    job.request_id = request.request_id();
    job.request_sha256 = Sha256Hex(DeterministicBytes(job.spec));
    return job;
  }

  absl::Status List(const v1::ListJobsRequest& request, const UnaryCall& call,
                    v1::ListJobsResponse* response) const {
    if (request.page_size() < 0 || request.page_size() > kMaxPageSize) {
      return FieldError("page_size", absl::StrCat(request.page_size(), " is out of range"),
                        "1 to 1000, or 0 for 50");
    }
    const int page_size = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
    int64_t before = std::numeric_limits<int64_t>::max();
    if (!request.page_token().empty() && !absl::SimpleAtoi(request.page_token(), &before)) {
      return FieldError("page_token",
                        absl::StrCat(Quoted(request.page_token()), " is no page token"),
                        "one from an answer of this call");
    }
    int64_t bytes = 0;
    bool more = false;
    int visited = 0;
    std::vector<int64_t> numbers;
    PLUMBLINE_RETURN_IF_ERROR(
        api_.store->VisitJobs(before, [&](int64_t number, const store::JobRecord& record) {
          // A filter that matches little reads much.
          if (++visited % kJobsBetweenLooks == 0 && call.IsCancelled()) return false;
          if (!Matches(request.filter(), record.job())) return true;
          bytes += static_cast<int64_t>(record.job().ByteSizeLong());
          more = response->jobs_size() == page_size ||
                 (bytes > kMaxPageBytes && response->jobs_size() > 0);
          if (more) return false;
          *response->add_jobs() = record.job();
          numbers.push_back(number);
          return true;
        }));
    if (call.IsCancelled()) return CallerLeft();
    for (size_t i = 0; i < numbers.size(); ++i) {
      PLUMBLINE_RETURN_IF_ERROR(
          CompleteListedJob(api_, numbers[i], response->mutable_jobs(static_cast<int>(i))));
    }
    if (more) response->set_next_page_token(absl::StrCat(numbers.back()));
    return absl::OkStatus();
  }

  void Delete(UnaryCall* call, const Caller& caller, int64_t number, const store::JobRecord& record,
              std::vector<v1::Artifact> artifacts) {
    std::vector<std::string> names;
    for (const v1::Artifact& artifact : artifacts) names.push_back(artifact.name());
    api_.dispatcher->DeleteJob(caller, number, record, std::move(artifacts),
                               [this, call, names = std::move(names)](absl::Status status) {
                                 api_.pool->Post([this, call, names, status] {
                                   if (status.ok()) {
                                     for (const std::string& name : names) api_.files->Delete(name);
                                   }
                                   call->End(status);
                                 });
                               });
  }

  absl::StatusOr<v1::Report> ReadWholeReport(const std::string& name,
                                             absl::string_view field) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const int64_t number, FindJob(api_, name, field));
    PLUMBLINE_ASSIGN_OR_RETURN(
        v1::GetReportResponse whole,
        ReadReportPage(*api_.store, number, std::nullopt, "", std::numeric_limits<int64_t>::max()));
    return std::move(*whole.mutable_report());
  }

  absl::Status Compare(const v1::CompareJobsRequest& request, v1::JobComparison* response) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Report a, ReadWholeReport(request.a(), "a"));
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Report b, ReadWholeReport(request.b(), "b"));
    if (a.kind() != b.kind()) {
      return FieldError("b",
                        absl::StrCat(request.b(), " is a ", KindName(b.kind()), " job, ",
                                     request.a(), " a ", KindName(a.kind()), " job"),
                        "two jobs of one kind");
    }
    *response = CompareReports(a, b);
    if (static_cast<int64_t>(response->ByteSizeLong()) > kMaxReportBytes) {
      return WithReason(absl::ResourceExhaustedError(
                            "the comparison is larger than 4 MB; compare jobs with fewer layouts"),
                        "TOO_LARGE");
    }
    return absl::OkStatus();
  }

  const Api& api_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewJobService(const Api& api) {
  return std::make_unique<JobServiceImpl>(api);
}

}  // namespace plumbline::server
