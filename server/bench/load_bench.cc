// What the coordinator bears on this machine, which also runs everything that loads it, over
// loopback: a thousand workers that heartbeat and take tasks, a hundred watchers of events, and ten
// thousand live tasks in memory.
//
//   load_bench [--server=PROGRAM] [--folder=DIR] [--rate=CALLS] [--seconds=S]
//
// Calls are made at the times of a plan, whether or not the coordinator keeps up, and their latency
// counts from then.
#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/grpc_status.h"
#include "common/status.h"
#include "proto/plumbline/v1/job_service.grpc.pb.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"
#include "server/bench/bench_worker.h"
#include "server/bench/latencies.h"
#include "server/bench/table_row.h"
#include "server/testing/server_process.h"

namespace plumbline::server {
namespace {

constexpr int kWorkers = 1000;
constexpr int kWatchers = 100;
constexpr int kLiveTasks = 10'000;
constexpr int kTasksAJob = 50;
constexpr int kEvents = 6000;
constexpr int kEventsABatch = 100;

struct Flags {
  std::string server = "server/plumbline-server";
  std::string folder = "/tmp";
  int rate = 5500;
  int seconds = 15;
};

// "VmRSS" and the like of a process, bytes.
int64_t MemoryOf(pid_t pid, const std::string& name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  while (file >> word) {
    int64_t kilobytes = 0;
    if (word == name + ":" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

double SecondsOfCpu(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string word;
  double ticks = 0;
  for (int i = 1; i <= 15 && file >> word; ++i) {
    if (i >= 14) ticks += std::stod(word);
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// One watcher of a job that counts what it gets and that nothing is missing.
class Watcher final : public grpc::ClientReadReactor<v1::JobEvent> {
 public:
  Watcher(std::shared_ptr<grpc::Channel> channel, const std::string& job, int64_t last,
          std::atomic<int64_t>* received, absl::BlockingCounter* done)
      : stub_(v1::JobService::NewStub(std::move(channel))),
        last_(last),
        received_(received),
        done_(done) {
    request_.set_name(job);
    stub_->async()->WatchJob(&context_, &request_, this);
    StartRead(&event_);
    StartCall();
  }

  void OnReadDone(bool ok) override {
    if (!ok) return;
    ++*received_;
    if (event_.sequence() != newest_ + 1) gaps_ = true;
    newest_ = event_.sequence();
    if (newest_ >= last_) {
      context_.TryCancel();
    } else {
      StartRead(&event_);
    }
  }
  void OnDone(const grpc::Status&) override { done_->DecrementCount(); }

  bool complete() const { return !gaps_ && newest_ == last_; }
  int64_t newest() const { return newest_; }

 private:
  const std::unique_ptr<v1::JobService::Stub> stub_;
  const int64_t last_;
  std::atomic<int64_t>* const received_;
  absl::BlockingCounter* const done_;
  grpc::ClientContext context_;
  v1::WatchJobRequest request_;
  v1::JobEvent event_;
  std::atomic<int64_t> newest_{0};
  bool gaps_ = false;
};

absl::StatusOr<v1::Job> CreateJob(v1::JobService::Stub* stub, int tasks) {
  grpc::ClientContext context;
  SetBenchDeadline(&context);
  v1::CreateJobRequest request;
  request.mutable_spec()->set_checkpoint("synthetic:tiny");
  (*request.mutable_spec()->mutable_labels())["team"] = "bench";
  for (int i = 0; i < tasks; ++i) {
    request.mutable_spec()->mutable_block_replay()->add_layouts()->set_name("tiny");
  }
  v1::Job job;
  const grpc::Status status = stub->CreateJob(&context, request, &job);
  if (!status.ok()) return FromGrpcStatus(status);
  return job;
}

absl::Status MeasureWorkers(const Flags& flags, const ServerProcess& server) {
  const auto jobs = v1::JobService::NewStub(server.Connect());
  const int64_t before = MemoryOf(server.pid(), "VmRSS");
  const absl::Time create_start = SystemClock()->Now();
  for (int i = 0; i < kLiveTasks / kTasksAJob; ++i) {
    PLUMBLINE_RETURN_IF_ERROR(CreateJob(jobs.get(), kTasksAJob).status());
  }
  const double megabytes = static_cast<double>(MemoryOf(server.pid(), "VmRSS")) / 1e6;
  std::printf(
      "%d live tasks of %d jobs, made in %.1f s: %.0f MB, of which the coordinator alone "
      "%.0f MB\n",
      kLiveTasks, kLiveTasks / kTasksAJob,
      absl::ToDoubleSeconds(SystemClock()->Now() - create_start), megabytes,
      static_cast<double>(before) / 1e6);
  PrintTableRow(5, "the coordinator's memory at 10,000 live tasks", "at most 500 MB",
                absl::StrFormat("%.0f MB", megabytes), megabytes <= 500);

  std::vector<std::unique_ptr<BenchWorker>> workers;
  const absl::Time register_start = SystemClock()->Now();
  for (int i = 0; i < kWorkers; ++i) {
    workers.push_back(std::make_unique<BenchWorker>(i, server.Connect()));
    PLUMBLINE_RETURN_IF_ERROR(workers.back()->Register());
    PLUMBLINE_RETURN_IF_ERROR(workers.back()->Begin(i % kBeatsATask));
  }
  std::printf("%d workers attached, a connection each, in %.1f s\n", kWorkers,
              absl::ToDoubleSeconds(SystemClock()->Now() - register_start));

  const size_t calls = static_cast<size_t>(flags.rate) * flags.seconds;
  Latencies all(calls), beats(calls), acquisitions(calls);
  std::atomic<int64_t> failures{0}, late{0};
  const double cpu = SecondsOfCpu(server.pid());
  const absl::Time start = SystemClock()->Now();
  for (size_t i = 0; i < calls; ++i) {
    const absl::Time due = start + absl::Seconds(static_cast<double>(i) / flags.rate);
    const absl::Duration ahead = due - SystemClock()->Now();
    if (ahead > absl::ZeroDuration()) absl::SleepFor(ahead);
    workers[i % kWorkers]->Turn(due, {&beats, &acquisitions, &failures, &late});
  }
  for (const auto& worker : workers) worker->Await();
  const double seconds = absl::ToDoubleSeconds(SystemClock()->Now() - start);
  const double rate = static_cast<double>(beats.count() + acquisitions.count()) / seconds;
  std::printf("heartbeats and acquisitions: %.0f a second over %.1f s\n", rate, seconds);
  beats.Print("heartbeats");
  acquisitions.Print("acquisitions, durable");
  std::printf(
      "  %lld failed, %lld turns left out because the answer before was not there; "
      "completions on top: %zu; coordinator: %.2f cores, %.0f MB at most\n",
      static_cast<long long>(failures), static_cast<long long>(late), beats.count() / kBeatsATask,
      (SecondsOfCpu(server.pid()) - cpu) / seconds,
      static_cast<double>(MemoryOf(server.pid(), "VmHWM")) / 1e6);
  const double p99 = std::max(beats.At(0.99), acquisitions.At(0.99));
  PrintTableRow(
      1, "heartbeats and acquisitions a second, 1000 workers attached",
      "at least 5000, p99 at most 50 ms",
      absl::StrFormat("%.0f, p99 %.1f and %.1f ms", rate, beats.At(0.99), acquisitions.At(0.99)),
      rate >= 5000 && p99 <= 50 && failures == 0);
  return failures == 0 ? absl::OkStatus() : absl::InternalError("calls failed");
}

absl::Status MeasureEvents(const ServerProcess& server) {
  const auto jobs = v1::JobService::NewStub(server.Connect());
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, CreateJob(jobs.get(), 1));
  const auto stub = v1::WorkerService::NewStub(server.Connect());
  v1::Lease lease;
  {
    BenchWorker worker(0, server.Connect());
    PLUMBLINE_RETURN_IF_ERROR(worker.Register());
    grpc::ClientContext context;
    SetBenchDeadline(&context);
    v1::AcquireTaskRequest request;
    request.set_worker("workers/w0");
    request.set_incarnation("i");
    v1::AcquireTaskResponse response;
    PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(stub->AcquireTask(&context, request, &response)));
    lease = response.assignment().lease();
  }
  if (lease.task() != job.name() + "/tasks/0") return absl::InternalError("another task came");
  // Job and task queued, job running, attempt, task running; then the worker's.
  grpc::ClientContext get_context;
  v1::GetJobRequest get;
  get.set_name(job.name());
  v1::Job present;
  PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(jobs->GetJob(&get_context, get, &present)));
  const int64_t last = present.last_sequence() + kEvents;

  std::atomic<int64_t> received{0};
  absl::BlockingCounter done(kWatchers);
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < kWatchers; ++i) {
    watchers.push_back(
        std::make_unique<Watcher>(server.Connect(), job.name(), last, &received, &done));
  }
  while (received < kWatchers * present.last_sequence()) absl::SleepFor(absl::Milliseconds(1));
  const int64_t already = received;
  const double cpu = SecondsOfCpu(server.pid());
  const absl::Time start = SystemClock()->Now();
  grpc::ClientContext context;
  SetBenchDeadline(&context);
  v1::ReportEventsResponse response;
  const auto stream = stub->ReportEvents(&context, &response);
  for (int64_t first = 1; first <= kEvents; first += kEventsABatch) {
    v1::ReportEventsRequest request;
    request.set_task(lease.task());
    request.set_fencing_token(lease.fencing_token());
    for (int64_t number = first; number < first + kEventsABatch; ++number) {
      auto& event = *request.add_events();
      event.set_client_sequence(number);
      v1::Progress& progress = *event.mutable_event()->mutable_progress();
      progress.set_done(number);
      progress.set_total(kEvents);
      progress.set_unit("nodes");
      progress.set_activity("tiny: forward, candidate");
    }
    stream->Write(request);
  }
  stream->WritesDone();
  PLUMBLINE_RETURN_IF_ERROR(FromGrpcStatus(stream->Finish()));
  const double written = absl::ToDoubleSeconds(SystemClock()->Now() - start);
  done.Wait();
  const double seconds = absl::ToDoubleSeconds(SystemClock()->Now() - start);
  const int complete = static_cast<int>(
      std::count_if(watchers.begin(), watchers.end(),
                    [](const std::unique_ptr<Watcher>& each) { return each->complete(); }));
  const double rate = static_cast<double>(received - already) / seconds;
  std::printf(
      "%d events, durable after %.2f s, to %d watchers: %.0f a second in all; %d of %d got every "
      "one in order; coordinator: %.2f cores\n",
      kEvents, written, kWatchers, rate, complete, kWatchers,
      (SecondsOfCpu(server.pid()) - cpu) / seconds);
  PrintTableRow(2, "events to 100 watchers a second", "at least 50,000 in all, none lost",
                absl::StrFormat("%.0f, %d of %d have all in order", rate, complete, kWatchers),
                rate >= 50'000 && complete == kWatchers);
  return complete == kWatchers ? absl::OkStatus() : absl::InternalError("events were lost");
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Loads a coordinator and prints what it bears.", "load_bench");
  app.add_option("--server", flags.server, "The coordinator's program")->capture_default_str();
  app.add_option("--folder", flags.folder, "On the disk to measure")->capture_default_str();
  app.add_option("--rate", flags.rate, "Heartbeats and acquisitions a second")
      ->capture_default_str();
  app.add_option("--seconds", flags.seconds, "For how long")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  ServerProcess::Options options;
  options.program = flags.server;
  options.folder = absl::StrCat(flags.folder, "/load_bench.", getpid());
  absl::Status status;
  // Events first, on a coordinator of their own.
  for (auto *const measure :
       {+[](const Flags&, const ServerProcess&server) { return MeasureEvents(server); },
        +[](const Flags&all, const ServerProcess&server) { return MeasureWorkers(all, server); }}) {
    ServerProcess server(options);
    if (!server.serves()) {
      status.Update(absl::UnavailableError("the coordinator does not start"));
    } else {
      status.Update(measure(flags, server));
    }
    server.Kill();
    std::filesystem::remove_all(options.folder);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "load_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace plumbline::server

int main(int argc, char** argv) { return plumbline::server::Main(argc, argv); }
