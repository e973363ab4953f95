#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/grpc_status.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/store/testing/step_store_harness.h"
#include "server/testing/acknowledged_load.h"
#include "server/testing/load_calls.h"

namespace plumbline::server {
namespace {

constexpr int kEventsInABatch = 3;

}  // namespace

LoadWorker::LoadWorker(std::shared_ptr<grpc::Channel> channel, AcknowledgedBook* book,
                       std::string id, std::string incarnation, unsigned seed, WhenGone when_gone)
    : channel_(std::move(channel)),
      stub_(v1::WorkerService::NewStub(channel_)),
      book_(book),
      id_(std::move(id)),
      incarnation_(std::move(incarnation)),
      name_(absl::StrCat(id_, ".", incarnation_)),
      when_gone_(when_gone),
      random_(seed),
      thread_([this] { Run(); }) {}

LoadWorker::~LoadWorker() {
  Kill();
  thread_.join();
}

void LoadWorker::Kill() {
  killed_ = true;
  absl::MutexLock lock(&mutex_);
  if (context_ != nullptr) context_->TryCancel();
}

template <typename Call>
grpc::Status LoadWorker::Make(absl::string_view name, const Call& call) {
  for (int tries = 1;; ++tries) {
    grpc::ClientContext context;
    SetLoadDeadline(&context);
    {
      absl::MutexLock lock(&mutex_);
      if (killed_) return grpc::Status(grpc::StatusCode::CANCELLED, "killed");
      context_ = &context;
    }
    grpc::Status status = call(&context);
    {
      absl::MutexLock lock(&mutex_);
      context_ = nullptr;
    }
    NoteFailure(book_, name_, name, context, status, tries);
    // A process that is dead has heard nothing.
    if (killed_) return grpc::Status(grpc::StatusCode::CANCELLED, "killed");
    if (GetReason(FromGrpcStatus(status)) == kLeaseLostReason) lease_lost_ = true;
    if (!IsGone(status) || when_gone_ == WhenGone::kEnd) return status;
    absl::SleepFor(kLoadRetryInterval);
  }
}

void LoadWorker::Run() {
  if (Register()) {
    while (!killed_) {
      v1::AcquireTaskRequest request;
      request.set_worker("workers/" + id_);
      request.set_incarnation(incarnation_);
      request.mutable_wait()->set_nanos(300'000'000);
      v1::AcquireTaskResponse acquired;
      if (!Make("AcquireTask", [&](grpc::ClientContext* context) {
             return stub_->AcquireTask(context, request, &acquired);
           }).ok()) {
        break;
      }
      if (acquired.has_assignment()) {
        book_->Given(acquired.assignment().lease().task());
        lease_lost_ = false;
        cancelled_ = false;
        if (!RunTask(acquired.assignment()) && !lease_lost_) break;
      }
      if (terminating_) {
        v1::HeartbeatResponse ignored;
        Heartbeat(nullptr, &ignored, /*signing_off=*/true);
        break;
      }
    }
  }
  ended_ = true;
}

bool LoadWorker::Register() {
  v1::RegisterWorkerRequest request;
  request.set_worker_id(id_);
  request.set_incarnation(incarnation_);
  request.mutable_capabilities()->mutable_device()->set_kind(v1::DEVICE_KIND_CPU);
  request.mutable_capabilities()->mutable_device()->set_memory_bytes(int64_t{1} << 34);
  v1::RegisterWorkerResponse response;
  return Make("RegisterWorker",
              [&](grpc::ClientContext* context) {
                return stub_->RegisterWorker(context, request, &response);
              })
      .ok();
}

bool LoadWorker::Heartbeat(const v1::Lease* lease, v1::HeartbeatResponse* response,
                           bool signing_off) {
  v1::HeartbeatRequest request;
  request.set_worker("workers/" + id_);
  request.set_incarnation(incarnation_);
  request.set_signing_off(signing_off);
  if (lease != nullptr) {
    v1::HeartbeatRequest::Held& held = *request.add_held();
    held.set_task(lease->task());
    held.set_fencing_token(lease->fencing_token());
  }
  return Make("Heartbeat",
              [&](grpc::ClientContext* context) {
                return stub_->Heartbeat(context, request, response);
              })
      .ok();
}

bool LoadWorker::MayGoOn(const v1::Lease& lease) {
  v1::HeartbeatResponse response;
  if (!Heartbeat(&lease, &response, false) || response.directives_size() != 1) return false;
  switch (response.directives(0).action()) {
    case v1::HeartbeatResponse::Directive::ACTION_LEASE_LOST:
      lease_lost_ = true;
      return false;
    case v1::HeartbeatResponse::Directive::ACTION_CANCEL:
      cancelled_ = true;
      return true;
    default:
      return true;
  }
}

bool LoadWorker::RunTask(const v1::Assignment& assignment) {
  const v1::Lease& lease = assignment.lease();
  int64_t events = 0;
  if (!ReportEvents(lease, lease.attempt(), &events, kEventsInABatch)) return false;
  if (assignment.spec().has_generation()) {
    if (!RunSteps(assignment, &events)) return false;
  } else if (!MayGoOn(lease)) {
    return false;
  }
  if (cancelled_) return Fail(lease, v1::FAILURE_CLASS_CANCELLED);
  if (terminating_ || random_() % 40 == 0) return Release(lease);
  if (random_() % 40 == 0) return Fail(lease, v1::FAILURE_CLASS_INFRASTRUCTURE);
  return ReportEvents(lease, lease.attempt(), &events, kEventsInABatch) && Complete(lease, events);
}

bool LoadWorker::RunSteps(const v1::Assignment& assignment, int64_t* events) {
  const v1::Lease& lease = assignment.lease();
  const uint64_t seed = assignment.spec().generation().seeds(0);
  std::set<int32_t> saved;
  if (!ReadSteps(seed, &saved)) return false;
  for (int32_t step = 0; step < kLoadSteps && !cancelled_ && !terminating_; ++step) {
    if (saved.count(step) > 0) continue;
    book_->Computes(seed, step);
    if (!PutStep(lease, seed, step) || !ReportEvents(lease, lease.attempt(), events, 1) ||
        !MayGoOn(lease)) {
      return false;
    }
  }
  return true;
}

bool LoadWorker::ReportEvents(const v1::Lease& lease, int32_t attempt, int64_t* sent, int count) {
  v1::ReportEventsRequest request;
  request.set_task(lease.task());
  request.set_fencing_token(lease.fencing_token());
  for (int i = 0; i < count; ++i) {
    auto& event = *request.add_events();
    event.set_client_sequence(++*sent);
    event.mutable_event()->mutable_log()->set_message(absl::StrCat(*sent));
  }
  v1::ReportEventsResponse response;
  const grpc::Status status = Make("ReportEvents", [&](grpc::ClientContext* context) {
    const auto stream = stub_->ReportEvents(context, &response);
    // Now and then one batch twice, as after a stream that broke.
    const int times = random_() % 10 == 0 ? 2 : 1;
    for (int i = 0; i < times; ++i) stream->Write(request);
    stream->WritesDone();
    return stream->Finish();
  });
  if (!status.ok()) return false;
  book_->Reported(lease.task(), attempt, response.acknowledged_client_sequence());
  return true;
}

bool LoadWorker::ReadSteps(uint64_t seed, std::set<int32_t>* saved) {
  v1::GetStepRequest request;
  request.set_run("runs/" + RunIdOf(seed));
  request.set_count(kLoadSteps);
  return Make("GetStep",
              [&](grpc::ClientContext* context) {
                const auto stream = stub_->GetStep(context, request);
                v1::GetStepResponse response;
                std::string bytes;
                int32_t index = -1;
                while (stream->Read(&response)) {
                  if (response.has_record()) {
                    index = response.record().index();
                    bytes.clear();
                  } else if (response.has_trailer()) {
                    const TestStep expected = MakeTestStep(seed, index, "k", kLoadStepBytes);
                    if (bytes != absl::StrJoin(expected.outputs, "")) {
                      book_->Wrong(
                          absl::StrCat("step ", index, " of seed ", seed, " has other bytes"));
                    }
                    saved->insert(index);
                  } else {
                    bytes += response.chunk();
                  }
                }
                return stream->Finish();
              })
      .ok();
}

bool LoadWorker::PutStep(const v1::Lease& lease, uint64_t seed, int32_t index) {
  const TestStep step = MakeTestStep(seed, index, "k", kLoadStepBytes);
  const std::string bytes = absl::StrJoin(step.outputs, "");
  v1::PutStepResponse response;
  const grpc::Status status = Make("PutStep", [&](grpc::ClientContext* context) {
    const auto stream = stub_->PutStep(context, &response);
    v1::PutStepRequest request;
    *request.mutable_header() = step.header;
    request.mutable_header()->set_task(lease.task());
    request.mutable_header()->set_fencing_token(lease.fencing_token());
    stream->Write(request);
    request.set_chunk(bytes);
    stream->Write(request);
    request.mutable_trailer()->set_size_bytes(static_cast<int64_t>(bytes.size()));
    request.mutable_trailer()->set_sha256(Sha256Hex(bytes));
    stream->Write(request);
    stream->WritesDone();
    return stream->Finish();
  });
  if (!status.ok()) return false;
  book_->Saved(seed, index);
  return true;
}

bool LoadWorker::Complete(const v1::Lease& lease, int64_t events) {
  v1::CompleteTaskRequest request;
  request.set_task(lease.task());
  request.set_fencing_token(lease.fencing_token());
  request.set_last_client_sequence(events);
  v1::Verdict& verdict = *request.mutable_report()->mutable_verdict();
  verdict.set_outcome(v1::OUTCOME_PASSED);
  verdict.set_sentence(absl::StrCat("PASSED under token ", lease.fencing_token(), "."));
  v1::CompleteTaskResponse response;
  const int times = random_() % 10 == 0 ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    if (!Make("CompleteTask", [&](grpc::ClientContext* context) {
           return stub_->CompleteTask(context, request, &response);
         }).ok()) {
      return false;
    }
    book_->Completed(lease.task(), verdict.sentence());
  }
  return true;
}

bool LoadWorker::Fail(const v1::Lease& lease, v1::FailureClass failure_class) {
  v1::CompleteTaskRequest request;
  request.set_task(lease.task());
  request.set_fencing_token(lease.fencing_token());
  request.mutable_failure()->set_failure_class(failure_class);
  request.mutable_failure()->mutable_status()->set_code(14);
  request.mutable_failure()->mutable_status()->set_message("made to fail");
  v1::CompleteTaskResponse response;
  return Make("CompleteTask",
              [&](grpc::ClientContext* context) {
                return stub_->CompleteTask(context, request, &response);
              })
      .ok();
}

bool LoadWorker::Release(const v1::Lease& lease) {
  v1::ReleaseTaskRequest request;
  request.set_task(lease.task());
  request.set_fencing_token(lease.fencing_token());
  request.set_reason(v1::RELEASE_REASON_PREEMPTED);
  google::protobuf::Empty response;
  return Make("ReleaseTask",
              [&](grpc::ClientContext* context) {
                return stub_->ReleaseTask(context, request, &response);
              })
      .ok();
}

}  // namespace plumbline::server
