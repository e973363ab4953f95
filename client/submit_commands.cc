#include "client/submit_commands.h"

#include <string>

#include "client/job_request.h"
#include "client/run_commands.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

using Result = absl::StatusOr<ExitStatus>;

}  // namespace

Result Do(const SubmitBlockReplay& command, CommandContext* context) {
  return context->Submit(HasUploads(command), command.plugins, [&](const InputResolver& resolve) {
    return BlockReplayRequest(command, context->path_style(), resolve);
  });
}

Result Do(const SubmitFullModel& command, CommandContext* context) {
  return context->Submit(HasUploads(command), command.plugins, [&](const InputResolver& resolve) {
    return FullModelRequest(command, context->path_style(), resolve);
  });
}

Result Do(const SubmitSweep& command, CommandContext* context) {
  return context->Submit(/*has_uploads=*/false, command.plugins, [&](const InputResolver&) {
    return SweepRequest(command, context->path_style());
  });
}

Result Do(const SubmitGeneration& command, CommandContext* context) {
  // Without its conditioning there is nothing to ask about.
  return context->Submit(/*has_uploads=*/false, command.plugins, [&](const InputResolver& resolve) {
    return GenerationRequest(command, context->path_style(), resolve);
  });
}

Result Do(const SubmitDiagnostic& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string run, FindRunName(command.run, context->session()));
  PLUMBLINE_ASSIGN_OR_RETURN(JobRequest request, DiagnosticRequest(command, run));
  PLUMBLINE_RETURN_IF_ERROR(context->AddPlugins(command.plugins, &request));
  return context->Runner().Run(request);
}

Result Do(const DecodeLatents& command, CommandContext* context) {
  if (!command.kept.empty()) {
    return context->SubmitFiles(
        [&](const InputResolver& resolve) { return KeptFramesRequest(command, resolve); });
  }
  if (!NamesRun(command.latents)) {
    // Without its latents there is nothing to ask about.
    return context->Submit(
        /*has_uploads=*/false, /*plugins=*/{}, [&](const InputResolver& resolve) {
          return DecodeRequest(command, /*run=*/"", context->path_style(), resolve);
        });
  }
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string run,
                             FindRunName(command.latents, context->session()));
  PLUMBLINE_ASSIGN_OR_RETURN(
      const JobRequest request,
      DecodeRequest(command, run, context->path_style(),
                    [](absl::string_view, absl::string_view) { return v1::InputFile(); }));
  context->NoteFlags(request.flags);
  return context->Runner().Run(request);
}

Result Do(const ShowRule& command, CommandContext* context) {
  return context->SubmitFiles(
      [&](const InputResolver& resolve) { return ShowRuleRequest(command, resolve); });
}

Result Do(const SealRule& command, CommandContext* context) {
  return context->SubmitFiles(
      [&](const InputResolver& resolve) { return SealRuleRequest(command, resolve); });
}

Result Do(const CompareRules& command, CommandContext* context) {
  return context->SubmitFiles(
      [&](const InputResolver& resolve) { return CompareRulesRequest(command, resolve); });
}

Result Do(const RecomputeVerdict& command, CommandContext* context) {
  return context->SubmitFiles([&](const InputResolver&) {
    return VerdictRequest(command, [context](absl::string_view flag, absl::string_view written) {
      return context->Upload(flag, written, UploadKind::kBundleEntry);
    });
  });
}

Result Do(const VerifyCheckpoint& command, CommandContext* context) {
  return context->Submit(HasUploads(command), /*plugins=*/{}, [&](const InputResolver& resolve) {
    return VerifyCheckpointRequest(command, context->path_style(), resolve);
  });
}

Result Do(const WriteManifest& command, CommandContext* context) {
  return context->Submit(/*has_uploads=*/false, /*plugins=*/{}, [&](const InputResolver&) {
    return ManifestRequest(command, context->path_style());
  });
}

Result Do(const Selftest& command, CommandContext* context) {
  return context->Submit(/*has_uploads=*/false, /*plugins=*/{},
                         [&](const InputResolver&) { return SelftestRequest(command); });
}

Result Do(const CompareFiles& command, CommandContext* context) {
  return context->SubmitFiles(
      [&](const InputResolver& resolve) { return ComparisonRequest(command, resolve); });
}

Result Do(const CompareMedia& command, CommandContext* context) {
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  return DoCompareMedia(command, context);
}

Result DoCompareMedia(const CompareMedia& command, CommandContext* context) {
  const bool of_jobs = IsJobName(command.a) && IsJobName(command.b);
  PLUMBLINE_ASSIGN_OR_RETURN(
      const JobRequest request,
      of_jobs ? GenerationComparisonRequest(command)
              : MediaComparisonRequest(
                    command,
                    [context](absl::string_view flag,
                              absl::string_view written) -> absl::StatusOr<v1::InputFile> {
                      if (!IsRunName(written)) return context->Resolve(flag, written);
                      return FindRunMedia(flag, std::string(written), context->session());
                    }));
  context->NoteFlags(request.flags);
  return context->Runner().Run(request);
}

Result Do(const BuildLayout& command, CommandContext* context) {
  PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest request, LayoutRequest(command));
  context->NoteFlags(request.flags);
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  return context->Runner().Run(request);
}

}  // namespace plumbline::client
