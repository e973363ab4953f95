// How long a coordinator's store takes to open with 100,000 finished jobs and 150 runs of 49 steps
// of two 64 KiB blobs.
//
//   store_start_bench [FOLDER]     default: under $TMPDIR or /tmp
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/store/step_store.h"

namespace plumbline::server {
namespace {

constexpr int kJobs = 100000;
constexpr int kRuns = 150;
constexpr int kSteps = 49;
constexpr int64_t kBlobBytes = 64 << 10;
constexpr int kOpenings = 5;

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

absl::Status Measure(const std::string& folder) {
  Clock* const clock = SystemClock();
  {
    PLUMBLINE_ASSIGN_OR_RETURN(const Opened opened, Open(folder));
    WriteSet grant;
    store::LeaseRecord lease;
    lease.set_fencing_token(1);
    grant.GrantLease({1, 0}, lease);
    PLUMBLINE_RETURN_IF_ERROR(opened.store->CommitAndWait(&grant));
    PLUMBLINE_RETURN_IF_ERROR(AddJobs(opened.store.get()));
    const absl::Time start = clock->Now();
    for (int i = 0; i < kRuns * kSteps; ++i) {
      PLUMBLINE_RETURN_IF_ERROR(AddStep(opened.steps.get(), i / kSteps, i % kSteps));
    }
    std::printf("%d steps of 128 KiB saved, %.1f ms each\n", kRuns * kSteps,
                absl::ToDoubleMilliseconds(clock->Now() - start) / (kRuns * kSteps));
  }
  std::vector<double> seconds;
  for (int i = 0; i < kOpenings; ++i) {
    const absl::Time start = clock->Now();
    PLUMBLINE_ASSIGN_OR_RETURN(const Opened opened, Open(folder));
    seconds.push_back(absl::ToDoubleSeconds(clock->Now() - start));
    if (opened.steps->ListRuns().size() != kRuns) return absl::InternalError("runs are missing");
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("opened with %d jobs and %d runs in %.2f s, %.2f to %.2f (must: at most 3)\n", kJobs,
              kRuns, seconds[kOpenings / 2], seconds.front(), seconds.back());
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const char* const temporary = std::getenv("TMPDIR");
  std::string folder = argc > 1 ? argv[1] : temporary != nullptr ? temporary : "/tmp";
  absl::StrAppend(&folder, "/store_start_bench.", getpid());
  const absl::Status status = Measure(folder);
  std::filesystem::remove_all(folder);
  if (status.ok()) return 0;
  std::fprintf(stderr, "store_start_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) { return plumbline::server::Main(argc, argv); }
