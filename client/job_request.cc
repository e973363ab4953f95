#include "client/job_request.h"

#include <utility>

#include "client/layout_text.h"
#include "client/request_parts.h"
#include "common/status.h"

namespace plumbline::client {

absl::StatusOr<JobRequest> BlockReplayRequest(const SubmitBlockReplay& flags, PathStyle paths,
                                              const InputResolver& resolve) {
  JobRequest request;
  v1::JobSpec& spec = request.spec;
  v1::BlockReplaySpec& replay = *spec.mutable_block_replay();
  FillCheckpoint(flags.checkpoint, paths, &request);
  spec.set_composition(flags.composition);
  spec.set_inject(flags.inject);
  spec.set_save_tensors(!flags.save_tensors.empty());
  replay.set_block(flags.block);
  replay.set_backward(flags.backward);
  request.flags.Add("composition", "--composition", flags.composition);
  request.flags.Add("inject", "--inject", flags.inject);
  request.flags.Add("save_tensors", "--save-tensors", flags.save_tensors);
  request.flags.Add("block_replay.block", "--block", "");
  request.flags.Add("block_replay.backward", "--backward", "");
  PLUMBLINE_RETURN_IF_ERROR(FillLayouts(flags.layouts, flags.layout, "block_replay.layouts",
                                        replay.mutable_layouts(), &request.flags));
  if (HasCaptures(flags.captures)) {
    PLUMBLINE_RETURN_IF_ERROR(FillCaptures(flags.captures, "block_replay.captures", resolve,
                                           replay.mutable_captures(), &request.flags));
  }
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.save_tensors = flags.save_tensors;
  request.bundle = flags.bundle;
  request.wait = flags.job.wait || !flags.job.report.empty() || !flags.save_tensors.empty() ||
                 !flags.bundle.empty();
  return request;
}

absl::StatusOr<JobRequest> ComparisonRequest(const CompareFiles& flags,
                                             const InputResolver& resolve) {
  JobRequest request;
  v1::ComparisonSpec::FilePair& pair = *request.spec.mutable_comparison()->mutable_tensors();
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("A", "comparison.tensors.a", flags.a, resolve, pair.mutable_a(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("B", "comparison.tensors.b", flags.b, resolve, pair.mutable_b(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

absl::StatusOr<JobRequest> LayoutRequest(const BuildLayout& flags) {
  JobRequest request;
  request.flags.Add("layout.layout", "--layout", flags.layout);
  PLUMBLINE_ASSIGN_OR_RETURN(*request.spec.mutable_layout()->mutable_layout(),
                             ParseLayout("--layout", flags.layout));
  request.spec.set_save_tensors(true);
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.save_tensors = flags.save_tensors;
  request.wait = true;
  return request;
}

}  // namespace plumbline::client
