#ifndef PLUMBLINE_WORKER_DRIFT_RULE_JSON_H_
#define PLUMBLINE_WORKER_DRIFT_RULE_JSON_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"
#include "proto/plumbline/v1/full_model.pb.h"

// The form of a rule in its file. Whether its figures agree with each other is not asked here.

namespace plumbline::drift {

// Everything but the digest.
nlohmann::json RuleToJson(const v1::Rule& rule);

// The inverse, with the digest, "" where the file has none. Every key must be there and no other
// may; strings are printable ASCII; numbers finite, not negative, and k on its grid.
// INVALID_ARGUMENT names `where` and the field. `leave_one_out` is left empty.
absl::StatusOr<v1::Rule> RuleFromJson(const nlohmann::json& json, absl::string_view where);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_RULE_JSON_H_
