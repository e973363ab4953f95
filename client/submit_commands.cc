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
  return context->Submit(/*asks_first=*/false, command.plugins, [&](const InputResolver&) {
    return SweepRequest(command, context->path_style());
  });
}

Result Do(const SubmitGeneration& command, CommandContext* context) {
  // Without its conditioning there is nothing to ask about.
  return context->Submit(/*asks_first=*/false, command.plugins, [&](const InputResolver& resolve) {
    return GenerationRequest(command, context->path_style(), resolve);
  });
}

Result Do(const SubmitDiagnostic& command, CommandContext* context) {
  PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest bare, DiagnosticRequest(command, /*run=*/""));
  PLUMBLINE_RETURN_IF_ERROR(context->CheckOutputs(bare));
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string run,
                             FindRunName("--run", command.run, context->session()));
  PLUMBLINE_ASSIGN_OR_RETURN(JobRequest request, DiagnosticRequest(command, run));
  PLUMBLINE_RETURN_IF_ERROR(context->AddPlugins(command.plugins, &request));
  return context->Runner().Run(request);
}

Result Do(const DecodeLatents& command, CommandContext* context) {
  if (!command.kept.empty()) {
    return context->SubmitFiles(
        [&](const InputResolver& resolve) { return KeptFramesRequest(command, resolve); });
  }
  const auto make = [&](const std::string& run, const InputResolver& resolve) {
    return DecodeRequest(command, run, context->path_style(), resolve);
  };
  if (!NamesRun(command.latents)) {
    return context->SubmitFiles(
        [&](const InputResolver& resolve) { return make(/*run=*/"", resolve); });
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest bare,
                             make(command.latents, &CommandContext::NoInput));
  PLUMBLINE_RETURN_IF_ERROR(context->CheckOutputs(bare));
  PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string run,
                             FindRunName("--latents", command.latents, context->session()));
  PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest request, make(run, &CommandContext::NoInput));
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
  return context->SubmitFiles(
      [&](const InputResolver& resolve) { return VerdictRequest(command, resolve); },
      UploadKind::kBundleEntry);
}

Result Do(const VerifyCheckpoint& command, CommandContext* context) {
  return context->Submit(HasUploads(command), /*plugins=*/{}, [&](const InputResolver& resolve) {
    return VerifyCheckpointRequest(command, context->path_style(), resolve);
  });
}

Result Do(const WriteManifest& command, CommandContext* context) {
  return context->Submit(/*asks_first=*/false, /*plugins=*/{}, [&](const InputResolver&) {
    return ManifestRequest(command, context->path_style());
  });
}

Result Do(const Selftest& command, CommandContext* context) {
  return context->Submit(/*asks_first=*/false, /*plugins=*/{},
                         [&](const InputResolver&) { return SelftestRequest(command); });
}

Result Do(const CompareFiles& command, CommandContext* context) {
  return context->SubmitFiles(
      [&](const InputResolver& resolve) { return ComparisonRequest(command, resolve); });
}

Result DoCompareMedia(const CompareMedia& command, CommandContext* context) {
  const bool of_jobs = IsJobName(command.a) && IsJobName(command.b);
  const auto make = [&](const InputResolver& resolve) {
    return of_jobs ? GenerationComparisonRequest(command)
                   : MediaComparisonRequest(command, resolve);
  };
  PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest bare, make(&CommandContext::NoInput));
  PLUMBLINE_RETURN_IF_ERROR(context->CheckOutputs(bare));
  if (context->session() == nullptr) {
    PLUMBLINE_RETURN_IF_ERROR(context->Connect(/*needs_worker=*/true));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(
      const JobRequest request,
      make([context](absl::string_view flag,
                     absl::string_view written) -> absl::StatusOr<v1::InputFile> {
        if (!IsRunName(written)) return context->Resolve(flag, written);
        return FindRunMedia(flag, std::string(written), context->session());
      }));
  return context->Runner().Run(request);
}

Result Do(const CompareMedia& command, CommandContext* context) {
  return DoCompareMedia(command, context);
}

Result Do(const BuildLayout& command, CommandContext* context) {
  return context->SubmitFiles([&](const InputResolver&) { return LayoutRequest(command); });
}

}  // namespace plumbline::client
