#ifndef PLUMBLINE_WORKER_JOBS_RULE_JOB_H_
#define PLUMBLINE_WORKER_JOBS_RULE_JOB_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "proto/plumbline/v1/full_model.pb.h"
#include "worker/jobs/job.h"

// Jobs on what judges a full model: its rules, and the verdicts that were given. They run nothing.

namespace plumbline::jobs {

// Shows, seals or compares the rule files at `path` and, for a comparison, `other_path`; a sealed
// one is a file of the result, made in `output_folder`. INVALID_ARGUMENT, on a field of RuleSpec,
// for a file that is refused.
absl::StatusOr<JobResult> RunRule(const v1::RuleSpec& spec, const std::string& path,
                                  const std::string& other_path, const std::string& output_folder);

// Judges a bundle again, whose files lie at `paths` by their path in the bundle. The verdict is the
// one that was recomputed, or FAILED where the bundle states another or a file is not what
// SHA256SUMS says. `public_key_pem`, where it is not empty, is what the bundle must be signed
// under.
absl::StatusOr<JobResult> RunVerdict(const std::map<std::string, std::string>& paths,
                                     const std::string& public_key_pem = "");

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_RULE_JOB_H_
