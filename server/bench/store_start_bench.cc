// How long a coordinator takes from its start until it serves, with 100,000 finished jobs and 150
// runs of 49 steps of two 64 KiB blobs.
//
//   store_start_bench [--server=PROGRAM] [FOLDER]     default: under $TMPDIR or /tmp
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock.h"
#include "common/grpc_status.h"
#include "common/sha256.h"
#include "common/status.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "server/bench/table_row.h"
#include "server/store/step_store.h"
#include "server/testing/server_process.h"

namespace plumbline::server {
namespace {

constexpr int kJobs = 100000;
constexpr int kRuns = 150;
constexpr int kSteps = 49;
constexpr int64_t kBlobBytes = 64 << 10;
constexpr int kStarts = 5;

struct Opened {
  std::unique_ptr<Store> store;
  std::unique_ptr<StepStore> steps;
};

absl::StatusOr<Opened> Open(const std::string& folder) {
  StoreOptions options;
  options.path = folder;
  Opened opened;
  PLUMBLINE_ASSIGN_OR_RETURN(opened.store, Store::Open(options));
  PLUMBLINE_ASSIGN_OR_RETURN(opened.steps, StepStore::Open(opened.store.get(), {}));
  return opened;
}

absl::Status AddJobs(Store* store) {
  for (int64_t number = 1; number <= kJobs; ++number) {
    store::JobRecord job;
    job.mutable_job()->set_name(absl::StrCat("jobs/", number));
    job.mutable_job()->set_state(v1::JOB_STATE_SUCCEEDED);
    job.mutable_job()->mutable_spec()->mutable_block_replay()->add_layouts()->set_name("tiny");
    store::TaskRecord task;
    task.mutable_task()->set_name(absl::StrCat("jobs/", number, "/tasks/0"));
    task.mutable_task()->set_state(v1::JOB_STATE_SUCCEEDED);
    WriteSet set;
    set.CreateJob(number, job);
    set.PutJob(number, job, /*live=*/false);
    set.PutTask({number, 0}, task);
    for (int i = 0; i < 5; ++i) {
      v1::JobEvent event;
      event.mutable_log()->set_message("what happened");
      set.AppendEvent(number, std::move(event));
    }
    PLUMBLINE_RETURN_IF_ERROR(number % 1000 == 0 ? store->CommitAndWait(&set)
                                                 : store->Commit(&set, nullptr));
  }
  return absl::OkStatus();
}

absl::Status AddStep(StepStore* steps, int run, int index) {
  NewStep step;
  step.task = {1, 0};
  step.fencing_token = 1;
  v1::PutStepRequest::Header& header = step.header;
  header.mutable_identity()->set_sha256(Sha256Hex(absl::StrCat("run ", run)));
  header.mutable_identity()->add_parts()->set_name("seed");
  header.set_total_steps(kSteps);
  header.mutable_record()->set_index(index);
  header.mutable_record()->set_input_digest(Sha256Hex(absl::StrCat(run, " ", index)));
  std::string bytes;
  for (int i = 0; i < 2; ++i) {
    std::string blob(kBlobBytes, 'x');
    const int number = (run * kSteps + index) * 2 + i;
    std::memcpy(blob.data(), &number, sizeof(number));
    v1::TensorDigest& output = *header.mutable_record()->add_outputs();
    output.set_name(absl::StrCat("velocity.", i));
    output.set_size_bytes(kBlobBytes);
    output.set_sha256(Sha256Hex(blob));
    bytes += blob;
  }
  v1::StreamTrailer trailer;
  trailer.set_size_bytes(static_cast<int64_t>(bytes.size()));
  trailer.set_sha256(Sha256Hex(bytes));
  StepUpload upload(header);
  PLUMBLINE_RETURN_IF_ERROR(upload.Append(std::move(bytes)));
  PLUMBLINE_RETURN_IF_ERROR(upload.Finish(trailer));
  step.upload = &upload;
  return steps->PutStep(step, v1::AuditEvent()).status();
}

// A store as a coordinator leaves it.
absl::Status Fill(const std::string& folder) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Opened opened, Open(folder));
  WriteSet grant;
  store::LeaseRecord lease;
  lease.set_fencing_token(1);
  grant.GrantLease({1, 0}, lease);
  PLUMBLINE_RETURN_IF_ERROR(opened.store->CommitAndWait(&grant));
  PLUMBLINE_RETURN_IF_ERROR(AddJobs(opened.store.get()));
  const absl::Time start = SystemClock()->Now();
  for (int i = 0; i < kRuns * kSteps; ++i) {
    PLUMBLINE_RETURN_IF_ERROR(AddStep(opened.steps.get(), i / kSteps, i % kSteps));
  }
  std::printf("%d steps of 128 KiB saved, %.1f ms each\n", kRuns * kSteps,
              absl::ToDoubleMilliseconds(SystemClock()->Now() - start) / (kRuns * kSteps));
  WriteSet end;
  end.RequireLease({1, 0}, 1);
  end.EndLease({1, 0});
  return opened.store->CommitAndWait(&end);
}

// It has them all.
absl::Status Look(const ServerProcess& server) {
  grpc::ClientContext runs_context;
  v1::ListRunsRequest runs_request;
  runs_request.set_page_size(1000);
  v1::ListRunsResponse runs;
  PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(
      v1::StoreService::NewStub(server.Connect())->ListRuns(&runs_context, runs_request, &runs)));
  if (runs.runs_size() != kRuns) return absl::InternalError("runs are missing");
  grpc::ClientContext job_context;
  v1::GetJobRequest job_request;
  job_request.set_name(absl::StrCat("jobs/", kJobs));
  v1::Job job;
  return FromGrpcStatus(
      v1::JobService::NewStub(server.Connect())->GetJob(&job_context, job_request, &job));
}

absl::Status Measure(const ServerProcess::Options& options) {
  PLUMBLINE_RETURN_IF_ERROR(Fill(options.folder + "/data/store"));
  std::vector<double> seconds;
  for (int i = 0; i < kStarts; ++i) {
    const absl::Time start = SystemClock()->Now();
    ServerProcess server(options);
    seconds.push_back(absl::ToDoubleSeconds(SystemClock()->Now() - start));
    if (!server.serves()) return absl::UnavailableError("the coordinator does not start");
    PLUMBLINE_RETURN_IF_ERROR(Look(server));
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[kStarts / 2];
  std::printf("started, and serves, with %d jobs and %d runs in %.2f s, %.2f to %.2f\n", kJobs,
              kRuns, median, seconds.front(), seconds.back());
  PrintTableRow(4, "coordinator start with 100,000 finished jobs and 150 runs of 49 steps",
                "at most 3 s", absl::StrFormat("%.2f s", median), median <= 3);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const char* const temporary = std::getenv("TMPDIR");
  ServerProcess::Options options;
  std::string folder = temporary != nullptr ? temporary : "/tmp";
  CLI::App app("Measures how long a coordinator with much in its store takes to start.",
               "store_start_bench");
  app.add_option("--server", options.program, "The coordinator's program")->capture_default_str();
  app.add_option("folder", folder, "On the disk to measure")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  options.folder = absl::StrCat(folder, "/store_start_bench.", getpid());
  std::filesystem::create_directories(options.folder + "/data");
  const absl::Status status = Measure(options);
  std::filesystem::remove_all(options.folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "store_start_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) { return plumbline::server::Main(argc, argv); }
