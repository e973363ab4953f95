#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/testing/acknowledged_load.h"
#include "server/testing/load_calls.h"

namespace plumbline::server {
namespace {

// Each job has seeds that no other job has, so that a step is saved for one task alone.
std::atomic<uint64_t> newest_seed{1000};

v1::JobSpec SpecOf(bool generation, std::mt19937* random) {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  (*spec.mutable_labels())["team"] = (*random)() % 2 == 0 ? "red" : "blue";
  spec.set_priority(static_cast<int32_t>((*random)() % 3));
  if (!generation) {
    spec.mutable_block_replay();
    return spec;
  }
  spec.set_composition("golden");
  v1::GenerationContract& contract = *spec.mutable_generation()->mutable_contract();
  for (uint64_t i = 0; i < 1 + (*random)() % 2; ++i) contract.add_seeds(++newest_seed);
  contract.set_num_frames(5);
  contract.set_height(64);
  contract.set_width(64);
  contract.set_num_inference_steps(kLoadSteps);
  spec.mutable_generation()->mutable_conditioning()->set_worker_path("conditioning.safetensors");
  return spec;
}

}  // namespace

LoadClient::LoadClient(std::shared_ptr<grpc::Channel> channel, AcknowledgedBook* book,
                       std::string prefix, unsigned seed, WhenGone when_gone)
    : channel_(std::move(channel)),
      book_(book),
      prefix_(std::move(prefix)),
      when_gone_(when_gone),
      thread_([this, seed] { Run(seed); }) {}

void LoadClient::Stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

template <typename Call>
grpc::Status LoadClient::Make(absl::string_view name, const Call& call) {
  for (int tries = 1;; ++tries) {
    grpc::ClientContext context;
    SetLoadDeadline(&context);
    grpc::Status status = call(&context);
    NoteFailure(book_, prefix_, name, context, status, tries);
    if (!IsGone(status) || when_gone_ == WhenGone::kEnd || stopping_) return status;
    absl::SleepFor(kLoadRetryInterval);
  }
}

void LoadClient::Run(unsigned seed) {
  std::mt19937 random(seed);
  const auto stub = v1::JobService::NewStub(channel_);
  std::deque<std::string> live;
  bool here = true;
  for (int i = 0; here && !stopping_; ++i) {
    const std::string name = Create(stub.get(), i, &random);
    if (name.empty()) break;
    live.push_back(name);
    if (random() % 6 == 0) here = Cancel(stub.get(), live[random() % live.size()]);
    // Workers come after: what waits stays within bounds.
    while (here && !stopping_ && live.size() > static_cast<size_t>(kMostAhead)) {
      const std::optional<bool> ended = HasEnded(stub.get(), live.front());
      here = ended.has_value();
      if (here && !*ended) absl::SleepFor(absl::Milliseconds(5));
      if (!here || !*ended) continue;
      if (random() % 8 == 0) here = Delete(stub.get(), live.front());
      live.pop_front();
    }
  }
  ended_ = true;
}

std::string LoadClient::Create(v1::JobService::Stub* stub, int number, std::mt19937* random) {
  v1::CreateJobRequest request;
  request.set_request_id(absl::StrCat(prefix_, ".", number));
  *request.mutable_spec() = SpecOf((*random)() % 2 == 0, random);
  std::string name;
  // Now and then as a client does that did not hear the first answer.
  const int times = (*random)() % 8 == 0 ? 2 : 1;
  for (int i = 0; i < times; ++i) {
    v1::Job job;
    const grpc::Status status = Make("CreateJob", [&](grpc::ClientContext* context) {
      return stub->CreateJob(context, request, &job);
    });
    if (IsGone(status) || !status.ok()) return name;
    if (!name.empty() && job.name() != name) book_->Wrong(absl::StrCat(name, " is made twice"));
    name = job.name();
    book_->Created(request.request_id(), name);
  }
  return name;
}

bool LoadClient::Cancel(v1::JobService::Stub* stub, const std::string& name) {
  v1::CancelJobRequest request;
  request.set_name(name);
  v1::Job job;
  const grpc::Status status = Make("CancelJob", [&](grpc::ClientContext* context) {
    return stub->CancelJob(context, request, &job);
  });
  if (status.ok()) book_->Cancelled(name);
  return !IsGone(status);
}

bool LoadClient::Delete(v1::JobService::Stub* stub, const std::string& name) {
  v1::DeleteJobRequest request;
  request.set_name(name);
  google::protobuf::Empty empty;
  book_->Deletes(name);
  const grpc::Status status = Make("DeleteJob", [&](grpc::ClientContext* context) {
    return stub->DeleteJob(context, request, &empty);
  });
  if (status.ok()) book_->Deleted(name);
  return !IsGone(status);
}

std::optional<bool> LoadClient::HasEnded(v1::JobService::Stub* stub, const std::string& name) {
  v1::GetJobRequest request;
  request.set_name(name);
  v1::Job job;
  const grpc::Status status = Make(
      "GetJob", [&](grpc::ClientContext* context) { return stub->GetJob(context, request, &job); });
  if (IsGone(status)) return std::nullopt;
  return !status.ok() || job.has_end_time();
}

}  // namespace plumbline::server
