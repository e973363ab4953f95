#ifndef PLUMBLINE_WORKER_DRIFT_FULL_MODEL_JUDGE_H_
#define PLUMBLINE_WORKER_DRIFT_FULL_MODEL_JUDGE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/full_model.pb.h"

// What a full model's candidate is held to. All functions are pure: they read a report and nothing
// else, so that a verdict can be recomputed from files.

namespace plumbline::drift {

// A provider's factor in the single-provider rule.
inline constexpr double kSingleProviderFactor = 1.5;

// Judges what `report` holds: its tensors in execution order with the errors of the providers and,
// where the candidate has the tensor, its error and drift; `providers`, `captured`, `blocks`,
// `extra` and, unless "candidate" is captured, `trace`. Sets everything that follows from these and
// `rule`: bounds, ratios and gates of each tensor, `missing`, `failing`, the worst ratio, `firsts`,
// both verdicts and the rule without its tensors.
//
// An entry's gates are tried in this order: `executed` (forward tensors: every node whose work
// first enters here ran, and ran as requested), `finite`, `shape` (it is there, in the shape of the
// reference), `zero` (gradients), `ensemble`. Without the tensor, or in another shape, only `shape`
// can be tried.
//
// `where` names the layout in the verdict; `qualifications` limit it beside what the rule's origin
// and missing measurements say. INVALID_ARGUMENT if the rule lacks a tensor of the report.
absl::StatusOr<v1::Verdict> JudgeFullModel(const v1::Rule& rule, absl::string_view where,
                                           std::vector<std::string> qualifications,
                                           v1::FullModelReport* report);

// The verdict of a run that made a rule and stopped.
v1::Verdict RuleFrozenVerdict(const v1::Rule& rule, absl::string_view where);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_FULL_MODEL_JUDGE_H_
