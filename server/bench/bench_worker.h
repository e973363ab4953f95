#ifndef PLUMBLINE_SERVER_BENCH_BENCH_WORKER_H_
#define PLUMBLINE_SERVER_BENCH_BENCH_WORKER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/grpc_status.h"
#include "proto/plumbline/v1/worker_service.grpc.pb.h"
#include "server/bench/latencies.h"

namespace plumbline::server {

// Of a worker: it takes a task, beats so often, and is done with it.
inline constexpr int kBeatsATask = 9;

inline void SetBenchDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(SystemClock()->Now() + absl::Minutes(1)));
}

// One simulated worker; a call at a time.
class BenchWorker {
 public:
  BenchWorker(int number, std::shared_ptr<grpc::Channel> channel)
      : id_(absl::StrCat("w", number)), stub_(v1::WorkerService::NewStub(std::move(channel))) {}

  absl::Status Register() {
    grpc::ClientContext context;
    SetBenchDeadline(&context);
    v1::RegisterWorkerRequest request;
    request.set_worker_id(id_);
    request.set_incarnation("i");
    request.mutable_capabilities()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
    request.mutable_capabilities()->mutable_device()->set_memory_bytes(1 << 30);
    v1::RegisterWorkerResponse response;
    return FromGrpcStatus(stub_->RegisterWorker(&context, request, &response));
  }

  // Takes its first task, and is in the midst of it: workers do not all end at the same moment.
  absl::Status Begin(int beats) {
    grpc::ClientContext context;
    SetBenchDeadline(&context);
    acquire_.set_worker("workers/" + id_);
    acquire_.set_incarnation("i");
    const grpc::Status status = stub_->AcquireTask(&context, acquire_, &acquired_);
    lease_ = acquired_.assignment().lease();
    beats_ = beats;
    return FromGrpcStatus(status);
  }

  struct Sinks {
    Latencies* beats;
    Latencies* acquisitions;
    std::atomic<int64_t>* failures;
    std::atomic<int64_t>* late;  // Turns at which the worker still waited for its last answer.
  };

  // Its turn in the plan, which began at `due`.
  void Turn(absl::Time due, const Sinks& sinks) {
    if (busy_.exchange(true)) {
      ++*sinks.late;
      return;
    }
    due_ = due;
    context_ = std::make_unique<grpc::ClientContext>();
    SetBenchDeadline(context_.get());
    if (lease_.task().empty()) {
      acquired_.Clear();
      stub_->async()->AcquireTask(context_.get(), &acquire_, &acquired_,
                                  [this, sinks](const grpc::Status& status) {
                                    sinks.acquisitions->Add(SystemClock()->Now() - due_);
                                    if (!status.ok()) ++*sinks.failures;
                                    lease_ = acquired_.assignment().lease();
                                    beats_ = 0;
                                    busy_ = false;
                                  });
      return;
    }
    beat_.set_worker("workers/" + id_);
    beat_.set_incarnation("i");
    beat_.clear_held();
    v1::HeartbeatRequest::Held& held = *beat_.add_held();
    held.set_task(lease_.task());
    held.set_fencing_token(lease_.fencing_token());
    held.mutable_progress()->set_done(beats_);
    stub_->async()->Heartbeat(context_.get(), &beat_, &answer_,
                              [this, sinks](const grpc::Status& status) {
                                sinks.beats->Add(SystemClock()->Now() - due_);
                                if (!status.ok()) ++*sinks.failures;
                                if (++beats_ < kBeatsATask) {
                                  busy_ = false;
                                } else {
                                  Complete(sinks);
                                }
                              });
  }

  void Await() const {
    while (busy_) absl::SleepFor(absl::Milliseconds(1));
  }

 private:
  // Not of the plan: it comes on top.
  void Complete(const Sinks& sinks) {
    complete_.set_task(lease_.task());
    complete_.set_fencing_token(lease_.fencing_token());
    complete_.mutable_report()->mutable_verdict()->set_outcome(v1::OUTCOME_PASSED);
    complete_context_ = std::make_unique<grpc::ClientContext>();
    SetBenchDeadline(complete_context_.get());
    stub_->async()->CompleteTask(complete_context_.get(), &complete_, &completed_,
                                 [this, sinks](const grpc::Status& status) {
                                   if (!status.ok()) ++*sinks.failures;
                                   lease_.Clear();
                                   busy_ = false;
                                 });
  }

  const std::string id_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  std::atomic<bool> busy_{false};
  absl::Time due_;
  std::unique_ptr<grpc::ClientContext> context_, complete_context_;
  v1::AcquireTaskRequest acquire_;
  v1::AcquireTaskResponse acquired_;
  v1::HeartbeatRequest beat_;
  v1::HeartbeatResponse answer_;
  v1::CompleteTaskRequest complete_;
  v1::CompleteTaskResponse completed_;
  v1::Lease lease_;
  int beats_ = 0;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_BENCH_BENCH_WORKER_H_
