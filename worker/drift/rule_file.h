// Rule files: JSON that a person can read and a digest protects. docs/formats.md describes them.
#ifndef PLUMBLINE_WORKER_DRIFT_RULE_FILE_H_
#define PLUMBLINE_WORKER_DRIFT_RULE_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/full_model.pb.h"

namespace plumbline::drift {

// The text of a rule's file, with `rule.sha256` as it is.
std::string RuleFileText(const v1::Rule& rule);

// Hex digest of the rule's canonical JSON without its digest.
std::string RuleSha256(const v1::Rule& rule);

// Reads a rule file as hostile. `where` names the file in errors, which are INVALID_ARGUMENT and
// name the field: what is not a rule; a digest that is not the content's; a frozen rule whose k is
// not what its errors give or whose bounds are not k * max + floor, with the tensor and both
// values; keys out of order, or a number or a string written in another way than canonical JSON
// does, white space between them being free. `leave_one_out` is recomputed.
absl::StatusOr<v1::Rule> ReadRule(absl::string_view text, absl::string_view where);

// Reads a rule that a person has changed, whatever its digest, and makes it a valid manual one. A
// set of tensors that was cut down binds the names that are left.
absl::StatusOr<v1::Rule> SealRule(absl::string_view text, absl::string_view where);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_RULE_FILE_H_
