#ifndef PLUMBLINE_WORKER_JOBS_COMPARE_FILES_H_
#define PLUMBLINE_WORKER_JOBS_COMPARE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "worker/jobs/job_context.h"

namespace plumbline::jobs {

struct FileComparison {
  v1::TensorFilesReport report;
  v1::Verdict verdict;
};

// Compares two safetensors files (or indexes of sharded ones), B being the reference, with every
// measure, per tensor name. Numbers are computed only if both have the same names with the same
// shapes; otherwise the report says what differs. Rows are named by the packed layout that B holds,
// if it does.
//
// The verdict FAILED: names or shapes differ, or a value is not finite. PASSED: all values are
// equal. Otherwise NOT_JUDGED: nothing bounds how far two files may differ.
//
// Shards that an index names must lie under `shard_roots`. INVALID_ARGUMENT begins with
// "comparison.tensors.a" or ".b".
absl::StatusOr<FileComparison> CompareFiles(const std::string& path_a, const std::string& path_b,
                                            const std::vector<std::string>& shard_roots,
                                            int threads, const JobContext& context);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_COMPARE_FILES_H_
