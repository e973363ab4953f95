#ifndef PLUMBLINE_WORKER_DRIFT_BUNDLE_VERDICT_H_
#define PLUMBLINE_WORKER_DRIFT_BUNDLE_VERDICT_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/evidence/bundle.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::drift {

// Judges a bundle again from its files alone: every gate of a block replay or a full model from
// the figures that report.json holds, a full model by the rule file of the bundle; a generation by
// the changes that its inputs made; of other kinds that are judged, whether something fails at all.
// `agrees` is set if the job's verdict, those of its tasks, the gates and verdict.json all say what
// was recomputed. What the bundle says of its own limits (another device class, a hybrid) is taken
// from it. Files that are not what SHA256SUMS says are listed, and judged all the same.
// INVALID_ARGUMENT: no report.json, one of another kind of job, or a rule that is refused.
// `public_key_pem`, where it is not empty, is what the signature must verify under.
absl::StatusOr<v1::VerdictReport> RecomputeVerdict(const BundleFiles& files,
                                                   const std::string& public_key_pem = "");

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_BUNDLE_VERDICT_H_
