// Requests for checks of what a worker has: its checkpoints, and itself.
#include <utility>

#include "client/request_parts.h"
#include "common/status.h"

namespace plumbline::client {

bool HasUploads(const VerifyCheckpoint& flags) { return IsUpload(flags.manifest); }

absl::StatusOr<JobRequest> VerifyCheckpointRequest(const VerifyCheckpoint& flags, PathStyle paths,
                                                   const InputResolver& resolve) {
  JobRequest request;
  FillCheckpoint(flags.checkpoint, paths, &request, "DIR");
  v1::CheckpointSpec::VerifyOperation& verify =
      *request.spec.mutable_checkpoint_check()->mutable_verify();
  if (!flags.manifest.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--manifest", "checkpoint_check.verify.manifest",
                                        flags.manifest, resolve, verify.mutable_manifest(),
                                        &request.flags));
  }
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

absl::StatusOr<JobRequest> ManifestRequest(const WriteManifest& flags, PathStyle paths) {
  JobRequest request;
  FillCheckpoint(flags.checkpoint, paths, &request, "DIR");
  request.spec.mutable_checkpoint_check()->mutable_manifest();
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.manifest = flags.output.empty() ? "manifest.json" : flags.output;
  request.wait = true;
  return request;
}

absl::StatusOr<JobRequest> SelftestRequest(const Selftest& flags) {
  JobRequest request;
  request.spec.mutable_selftest();
  if (!flags.worker_labels.empty()) {
    auto& labels = *request.spec.mutable_placement()->mutable_worker_labels();
    for (const std::string& label : flags.worker_labels) {
      PLUMBLINE_ASSIGN_OR_RETURN(auto pair, ParsePair("--worker-label", label, "K=V"));
      labels[pair.first] = pair.second;
    }
    request.flags.Add("placement.worker_labels", "--worker-label", "");
  }
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

}  // namespace plumbline::client
