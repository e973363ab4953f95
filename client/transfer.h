#ifndef PLUMBLINE_CLIENT_TRANSFER_H_
#define PLUMBLINE_CLIENT_TRANSFER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/session.h"
#include "proto/plumbline/v1/artifact.pb.h"

// Files to and from the coordinator, in chunks of at most 1 MiB, their digests checked on both
// sides.

namespace plumbline::client {

enum class UploadKind {
  kInput,
  kPlugin,
  kBundleEntry,  // An input of a folder that somebody else made: a link in it is not followed.
};

// Uploads the file at `path` and returns the artifact's name. Bytes that the coordinator has
// already are not sent. INVALID_ARGUMENT with a violation of `flag` for a file that cannot be read
// or that changes meanwhile.
absl::StatusOr<std::string> UploadFile(Session* session, absl::string_view flag,
                                       const std::string& path,
                                       UploadKind kind = UploadKind::kInput);

// Writes the artifact to `path`, which appears complete or not at all. DATA_LOSS where length or
// digest are not the artifact's.
absl::Status DownloadArtifact(Session* session, const v1::Artifact& artifact,
                              const std::string& path);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_TRANSFER_H_
