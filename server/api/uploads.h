#ifndef PLUMBLINE_SERVER_API_UPLOADS_H_
#define PLUMBLINE_SERVER_API_UPLOADS_H_

#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/plumbline/v1/job_service.pb.h"
#include "server/api/api.h"
#include "server/caller.h"

namespace plumbline::server {

// Unfinished uploads: their records, their bytes, and when they lapse. Any thread may call; calls
// block.
class Uploads {
 public:
  // `api` must outlive it. Uploads that the store holds lapse an hour from now.
  explicit Uploads(const Api& api);

  // RESOURCE_EXHAUSTED, reason QUOTA, above what the caller may have announced.
  absl::StatusOr<v1::Upload> Create(const Caller& caller, const v1::CreateUploadRequest& request);
  // NOT_FOUND for an upload of somebody else, as if there were none.
  absl::StatusOr<v1::Upload> Write(const Caller& caller, const v1::WriteUploadRequest& request);
  absl::StatusOr<v1::Artifact> Finish(const Caller& caller, const v1::FinishUploadRequest& request);

 private:
  struct Open {
    absl::Time expires;
    std::string principal;
    int64_t announced_bytes = 0;
  };

  // Deletes what has lapsed.
  void Collect();
  // Makes `artifact`, whose bytes are in place, known instead of its upload; or, where the same
  // file is known already, drops its bytes. Returns the one that is known.
  absl::StatusOr<v1::Artifact> Record(const Caller& caller, const std::string& upload,
                                      const v1::Artifact& artifact);
  absl::Status Drop(const std::string& name, WriteSet* set);
  absl::Time Touch(const store::UploadRecord& record);
  // OK if `caller` may announce so many bytes more.
  absl::Status CheckQuota(const Caller& caller, int64_t bytes);
  absl::StatusOr<store::UploadRecord> Find(const Caller& caller, const std::string& name) const;

  const Api& api_;
  absl::Mutex record_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);  // Held over a look-up and its write.
  absl::Mutex mutex_;
  std::map<std::string, Open> open_ ABSL_GUARDED_BY(mutex_);  // By name.
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_UPLOADS_H_
