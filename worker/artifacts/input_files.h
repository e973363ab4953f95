#ifndef PLUMBLINE_WORKER_ARTIFACTS_INPUT_FILES_H_
#define PLUMBLINE_WORKER_ARTIFACTS_INPUT_FILES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "proto/plumbline/v1/artifact.pb.h"
#include "worker/lease/cancellation.h"
#include "worker/lease/coordinator.h"

namespace plumbline::worker {

struct InputFilesOptions {
  // Folders that `worker_path` is looked for in.
  std::vector<std::string> roots;
  // An existing folder that holds nothing but what this class puts there.
  std::string cache_folder;
  // What the cache may keep between tasks.
  int64_t max_cache_bytes = int64_t{16} << 30;
  uint64_t backoff_seed = 0;
};

// Brings the files that tasks read to this machine. Artifacts are kept in a folder under their
// SHA-256, which is checked whenever one is used. One thread.
class InputFiles {
 public:
  // `coordinator` and `clock` must outlive it.
  InputFiles(Coordinator* coordinator, Clock* clock, InputFilesOptions options);

  // Where `file` lies on this machine; nobody changes what lies there. `field` begins the message
  // of an INVALID_ARGUMENT. NOT_FOUND if there is no such artifact; DATA_LOSS, reason
  // DIGEST_MISMATCH, if what arrives is not what the coordinator stored; CANCELLED. Waits for a
  // coordinator that is away.
  absl::StatusOr<std::string> Fetch(const v1::InputFile& file, absl::string_view field,
                                    Cancellation* cancellation);

  // Removes what was used least recently until the cache is within its limit. Between tasks.
  void Trim();

 private:
  absl::StatusOr<std::string> FetchArtifact(const std::string& name, Cancellation* cancellation);
  absl::Status Download(const v1::Artifact& artifact, const std::string& path,
                        Cancellation* cancellation);
  // Appends bytes of the artifact to `*bytes`; their artifact's description.
  absl::StatusOr<v1::Artifact> Read(const std::string& name, int64_t offset, int64_t length,
                                    Cancellation* cancellation, std::string* bytes);

  Coordinator* const coordinator_;
  Clock* const clock_;
  const InputFilesOptions options_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_ARTIFACTS_INPUT_FILES_H_
