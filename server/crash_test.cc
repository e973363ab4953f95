// plumbline-server killed with SIGKILL while clients and a worker are at it, again and again:
// whatever it acknowledged is there afterwards, once.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "common/files.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"

extern char** environ;

namespace plumbline::server {
namespace {

constexpr int kRounds = 6;
constexpr int kEventsInABatch = 5;

// One process of the server.
class ServerProcess {
 public:
  explicit ServerProcess(const std::string& folder) {
    const std::string ready = absl::StrCat(folder, "/ready");
    std::filesystem::remove(ready);
    const std::vector<std::string> arguments = {
        "server/plumbline-server", "--listen=127.0.0.1:0", "--http=127.0.0.1:0",
        absl::StrCat("--data-dir=", folder, "/data"), absl::StrCat("--ready-file=", ready)};
    std::vector<char*> argv;
    for (const std::string& argument : arguments)
      argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    EXPECT_EQ(posix_spawn(&pid_, argv[0], nullptr, nullptr, argv.data(), environ), 0);
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
    absl::StatusOr<std::string> text = absl::NotFoundError("");
    while (!text.ok() && SystemClock()->Now() < deadline) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) break;
      std::this_thread::yield();
      text = ReadFile(ready, 1 << 16);
    }
    EXPECT_TRUE(text.ok()) << "the server did not start";
    if (!text.ok()) return;
    channel_ = grpc::CreateChannel(nlohmann::json::parse(*text)["listen"].get<std::string>(),
                                   grpc::InsecureChannelCredentials());
  }

  void Kill() const {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  pid_t pid_ = 0;
  std::shared_ptr<grpc::Channel> channel_;
};

void SetDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(SystemClock()->Now() + absl::Minutes(1)));
}

// What was acknowledged.
struct Acknowledged {
  absl::Mutex mutex;
  std::map<std::string, std::string> jobs ABSL_GUARDED_BY(mutex);  // By request id.
  std::set<std::string> completed ABSL_GUARDED_BY(mutex);          // Tasks.
  std::map<std::string, int64_t> events ABSL_GUARDED_BY(mutex);    // By task: 1 to this.
  std::atomic<int> operations{0};
};

grpc::Status CreateJob(v1::JobService::Stub* stub, const std::string& request_id, v1::Job* job) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::CreateJobRequest request;
  request.set_request_id(request_id);
  request.mutable_spec()->set_checkpoint("synthetic:tiny");
  request.mutable_spec()->mutable_block_replay();
  return stub->CreateJob(&context, request, job);
}

void CreateJobs(const std::shared_ptr<grpc::Channel>& channel, int round, Acknowledged* done) {
  const auto stub = v1::JobService::NewStub(channel);
  for (int i = 0;; ++i) {
    const std::string request_id = absl::StrCat("round", round, ".", i);
    v1::Job job;
    if (!CreateJob(stub.get(), request_id, &job).ok()) return;
    absl::MutexLock lock(&done->mutex);
    done->jobs[request_id] = job.name();
    ++done->operations;
  }
}

// The worker is another process in each round, so that what it held comes back at once.
void Work(const std::shared_ptr<grpc::Channel>& channel, int round, Acknowledged* done) {
  const auto stub = v1::WorkerService::NewStub(channel);
  const std::string incarnation = absl::StrCat("round", round);
  {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::RegisterWorkerRequest request;
    request.set_worker_id("one");
    request.set_incarnation(incarnation);
    request.mutable_capabilities()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
    request.mutable_capabilities()->mutable_device()->set_memory_bytes(1 << 30);
    v1::RegisterWorkerResponse response;
    if (!stub->RegisterWorker(&context, request, &response).ok()) return;
  }
  while (true) {
    v1::AcquireTaskResponse acquired;
    {
      grpc::ClientContext context;
      SetDeadline(&context);
      v1::AcquireTaskRequest request;
      request.set_worker("workers/one");
      request.set_incarnation(incarnation);
      request.mutable_wait()->set_seconds(1);
      if (!stub->AcquireTask(&context, request, &acquired).ok()) return;
    }
    if (!acquired.has_assignment()) continue;
    const v1::Lease& lease = acquired.assignment().lease();
    {
      absl::MutexLock lock(&done->mutex);
      done->events[lease.task()] = 0;  // What an earlier attempt reported is void.
    }
    int64_t sent = 0;
    for (int batch = 0; batch < 3; ++batch) {
      grpc::ClientContext context;
      SetDeadline(&context);
      v1::ReportEventsResponse response;
      const auto stream = stub->ReportEvents(&context, &response);
      v1::ReportEventsRequest request;
      request.set_task(lease.task());
      request.set_fencing_token(lease.fencing_token());
      for (int i = 0; i < kEventsInABatch; ++i) {
        auto& event = *request.add_events();
        event.set_client_sequence(++sent);
        event.mutable_event()->mutable_log()->set_message(absl::StrCat(sent));
      }
      stream->Write(request);
      stream->WritesDone();
      if (!stream->Finish().ok()) return;
      absl::MutexLock lock(&done->mutex);
      done->events[lease.task()] = response.acknowledged_client_sequence();
      ++done->operations;
    }
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::CompleteTaskRequest request;
    request.set_task(lease.task());
    request.set_fencing_token(lease.fencing_token());
    request.mutable_report()->mutable_verdict()->set_outcome(v1::OUTCOME_PASSED);
    v1::CompleteTaskResponse response;
    if (!stub->CompleteTask(&context, request, &response).ok()) return;
    absl::MutexLock lock(&done->mutex);
    done->completed.insert(lease.task());
    ++done->operations;
  }
}

// The events of a job that are stored now.
std::vector<v1::JobEvent> ReadEvents(v1::JobService::Stub* stub, const std::string& job,
                                     int64_t last_sequence) {
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::WatchJobRequest request;
  request.set_name(job);
  const auto stream = stub->WatchJob(&context, request);
  std::vector<v1::JobEvent> events;
  v1::JobEvent event;
  while (static_cast<int64_t>(events.size()) < last_sequence && stream->Read(&event)) {
    events.push_back(event);
  }
  context.TryCancel();
  while (stream->Read(&event)) {
  }
  stream->Finish();
  return events;
}

void CheckEverything(const std::shared_ptr<grpc::Channel>& channel, Acknowledged* done) {
  const auto stub = v1::JobService::NewStub(channel);
  absl::MutexLock lock(&done->mutex);
  for (const auto& [request_id, name] : done->jobs) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::GetJobRequest request;
    request.set_name(name);
    v1::Job job;
    ASSERT_TRUE(stub->GetJob(&context, request, &job).ok()) << name;
    v1::Job again;
    ASSERT_TRUE(CreateJob(stub.get(), request_id, &again).ok());
    ASSERT_EQ(again.name(), name) << "made twice";
    const v1::Task& task = job.tasks(0);
    if (done->completed.count(task.name()) > 0) {
      ASSERT_EQ(task.state(), v1::JOB_STATE_SUCCEEDED) << task.name();
    }
    const std::vector<v1::JobEvent> events = ReadEvents(stub.get(), name, job.last_sequence());
    int64_t logs = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
      if (events[i].has_attempt_change()) logs = 0;
      if (!events[i].has_log()) continue;
      ++logs;
      ASSERT_EQ(events[i].log().message(), absl::StrCat(logs)) << "lost or repeated";
    }
    const auto acknowledged = done->events.find(task.name());
    if (acknowledged != done->events.end() && task.state() != v1::JOB_STATE_SUCCEEDED) {
      ASSERT_GE(logs, acknowledged->second) << task.name();
    }
  }
}

TEST(CrashTest, LosesNothingThatWasAcknowledged) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::string folder = absl::StrCat(testing::TempDir(), "/crash");
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  Acknowledged done;
  for (int round = 0; round < kRounds; ++round) {
    const ServerProcess server(folder);
    ASSERT_NE(server.channel(), nullptr);
    CheckEverything(server.channel(), &done);
    if (HasFailure()) return;
    std::thread client([&] { CreateJobs(server.channel(), round, &done); });
    std::thread worker([&] { Work(server.channel(), round, &done); });
    const int enough = done.operations + 20 + static_cast<int>(random() % 100);
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
    while (done.operations < enough && SystemClock()->Now() < deadline) std::this_thread::yield();
    EXPECT_GE(done.operations, enough);
    server.Kill();
    client.join();
    worker.join();
  }
  const ServerProcess server(folder);
  CheckEverything(server.channel(), &done);
  server.Kill();
  absl::MutexLock lock(&done.mutex);
  EXPECT_FALSE(done.completed.empty());
}

}  // namespace
}  // namespace plumbline::server
