#ifndef PLUMBLINE_WORKER_STEPS_REMOTE_STEP_STORE_H_
#define PLUMBLINE_WORKER_STEPS_REMOTE_STEP_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "proto/plumbline/v1/worker_service.pb.h"
#include "worker/lease/cancellation.h"
#include "worker/lease/coordinator.h"
#include "worker/lease/held_task.h"
#include "worker/steps/blob_cache.h"
#include "worker/steps/step_store.h"

namespace plumbline::steps {

// The coordinator's step store, as one attempt sees it: every write carries the attempt's fencing
// token. Uploads run on a thread of its own, beside the computation of the next step, and are
// repeated while the coordinator is away.
//
// The coordinator's store is the truth. Bytes come from the cache only after the coordinator has
// read and checked its own.
class RemoteStepStore final : public StepStore {
 public:
  // All must outlive it; `cache` may be null. Stops `task` when the coordinator says that its lease
  // is lost.
  RemoteStepStore(worker::Coordinator* coordinator, worker::HeldTask* task, Clock* clock,
                  BlobCache* cache, uint64_t backoff_seed);
  // Drops what is not acknowledged.
  ~RemoteStepStore() override;
  RemoteStepStore(const RemoteStepStore&) = delete;
  RemoteStepStore& operator=(const RemoteStepStore&) = delete;

  absl::StatusOr<v1::Run> GetRun(const std::string& run) override;
  absl::Status Begin(const RunFacts& facts) override;
  absl::Status Fetch(const std::string& run, int32_t first, int32_t count,
                     absl::FunctionRef<absl::Status(SavedStep step)> sink) override;
  absl::Status Save(const RunFacts& facts, SavedStep step) override;
  absl::Status Flush() override;
  std::vector<v1::StepRecord> TakeAcknowledged() override;

 private:
  struct Upload {
    v1::PutStepRequest::Header header;
    std::vector<std::string> tensors;
  };

  // Calls the coordinator until it answers or `cancellation` is raised.
  template <typename Call>
  auto Retry(const worker::Cancellation& cancellation, Call call);

  v1::PutStepRequest::Header MakeHeader(const RunFacts& facts) const;
  absl::StatusOr<v1::Run> AskForRun(const std::string& run);
  // Whether every tensor of the record has a file in the cache.
  bool IsCached(const v1::StepRecord& record) const;
  std::optional<SavedStep> FromCache(const v1::StepRecord& record);
  // Steps from the coordinator, in one stream where it does not break. Advances `*next`.
  absl::Status Stream(const std::string& run, int32_t end, int32_t* next,
                      absl::FunctionRef<absl::Status(SavedStep step)> sink);

  void UploadLoop();
  absl::StatusOr<v1::StepRecord> Put(const Upload& upload);
  bool IsIdle() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !upload_.has_value() || !failure_.ok();
  }

  worker::Coordinator* const coordinator_;
  worker::HeldTask* const task_;
  Clock* const clock_;
  BlobCache* const cache_;
  const uint64_t backoff_seed_;
  v1::Run run_;  // As GetRun last had it.

  worker::Cancellation stop_;  // Raised when nothing may be written, and by the destructor.

  absl::Mutex mutex_;
  std::optional<Upload> upload_ ABSL_GUARDED_BY(mutex_);  // Unset once it is acknowledged.
  std::vector<v1::StepRecord> acknowledged_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  worker::Cancellation::Callback on_writes_;
  std::thread thread_;
};

}  // namespace plumbline::steps

#endif  // PLUMBLINE_WORKER_STEPS_REMOTE_STEP_STORE_H_
