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

  absl::StatusOr<v1::Upload> Create(const Caller& caller, const v1::CreateUploadRequest& request);
  absl::StatusOr<v1::Upload> Write(const v1::WriteUploadRequest& request);
  absl::StatusOr<v1::Artifact> Finish(const Caller& caller, const v1::FinishUploadRequest& request);

 private:
  // Deletes what has lapsed.
  void Collect();
  absl::Status Drop(const std::string& name, WriteSet* set);
  absl::Time Touch(const std::string& name);

  const Api& api_;
  absl::Mutex mutex_;
  std::map<std::string, absl::Time> expire_times_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_UPLOADS_H_
