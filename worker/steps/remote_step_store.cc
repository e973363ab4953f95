#include "worker/steps/remote_step_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/crash_point.h"
#include "common/status.h"
#include "worker/lease/backoff.h"
#include "worker/lease/retry.h"

namespace plumbline::steps {
namespace {

using worker::StopReason;

constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);
constexpr absl::Duration kCallTimeout = absl::Seconds(60);
// A stream may be held up by what its steps are used for; one that was cut off is taken up again.
constexpr absl::Duration kStreamTimeout = absl::Minutes(10);
// What a slow disk and network still take, as for artifacts.
constexpr int64_t kLeastBytesPerSecond = 4 << 20;

int64_t BytesOf(const v1::StepRecord& record) {
  int64_t bytes = 0;
  for (const v1::TensorDigest& output : record.outputs()) bytes += output.size_bytes();
  return bytes;
}

const v1::StepRecord* FindStep(const v1::Run& run, const std::string& name, int32_t index) {
  if (run.name() != name) return nullptr;
  for (const v1::StepRecord& step : run.steps()) {
    if (step.index() == index && !step.quarantined()) return &step;
  }
  return nullptr;
}

// The bytes of a step, cut into its tensors.
absl::StatusOr<SavedStep> Cut(v1::StepRecord record, absl::string_view bytes) {
  SavedStep step;
  for (const v1::TensorDigest& output : record.outputs()) {
    if (output.size_bytes() < 0 || static_cast<size_t>(output.size_bytes()) > bytes.size()) break;
    step.tensors.emplace_back(bytes.substr(0, static_cast<size_t>(output.size_bytes())));
    bytes.remove_prefix(step.tensors.back().size());
  }
  if (static_cast<int>(step.tensors.size()) != record.outputs_size() || !bytes.empty()) {
    return absl::DataLossError(absl::StrCat("step ", record.index(),
                                            ": the coordinator sent other bytes than its record ",
                                            "says: ", bytes.size(), " too many or too few"));
  }
  step.record = std::move(record);
  return step;
}

}  // namespace

RemoteStepStore::RemoteStepStore(worker::Coordinator* coordinator, worker::HeldTask* task,
                                 Clock* clock, BlobCache* cache, uint64_t backoff_seed)
    : coordinator_(coordinator),
      task_(task),
      clock_(clock),
      cache_(cache),
      backoff_seed_(backoff_seed),
      on_writes_(task->writes(),
                 [this] {
                   stop_.Raise();
                   absl::MutexLock lock(&mutex_);
                   if (failure_.ok()) failure_ = absl::CancelledError("the attempt must stop");
                 }),
      thread_([this] { UploadLoop(); }) {}

RemoteStepStore::~RemoteStepStore() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  stop_.Raise();
  thread_.join();
}

template <typename Call>
auto RemoteStepStore::Retry(const worker::Cancellation& cancellation, Call call) {
  return worker::RetryWhileTransient(clock_,
                                     worker::Backoff(kFirstRetry, kLongestRetry, backoff_seed_),
                                     cancellation, std::move(call));
}

absl::StatusOr<v1::Run> RemoteStepStore::AskForRun(const std::string& run) {
  v1::GetRunRequest request;
  request.set_name(run);
  return Retry(*task_->work(), [&] {
    return coordinator_->GetRun(request, {kCallTimeout, task_->work()});
  });
}

absl::StatusOr<v1::Run> RemoteStepStore::GetRun(const std::string& run) {
  PLUMBLINE_ASSIGN_OR_RETURN(run_, AskForRun(run));
  const bool is_cached = std::any_of(
      run_.steps().begin(), run_.steps().end(),
      [this](const v1::StepRecord& step) { return !step.quarantined() && IsCached(step); });
  if (!is_cached) return run_;
  v1::VerifyRunRequest request;
  request.set_name(run);
  PLUMBLINE_ASSIGN_OR_RETURN(
      const v1::VerifyRunResponse verified, Retry(*task_->work(), [&] {
        return coordinator_->VerifyRun(request, {kStreamTimeout, task_->work()});
      }));
  if (verified.corruptions().empty()) return run_;
  PLUMBLINE_ASSIGN_OR_RETURN(run_, AskForRun(run));
  return run_;
}

bool RemoteStepStore::IsCached(const v1::StepRecord& record) const {
  return cache_ != nullptr && std::all_of(record.outputs().begin(), record.outputs().end(),
                                          [this](const v1::TensorDigest& output) {
                                            return cache_->Contains(output.sha256());
                                          });
}

std::optional<SavedStep> RemoteStepStore::FromCache(const v1::StepRecord& record) {
  SavedStep step;
  step.record = record;
  for (const v1::TensorDigest& output : record.outputs()) {
    std::optional<std::string> bytes = cache_->Get(output.sha256(), output.size_bytes());
    if (!bytes.has_value()) return std::nullopt;
    step.tensors.push_back(*std::move(bytes));
  }
  return step;
}

absl::Status RemoteStepStore::Fetch(const std::string& run, int32_t first, int32_t count,
                                    absl::FunctionRef<absl::Status(SavedStep step)> sink) {
  const int32_t end = first + count;
  const auto is_cached = [&](int32_t index) {
    const v1::StepRecord* const record = FindStep(run_, run, index);
    return record != nullptr && IsCached(*record);
  };
  for (int32_t next = first; next < end;) {
    if (is_cached(next)) {
      if (std::optional<SavedStep> step = FromCache(*FindStep(run_, run, next))) {
        PLUMBLINE_RETURN_IF_ERROR(sink(*std::move(step)));
        ++next;
        continue;
      }
    }
    int32_t stream_end = next + 1;
    while (stream_end < end && !is_cached(stream_end)) ++stream_end;
    PLUMBLINE_RETURN_IF_ERROR(Stream(run, stream_end, &next, sink));
    if (next < stream_end) break;
  }
  return absl::OkStatus();
}

absl::Status RemoteStepStore::Stream(const std::string& run, int32_t end, int32_t* next,
                                     absl::FunctionRef<absl::Status(SavedStep step)> sink) {
  absl::Status sink_status;
  bool ended = false;
  const auto take = [&](v1::StepRecord record, absl::string_view bytes) -> absl::Status {
    // What comes behind a step that cannot be read is of no use yet.
    if (record.quarantined()) ended = true;
    if (ended) return absl::OkStatus();
    if (record.index() != *next) {
      return absl::DataLossError(absl::StrCat(run, ": the coordinator sent step ", record.index(),
                                              " in place of ", *next));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(SavedStep step, Cut(std::move(record), bytes));
    sink_status = sink(std::move(step));
    if (sink_status.ok()) ++*next;
    return sink_status;
  };
  const absl::Status streamed = Retry(*task_->work(), [&]() -> absl::Status {
    v1::GetStepRequest request;
    request.set_run(run);
    request.set_index(*next);
    request.set_count(end - *next);
    const absl::Status status =
        coordinator_->GetSteps(request, take, {kStreamTimeout, task_->work()});
    // A stream that broke behind its last step has done its work; whatever the sink says is no
    // reason to ask again.
    return sink_status.ok() && !ended && *next < end ? status : absl::OkStatus();
  });
  PLUMBLINE_RETURN_IF_ERROR(sink_status);
  return streamed;
}

v1::PutStepRequest::Header RemoteStepStore::MakeHeader(const RunFacts& facts) const {
  v1::PutStepRequest::Header header;
  header.set_task(task_->name());
  header.set_fencing_token(task_->fencing_token());
  *header.mutable_identity() = facts.identity;
  header.set_seed(facts.seed);
  header.set_total_steps(facts.total_steps);
  header.set_preflight(facts.preflight);
  header.set_decodes(facts.decodes);
  header.set_decode_of(facts.decode_of);
  return header;
}

absl::Status RemoteStepStore::Begin(const RunFacts& facts) {
  // A header without a record.
  const v1::PutStepRequest::Header header = MakeHeader(facts);
  const absl::Status status = Retry(stop_, [&] {
                                return coordinator_->PutStep(header, {}, {kCallTimeout, &stop_});
                              }).status();
  if (worker::IsLeaseLost(status)) task_->Stop(StopReason::kLeaseLost);
  return status;
}

absl::Status RemoteStepStore::Save(const RunFacts& facts, SavedStep step) {
  Upload upload;
  upload.header = MakeHeader(facts);
  *upload.header.mutable_record() = std::move(step.record);
  upload.tensors = std::move(step.tensors);

  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &RemoteStepStore::IsIdle));
  if (!failure_.ok()) return failure_;
  upload_ = std::move(upload);
  return absl::OkStatus();
}

absl::Status RemoteStepStore::Flush() {
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(this, &RemoteStepStore::IsIdle));
  return failure_;
}

std::vector<v1::StepRecord> RemoteStepStore::TakeAcknowledged() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(acknowledged_, {});
}

void RemoteStepStore::UploadLoop() {
  while (true) {
    const Upload* upload = nullptr;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_work = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return upload_.has_value() || stopping_ || !failure_.ok();
      };
      mutex_.Await(absl::Condition(&has_work));
      if (stopping_ || !failure_.ok()) return;
      upload = &*upload_;  // Nobody touches it before it is acknowledged.
    }
    CrashPoint(CrashPlace::kWorkerBeforePut);
    absl::StatusOr<v1::StepRecord> record = Put(*upload);
    if (!record.ok()) {
      if (worker::IsLeaseLost(record.status())) task_->Stop(StopReason::kLeaseLost);
      absl::MutexLock lock(&mutex_);
      if (failure_.ok()) failure_ = record.status();
      return;
    }
    CrashPoint(CrashPlace::kWorkerAfterAck);
    std::vector<std::string> tensors;
    {
      absl::MutexLock lock(&mutex_);
      acknowledged_.push_back(*record);
      tensors = std::move(upload_->tensors);
      upload_.reset();
    }
    for (int i = 0; cache_ != nullptr && i < record->outputs_size(); ++i) {
      cache_->Put(record->outputs(i).sha256(), tensors[static_cast<size_t>(i)]);
    }
  }
}

absl::StatusOr<v1::StepRecord> RemoteStepStore::Put(const Upload& upload) {
  std::vector<absl::string_view> tensors(upload.tensors.begin(), upload.tensors.end());
  const absl::Duration timeout =
      kCallTimeout + absl::Seconds(BytesOf(upload.header.record()) / kLeastBytesPerSecond);
  PLUMBLINE_ASSIGN_OR_RETURN(
      v1::PutStepResponse response, Retry(stop_, [&] {
        return coordinator_->PutStep(upload.header, tensors, {timeout, &stop_});
      }));
  if (response.record().outputs_size() != static_cast<int>(tensors.size())) {
    return absl::InternalError(absl::StrCat("step ", upload.header.record().index(),
                                            ": the coordinator's answer is of another step"));
  }
  return std::move(*response.mutable_record());
}

}  // namespace plumbline::steps
