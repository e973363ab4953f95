#include "client/job_runner.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/job_bundle.h"
#include "client/output_check.h"
#include "client/progress_line.h"
#include "client/report_text.h"
#include "client/transfer.h"
#include "client/watch.h"
#include "common/files.h"
#include "common/grpc_status.h"
#include "common/random_id.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

using Jobs = v1::JobService::StubInterface;

bool HasFinishedTask(const v1::Job& job) {
  return std::any_of(job.tasks().begin(), job.tasks().end(),
                     [](const v1::Task& task) { return task.state() == v1::JOB_STATE_SUCCEEDED; });
}

// What a job without enough memory asks too much by.
absl::string_view LayoutsField(const v1::JobSpec& spec) {
  if (spec.has_block_replay()) return "block_replay.layouts";
  if (spec.has_full_model()) return "full_model.layouts";
  if (spec.has_sweep()) return "sweep.layouts";
  return "placement.memory_bytes";
}

std::string TitleOfTask(const v1::Job& job, const std::string& task_name) {
  for (const v1::Task& task : job.tasks()) {
    if (task.name() == task_name) return task.title();
  }
  return task_name.substr(task_name.rfind('/') + 1);
}

}  // namespace

absl::StatusOr<v1::Report> FetchReport(Session* session, const std::string& job) {
  v1::GetReportRequest request;
  request.set_name(job);
  v1::Report report;
  do {
    PLUMBLINE_ASSIGN_OR_RETURN(v1::GetReportResponse page,
                               session->Call(&Jobs::GetReport, request));
    if (request.page_token().empty()) {
      report = std::move(*page.mutable_report());
    } else {
      report.mutable_tasks()->MergeFrom(page.report().tasks());
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return report;
}

absl::Status ErrorOf(const v1::Job& job) {
  switch (job.state()) {
    case v1::JOB_STATE_FAILED: {
      const absl::Status error = FromRpcStatus(job.error());
      return error.ok() ? absl::InternalError(absl::StrCat(job.name(), " failed")) : error;
    }
    case v1::JOB_STATE_CANCELLED:
      return absl::CancelledError(absl::StrCat(job.name(), " was cancelled"));
    default:
      return absl::OkStatus();
  }
}

std::string PathForTask(const std::string& path, const std::string& title) {
  absl::string_view name = title;
  if (!absl::ConsumePrefix(&name, "layout ")) absl::ConsumePrefix(&name, "seed ");
  std::string word(name);
  for (char& c : word) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '+') c = '_';
  }
  const size_t slash = path.rfind('/');
  const size_t dot = path.rfind('.');
  const bool has_extension =
      dot != std::string::npos && (slash == std::string::npos || dot > slash + 1);
  const size_t end = has_extension ? dot : path.size();
  return absl::StrCat(path.substr(0, end), "-", word, path.substr(end));
}

JobRunner::JobRunner(Session* session, const Environment* environment, std::string server,
                     std::string signing_key)
    : session_(session),
      environment_(environment),
      server_(std::move(server)),
      signing_key_(std::move(signing_key)) {}

absl::Status JobRunner::Validate(const JobRequest& request) {
  v1::CreateJobRequest create;
  *create.mutable_spec() = request.spec;
  create.set_validate_only(true);
  return session_->Call(&Jobs::CreateJob, create).status();
}

absl::StatusOr<ExitStatus> JobRunner::Run(const JobRequest& request) {
  PLUMBLINE_RETURN_IF_ERROR(CheckOutputs(request, signing_key_));
  v1::CreateJobRequest create;
  *create.mutable_spec() = request.spec;
  create.set_request_id(RandomIds()->NewId());
  PLUMBLINE_ASSIGN_OR_RETURN(v1::Job job, session_->Call(&Jobs::CreateJob, create));
  const std::string name = job.name();
  const Output& output = environment_->output;
  if (!request.wait && !session_->is_embedded()) {
    output.Print(absl::StrCat(name, "\n"));
    return kExitPassed;
  }

  absl::StatusOr<WatchResult> watched = absl::UnknownError("");
  {
    ProgressLine line(output.error, output.error_is_terminal, output.error_style,
                      environment_->clock);
    watched = WatchJob(session_, name, 0, [&](const v1::JobEvent& event) { line.Take(event); });
  }
  if (!watched.ok()) return AnnotateStatus(watched.status(), name);
  if (watched->end == WatchEnd::kInterrupted) {
    TellInterrupted(name);
    return kExitInterrupted;
  }
  if (watched->end == WatchEnd::kNeedsMemory) {
    Withdraw(name);
    return FieldError(LayoutsField(request.spec), watched->message,
                      "a layout that fits in a worker's memory");
  }
  if (watched->end == WatchEnd::kNeedsPlugin) {
    Withdraw(name);
    return FieldError("composition", watched->message,
                      "plug-ins that a worker has, or --plugin=FILE with one of yours");
  }
  if (watched->end == WatchEnd::kHasNoWorker) {
    Withdraw(name);
    return absl::UnavailableError(watched->message);
  }

  v1::GetJobRequest get;
  get.set_name(name);
  PLUMBLINE_ASSIGN_OR_RETURN(job, session_->Call(&Jobs::GetJob, get));
  if (const absl::Status error = ErrorOf(job); !error.ok()) {
    if (absl::IsInvalidArgument(error) && !HasFinishedTask(job)) Withdraw(name);
    return error;
  }
  return Deliver(request, job);
}

absl::StatusOr<ExitStatus> JobRunner::Deliver(const JobRequest& request, const v1::Job& job) {
  PLUMBLINE_ASSIGN_OR_RETURN(const v1::Report report, FetchReport(session_, job.name()));
  const Output& output = environment_->output;
  output.Print(ReportText(report, output.out_style));
  if (!request.report.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string json, ReportJson(report));
    PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(request.report, json));
  }
  if (!request.save_tensors.empty()) PLUMBLINE_RETURN_IF_ERROR(WriteTensors(request, job));
  if (!request.rule.empty()) PLUMBLINE_RETURN_IF_ERROR(WriteRule(request, job));
  if (!request.difference.empty()) PLUMBLINE_RETURN_IF_ERROR(WriteDifference(request, job));
  PLUMBLINE_RETURN_IF_ERROR(WriteOutputs(request, job));
  if (!request.manifest.empty()) PLUMBLINE_RETURN_IF_ERROR(WriteManifestFile(request, job));
  if (!request.bundle.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(WriteJobBundle(session_, report, job, signing_key_, request.bundle));
  }
  return ExitStatusOf(report.verdict());
}

absl::Status JobRunner::WriteTensors(const JobRequest& request, const v1::Job& job) {
  const std::vector<v1::Artifact> artifacts = ArtifactsOf(job, v1::ARTIFACT_ROLE_TENSORS);
  if (artifacts.empty()) {
    return absl::InternalError(
        absl::StrCat(job.name(), " kept no tensors, though it was asked to"));
  }
  const bool several = artifacts.size() > 1;
  std::set<std::string> written;
  const auto write = [&](const v1::Artifact& artifact, const std::string& path) {
    // Titles that differ in their punctuation alone are one name.
    std::string free = path;
    for (int i = 2; !written.insert(free).second; ++i) {
      free = PathForTask(path, absl::StrCat(i));
    }
    return DownloadArtifact(session_, artifact, free);
  };
  const auto path_of = [&](const v1::Artifact& artifact) {
    return several ? PathForTask(request.save_tensors, TitleOfTask(job, artifact.task()))
                   : request.save_tensors;
  };
  for (const v1::Artifact& artifact : artifacts) {
    PLUMBLINE_RETURN_IF_ERROR(write(artifact, path_of(artifact)));
  }
  for (const v1::Artifact& artifact : ArtifactsOf(job, v1::ARTIFACT_ROLE_KEPT_TENSORS)) {
    const std::string name(absl::StripSuffix(artifact.file_name(), ".safetensors"));
    PLUMBLINE_RETURN_IF_ERROR(write(artifact, PathForTask(path_of(artifact), name)));
  }
  return absl::OkStatus();
}

absl::Status JobRunner::WriteDifference(const JobRequest& request, const v1::Job& job) {
  const std::vector<v1::Artifact> videos = ArtifactsOf(job, v1::ARTIFACT_ROLE_DIFFERENCE);
  if (videos.empty()) return FieldError("--diff", "a sound alone makes no video", "two videos");
  return DownloadArtifact(session_, videos.front(), request.difference);
}

absl::Status JobRunner::WriteManifestFile(const JobRequest& request, const v1::Job& job) {
  const std::vector<v1::Artifact> manifests = ArtifactsOf(job, v1::ARTIFACT_ROLE_MANIFEST);
  // None of a checkpoint with findings, which the report told of.
  if (manifests.empty()) return absl::OkStatus();
  return DownloadArtifact(session_, manifests.front(), request.manifest);
}

absl::Status JobRunner::WriteRule(const JobRequest& request, const v1::Job& job) {
  const std::vector<v1::Artifact> rules = ArtifactsOf(job, v1::ARTIFACT_ROLE_RULE);
  if (rules.empty()) return absl::InternalError(absl::StrCat(job.name(), " made no rule"));
  return DownloadArtifact(session_, rules.front(), request.rule);
}

absl::Status JobRunner::WriteOutputs(const JobRequest& request, const v1::Job& job) {
  for (const auto& [role, path] : request.outputs) {
    const std::vector<v1::Artifact> made = ArtifactsOf(job, role);
    if (!made.empty()) {
      PLUMBLINE_RETURN_IF_ERROR(DownloadArtifact(session_, made.front(), path));
      continue;
    }
    if (role == v1::ARTIFACT_ROLE_VIDEO) {
      return absl::UnavailableError(
          absl::StrCat(path, " is not made yet: the worker has no FFmpeg; ", job.name(),
                       " keeps the frames until one that has makes it"));
    }
    return absl::InternalError(absl::StrCat(job.name(), " made nothing for ", path));
  }
  return absl::OkStatus();
}

void JobRunner::Withdraw(const std::string& job) {
  v1::CancelJobRequest cancel;
  cancel.set_name(job);
  cancel.set_reason("it cannot be done");
  // Refused for a job that has ended; what matters is that it goes.
  session_->Call(&Jobs::CancelJob, cancel).IgnoreError();
  v1::DeleteJobRequest remove;
  remove.set_name(job);
  const absl::Status removed = session_->Call(&Jobs::DeleteJob, remove).status();
  if (!removed.ok()) {
    environment_->output.PrintError(
        absl::StrCat(job, " could not be deleted: ", removed.message(), "\n"));
  }
}

void JobRunner::TellInterrupted(const std::string& job) const {
  const std::string server = server_.empty() ? "" : absl::StrCat(" --server=", server_);
  environment_->output.PrintError(absl::StrCat(
      session_->is_embedded() ? absl::StrCat("Interrupted. ", job, " goes on when it is watched.\n")
                              : absl::StrCat("Interrupted. ", job, " goes on.\n"),
      "  watch it:   plumbline jobs watch ", job, server, "\n",
      "  cancel it:  plumbline jobs cancel ", job, server, "\n"));
}

}  // namespace plumbline::client
