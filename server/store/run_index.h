#ifndef PLUMBLINE_SERVER_STORE_RUN_INDEX_H_
#define PLUMBLINE_SERVER_STORE_RUN_INDEX_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "server/store/record.pb.h"

namespace plumbline::server {

// What the step store holds, without bytes and traces: in memory, so that lists, budgets and
// reference counts cost no reads. One thread at a time.
class RunIndex {
 public:
  struct Step {
    std::vector<std::string> outputs;  // Digests.
    int64_t size_bytes = 0;
  };
  struct Run {
    v1::Run record;  // As in RunRecord.
    std::map<int32_t, Step> steps;
  };

  static Step StepOf(const v1::StepRecord& record);

  // Null if there is none. `run` is the identity's SHA-256.
  const Run* Find(absl::string_view run) const;
  // The full ID of a run by a prefix of it. NOT_FOUND, or INVALID_ARGUMENT naming `field` where
  // several runs begin so.
  absl::StatusOr<std::string> Resolve(absl::string_view prefix, absl::string_view field) const;
  const std::map<std::string, Run, std::less<>>& runs() const { return runs_; }

  void PutRun(const v1::Run& record);
  void DeleteRun(absl::string_view run);
  void PutStep(absl::string_view run, const v1::StepRecord& step);

  // Zeroes where nothing refers to it.
  store::BlobRecord FindBlob(absl::string_view sha256) const;
  void PutBlob(absl::string_view sha256, const store::BlobRecord& record);
  const absl::flat_hash_map<std::string, store::BlobRecord>& blobs() const { return blobs_; }

  // The step is there and all its blobs are.
  bool IsSaved(const Run& run, int32_t index) const;
  bool IsQuarantined(const Step& step) const;
  // `run` as the API shows it, without steps and jobs.
  v1::Run Describe(const Run& run) const;

  // Of all blobs together.
  int64_t size_bytes() const { return size_bytes_; }

 private:
  std::map<std::string, Run, std::less<>> runs_;
  absl::flat_hash_map<std::string, store::BlobRecord> blobs_;
  int64_t size_bytes_ = 0;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_STORE_RUN_INDEX_H_
