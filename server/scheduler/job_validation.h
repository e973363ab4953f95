#ifndef PLUMBLINE_SERVER_SCHEDULER_JOB_VALIDATION_H_
#define PLUMBLINE_SERVER_SCHEDULER_JOB_VALIDATION_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/job.pb.h"

// What the coordinator can see of a specification without a kernel or a checkpoint.

namespace plumbline::server {

// Checks everything, puts the defaults and the canonical form of names in, and returns
// INVALID_ARGUMENT with a violation for each field that is wrong ("spec.block_replay.layouts[1]
// .height"). `has_artifact` tells whether "artifacts/{artifact}" exists, `is_plugin` whether it was
// uploaded as a plug-in; null where the server takes none. The kind must be one that CheckKind
// accepts.
absl::Status ValidateSpec(const std::function<bool(const std::string&)>& has_artifact,
                          const std::function<bool(const std::string&)>& is_plugin,
                          v1::JobSpec* spec);

// In place of a block's index: the nodes of the whole transformer.
inline constexpr int kWholeModel = -1;

// COMPOSITION := BASE ('+' IMPL ':' NODE (',' NODE)*)* with the names of one block, or of the whole
// model. Returns it in canonical form; errors name `field`.
absl::StatusOr<std::string> CanonicalComposition(absl::string_view text, int block,
                                                 absl::string_view field);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_JOB_VALIDATION_H_
