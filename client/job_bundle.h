#ifndef PLUMBLINE_CLIENT_JOB_BUNDLE_H_
#define PLUMBLINE_CLIENT_JOB_BUNDLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/session.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// Writes the bundle of a finished job to a new folder, with the rule files that its tasks were
// judged by, signed with the key in the file `signing_key` where that is not empty.
absl::Status WriteJobBundle(Session* session, const v1::Report& report, const v1::Job& job,
                            const std::string& signing_key, const std::string& folder);

// The text of a signing key's file; "" where `path` is empty. INVALID_ARGUMENT with a violation of
// --signing-key for what is no such key.
absl::StatusOr<std::string> ReadSigningKey(const std::string& path);

// Those that a job has in a role.
std::vector<v1::Artifact> ArtifactsOf(const v1::Job& job, v1::ArtifactRole role);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_JOB_BUNDLE_H_
