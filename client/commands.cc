#include "client/commands.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/error_text.h"
#include "client/exit_status.h"
#include "client/job_request.h"
#include "client/job_runner.h"
#include "client/job_text.h"
#include "client/measure_text.h"
#include "client/report_text.h"
#include "client/run_commands.h"
#include "client/session.h"
#include "client/slurm_commands.h"
#include "client/token_commands.h"
#include "client/transfer.h"
#include "client/watch.h"
#include "common/status.h"
#include "common/vocabulary.h"

namespace plumbline::client {
namespace {

using Jobs = v1::JobService::StubInterface;
using Admin = v1::AdminService::StubInterface;
using Result = absl::StatusOr<ExitStatus>;

constexpr int kPageSize = 1000;

// An API enum's value from the word that people write, e.g. "block-replay". INVALID_ARGUMENT lists
// the words.
template <typename Enum>
absl::StatusOr<Enum> ParseWord(absl::string_view flag, absl::string_view word,
                               absl::string_view prefix, bool (*parse)(absl::string_view, Enum*),
                               std::string (*name)(Enum), int count) {
  const std::string upper = absl::StrReplaceAll(absl::AsciiStrToUpper(word), {{"-", "_"}});
  Enum value;
  if (parse(absl::StrCat(prefix, upper), &value) && value != Enum{}) return value;
  std::vector<std::string> words;
  for (int i = 1; i < count; ++i) words.push_back(name(static_cast<Enum>(i)));
  return FieldError(flag, absl::StrCat("unknown ", Quoted(word)), absl::StrJoin(words, ", "));
}

// One command over one connection.
class CommandRunner {
 public:
  CommandRunner(const CommandLine& line, const Environment& environment)
      : line_(line), environment_(environment), out_(environment.output) {}

  int Run() {
    const Result result =
        std::visit([this](const auto& command) { return this->Do(command); }, line_.command);
    if (result.ok()) return *result;
    if (absl::IsCancelled(result.status()) && environment_.interrupt->IsRaised()) {
      return kExitInterrupted;
    }
    out_.PrintError(absl::StrCat(
        "plumbline: ", ErrorText(WithFileNames(result.status()), flags_, out_.error_style)));
    return ExitStatusOf(result.status());
  }

 private:
  const Style& style() const { return out_.out_style; }
  PathStyle path_style() const {
    return line_.server.server.empty() ? PathStyle::kAbsolute : PathStyle::kAsWritten;
  }

  // Makes `session_`.
  absl::Status Connect(bool needs_worker) {
    absl::StatusOr<std::unique_ptr<Connector>> connector = line_.server.server.empty()
                                                               ? environment_.embedded(needs_worker)
                                                               : NewServerConnector(line_.server);
    if (!connector.ok()) return connector.status();
    SessionOptions options;
    options.on_lost = [this](const std::string& message) {
      if (out_.error_is_terminal) out_.PrintError("\r\033[K");
      out_.PrintError(absl::StrCat(message, "\n"));
    };
    session_ = std::make_unique<Session>(*std::move(connector), environment_.clock,
                                         environment_.interrupt, std::move(options));
    return session_->Connect();
  }

  JobRunner Runner() {
    return JobRunner(session_.get(), &environment_, line_.server.server, line_.signing_key);
  }

  // Names of uploads in an error mean nothing to who typed the files' names.
  absl::Status WithFileNames(const absl::Status& status) const {
    if (uploads_.empty()) return status;
    absl::Status renamed(status.code(), absl::StrReplaceAll(status.message(), uploads_));
    std::vector<FieldViolation> violations = GetFieldViolations(status);
    for (FieldViolation& violation : violations) {
      violation.field = absl::StrReplaceAll(violation.field, uploads_);
      violation.description = absl::StrReplaceAll(violation.description, uploads_);
    }
    return violations.empty() ? renamed : WithFieldViolations(std::move(renamed), violations);
  }

  // Uploads files of the client's.
  absl::StatusOr<v1::InputFile> Resolve(absl::string_view flag, absl::string_view written) {
    v1::InputFile input;
    std::error_code error;
    if (absl::StartsWith(written, "artifacts/") &&
        !std::filesystem::exists(std::string(written), error)) {
      input.set_artifact(std::string(written));
      return input;
    }
    if (ParseWorkerPath(written, path_style(), &input)) return input;
    return Upload(flag, written, UploadKind::kInput);
  }

  absl::StatusOr<v1::InputFile> Upload(absl::string_view flag, absl::string_view written,
                                       UploadKind kind) {
    v1::InputFile input;
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string artifact,
                               UploadFile(session_.get(), flag, std::string(written), kind));
    input.set_artifact(artifact);
    uploads_.emplace_back(artifact, std::string(written));
    return input;
  }

  using MakeRequest = std::function<absl::StatusOr<JobRequest>(const InputResolver&)>;

  // Makes the job; where there are files to upload, first asks without them, so that a bad request
  // uploads nothing.
  Result Submit(bool has_uploads, const std::vector<std::string>& plugins,
                const MakeRequest& make) {
    PLUMBLINE_ASSIGN_OR_RETURN(JobRequest bare, make([](absl::string_view, absl::string_view) {
                                 return v1::InputFile();
                               }));
    bare.spec = WithoutInputs(std::move(bare.spec));
    flags_ = bare.flags;
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    if (has_uploads || !plugins.empty()) PLUMBLINE_RETURN_IF_ERROR(Runner().Validate(bare));
    PLUMBLINE_ASSIGN_OR_RETURN(JobRequest request,
                               make([this](absl::string_view flag, absl::string_view written) {
                                 return Resolve(flag, written);
                               }));
    PLUMBLINE_RETURN_IF_ERROR(AddPlugins(plugins, &request));
    return Runner().Run(request);
  }

  // Uploads plug-ins for the job to bring.
  absl::Status AddPlugins(const std::vector<std::string>& plugins, JobRequest* request) {
    for (const std::string& file : plugins) {
      request->flags.Add(absl::StrCat("plugins[", request->spec.plugins_size(), "]"), "--plugin",
                         file);
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string artifact,
                                 UploadFile(session_.get(), "--plugin", file, UploadKind::kPlugin));
      request->spec.add_plugins()->set_artifact(artifact);
      uploads_.emplace_back(artifact, file);
    }
    request->flags.Add("plugins", "--plugin", "");
    flags_ = request->flags;
    return absl::OkStatus();
  }

  Result Do(const SubmitBlockReplay& command) {
    return Submit(HasUploads(command), command.plugins, [&](const InputResolver& resolve) {
      return BlockReplayRequest(command, path_style(), resolve);
    });
  }

  Result Do(const SubmitFullModel& command) {
    return Submit(HasUploads(command), command.plugins, [&](const InputResolver& resolve) {
      return FullModelRequest(command, path_style(), resolve);
    });
  }

  Result Do(const SubmitSweep& command) {
    return Submit(/*has_uploads=*/false, command.plugins,
                  [&](const InputResolver&) { return SweepRequest(command, path_style()); });
  }

  Result Do(const SubmitGeneration& command) {
    // Without its conditioning there is nothing to ask about.
    return Submit(/*has_uploads=*/false, command.plugins, [&](const InputResolver& resolve) {
      return GenerationRequest(command, path_style(), resolve);
    });
  }

  Result Do(const SubmitDiagnostic& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string run, FindRunName(command.run, session_.get()));
    PLUMBLINE_ASSIGN_OR_RETURN(JobRequest request, DiagnosticRequest(command, run));
    PLUMBLINE_RETURN_IF_ERROR(AddPlugins(command.plugins, &request));
    return Runner().Run(request);
  }

  Result Do(const DecodeLatents& command) {
    if (!command.kept.empty()) {
      return SubmitFiles(
          [&](const InputResolver& resolve) { return KeptFramesRequest(command, resolve); });
    }
    if (!NamesRun(command.latents)) {
      // Without its latents there is nothing to ask about.
      return Submit(/*has_uploads=*/false, /*plugins=*/{}, [&](const InputResolver& resolve) {
        return DecodeRequest(command, /*run=*/"", path_style(), resolve);
      });
    }
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string run, FindRunName(command.latents, session_.get()));
    PLUMBLINE_ASSIGN_OR_RETURN(
        const JobRequest request,
        DecodeRequest(command, run, path_style(),
                      [](absl::string_view, absl::string_view) { return v1::InputFile(); }));
    flags_ = request.flags;
    return Runner().Run(request);
  }

  // These have nothing but files.
  Result SubmitFiles(const MakeRequest& make) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest request,
                               make([this](absl::string_view flag, absl::string_view written) {
                                 return Resolve(flag, written);
                               }));
    flags_ = request.flags;
    return Runner().Run(request);
  }

  Result Do(const ShowRule& command) {
    return SubmitFiles(
        [&](const InputResolver& resolve) { return ShowRuleRequest(command, resolve); });
  }
  Result Do(const SealRule& command) {
    return SubmitFiles(
        [&](const InputResolver& resolve) { return SealRuleRequest(command, resolve); });
  }
  Result Do(const CompareRules& command) {
    return SubmitFiles(
        [&](const InputResolver& resolve) { return CompareRulesRequest(command, resolve); });
  }
  Result Do(const RecomputeVerdict& command) {
    return SubmitFiles([&](const InputResolver&) {
      return VerdictRequest(command, [this](absl::string_view flag, absl::string_view written) {
        return Upload(flag, written, UploadKind::kBundleEntry);
      });
    });
  }
  Result Do(const VerifyCheckpoint& command) {
    return Submit(HasUploads(command), /*plugins=*/{}, [&](const InputResolver& resolve) {
      return VerifyCheckpointRequest(command, path_style(), resolve);
    });
  }
  Result Do(const WriteManifest& command) {
    return Submit(/*has_uploads=*/false, /*plugins=*/{},
                  [&](const InputResolver&) { return ManifestRequest(command, path_style()); });
  }
  Result Do(const Selftest& command) {
    return Submit(/*has_uploads=*/false, /*plugins=*/{},
                  [&](const InputResolver&) { return SelftestRequest(command); });
  }
  Result Do(const CompareFiles& command) {
    return SubmitFiles(
        [&](const InputResolver& resolve) { return ComparisonRequest(command, resolve); });
  }

  Result Do(const CompareMedia& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    return DoCompareMedia(command);
  }

  // Connected already.
  Result DoCompareMedia(const CompareMedia& command) {
    const bool of_jobs = IsJobName(command.a) && IsJobName(command.b);
    PLUMBLINE_ASSIGN_OR_RETURN(
        const JobRequest request,
        of_jobs ? GenerationComparisonRequest(command)
                : MediaComparisonRequest(
                      command,
                      [this](absl::string_view flag,
                             absl::string_view written) -> absl::StatusOr<v1::InputFile> {
                        if (!IsRunName(written)) return Resolve(flag, written);
                        return FindRunMedia(flag, std::string(written), session_.get());
                      }));
    flags_ = request.flags;
    return Runner().Run(request);
  }

  Result Do(const BuildLayout& command) {
    PLUMBLINE_ASSIGN_OR_RETURN(const JobRequest request, LayoutRequest(command));
    flags_ = request.flags;
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    return Runner().Run(request);
  }

  Result Do(const ListJobs& command) {
    v1::ListJobsRequest request;
    v1::JobFilter& filter = *request.mutable_filter();
    for (const std::string& word : command.kinds) {
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::JobKind kind, ParseKind("--kind", word));
      filter.add_kinds(kind);
    }
    for (const std::string& word : command.states) {
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::JobState state,
                                 ParseWord<v1::JobState>(
                                     "--state", word, "JOB_STATE_",
                                     +[](absl::string_view name, v1::JobState* value) {
                                       return v1::JobState_Parse(std::string(name), value);
                                     },
                                     &JobStateText, v1::JobState_ARRAYSIZE));
      filter.add_states(state);
    }
    for (const std::string& label : command.labels) {
      PLUMBLINE_ASSIGN_OR_RETURN(auto pair, ParsePair("--label", label, "K=V"));
      (*filter.mutable_labels())[pair.first] = pair.second;
    }
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    std::vector<v1::Job> jobs;
    do {
      request.set_page_size(
          std::min<int>(kPageSize, command.limit - static_cast<int>(jobs.size())));
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::ListJobsResponse page,
                                 session_->Call(&Jobs::ListJobs, request));
      jobs.insert(jobs.end(), page.jobs().begin(), page.jobs().end());
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty() && static_cast<int>(jobs.size()) < command.limit);
    out_.Print(JobTableText(jobs, style()));
    return kExitPassed;
  }

  Result Do(const GetJob& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, FetchJob(command.job));
    if (command.format != "json") {
      out_.Print(JobText(job, style()));
      return kExitPassed;
    }
    return PrintJson(job);
  }

  Result Do(const WatchJobCommand& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    const std::string name = JobName(command.job);
    absl::Status printed = absl::OkStatus();
    PLUMBLINE_ASSIGN_OR_RETURN(
        const WatchResult watched,
        WatchJob(session_.get(), name, command.after, [&](const v1::JobEvent& event) {
          if (command.format == "json") {
            absl::StatusOr<std::string> json = MessageJsonLine(event);
            if (json.ok()) {
              out_.Print(absl::StrCat(*json, "\n"));
            } else if (printed.ok()) {
              printed = json.status();
            }
          } else {
            out_.Print(absl::StrCat(EventText(event, style()), "\n"));
          }
        }));
    PLUMBLINE_RETURN_IF_ERROR(printed);
    if (watched.end == WatchEnd::kInterrupted) return kExitInterrupted;
    if (watched.end == WatchEnd::kNeedsMemory || watched.end == WatchEnd::kNeedsPlugin) {
      return absl::FailedPreconditionError(absl::StrCat(name, " waits: ", watched.message));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, FetchJob(name));
    PLUMBLINE_RETURN_IF_ERROR(ErrorOf(job));
    return ExitStatusOf(job.verdict());
  }

  Result Do(const CancelJob& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    v1::CancelJobRequest request;
    request.set_name(JobName(command.job));
    request.set_reason(command.reason);
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, session_->Call(&Jobs::CancelJob, request));
    out_.Print(
        absl::StrCat(job.name(), job.state() == v1::JOB_STATE_CANCELLED
                                     ? " is cancelled\n"
                                     : " will be cancelled at its worker's next heartbeat\n"));
    return kExitPassed;
  }

  Result Do(const CompareJobs& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    v1::CompareJobsRequest request;
    request.set_a(JobName(command.a));
    request.set_b(JobName(command.b));
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::JobComparison comparison,
                               session_->Call(&Jobs::CompareJobs, request));
    if (command.format == "json") return PrintJson(comparison);
    out_.Print(JobComparisonText(comparison, style()));
    return kExitPassed;
  }

  Result Do(const DeleteJobs& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    for (const std::string& job : command.jobs) {
      v1::DeleteJobRequest request;
      request.set_name(JobName(job));
      PLUMBLINE_RETURN_IF_ERROR(session_->Call(&Jobs::DeleteJob, request).status());
      out_.Print(absl::StrCat(request.name(), " is deleted\n"));
    }
    return kExitPassed;
  }

  Result Do(const ShowReport& command) {
    if (!command.bundle.empty()) {
      PLUMBLINE_RETURN_IF_ERROR(CheckBundleFolder("--bundle", command.bundle));
      PLUMBLINE_RETURN_IF_ERROR(ReadSigningKey(line_.signing_key).status());
    }
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Report report,
                               FetchReport(session_.get(), JobName(command.job)));
    if (command.format == "json") {
      PLUMBLINE_RETURN_IF_ERROR(PrintJson(report).status());
    } else {
      out_.Print(ReportText(report, style()));
    }
    if (!command.bundle.empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::Job job, FetchJob(command.job));
      PLUMBLINE_RETURN_IF_ERROR(
          WriteJobBundle(session_.get(), report, job, line_.signing_key, command.bundle));
    }
    return ExitStatusOf(report.verdict());
  }

  Result Do(const ListWorkers&) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/true));
    v1::ListWorkersRequest request;
    std::vector<v1::Worker> workers;
    do {
      PLUMBLINE_ASSIGN_OR_RETURN(const v1::ListWorkersResponse page,
                                 session_->Call(&Admin::ListWorkers, request));
      workers.insert(workers.end(), page.workers().begin(), page.workers().end());
      request.set_page_token(page.next_page_token());
    } while (!request.page_token().empty());
    out_.Print(WorkerTableText(workers, style()));
    return kExitPassed;
  }

  Result Do(const DrainWorker& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    v1::DrainWorkerRequest request;
    request.set_name(WorkerName(command.worker));
    request.set_reason(command.reason);
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::Worker worker,
                               session_->Call(&Admin::DrainWorker, request));
    out_.Print(absl::StrCat(worker.name(), " takes no more tasks\n"));
    return kExitPassed;
  }

  template <typename RunsCommand>
  Result DoWithRuns(const RunsCommand& command,
                    Result (*run)(const RunsCommand&, Session*, const Output&)) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/false));
    return run(command, session_.get(), out_);
  }
  Result Do(const ListRuns& command) { return DoWithRuns(command, &DoListRuns); }
  Result Do(const ShowRun& command) { return DoWithRuns(command, &DoShowRun); }
  Result Do(const VerifyRun& command) { return DoWithRuns(command, &DoVerifyRun); }
  Result Do(const CompareRuns& command) {
    PLUMBLINE_RETURN_IF_ERROR(Connect(/*needs_worker=*/command.media));
    PLUMBLINE_ASSIGN_OR_RETURN(const ExitStatus steps,
                               DoCompareRuns(command, session_.get(), out_));
    if (!command.media) return steps;
    CompareMedia media;
    PLUMBLINE_ASSIGN_OR_RETURN(media.a, FindRunName(command.a, session_.get()));
    PLUMBLINE_ASSIGN_OR_RETURN(media.b, FindRunName(command.b, session_.get()));
    PLUMBLINE_ASSIGN_OR_RETURN(const ExitStatus quality, DoCompareMedia(media));
    return quality == kExitPassed ? steps : quality;
  }
  Result Do(const AdoptRun& command) { return DoWithRuns(command, &DoAdoptRun); }
  Result Do(const DeleteRuns& command) { return DoWithRuns(command, &DoDeleteRuns); }
  Result Do(const BackupRuns& command) { return DoWithRuns(command, &DoBackupRuns); }

  Result Do(const CreateToken& command) { return DoCreateToken(command, environment_); }
  Result Do(const ListTokens& command) { return DoListTokens(command, environment_); }
  Result Do(const RevokeToken& command) { return DoRevokeToken(command, environment_); }

  Result Do(const SubmitSlurmWorkers& command) {
    return DoSubmitSlurmWorkers(
        command, line_, [this] { return Connect(/*needs_worker=*/false); }, environment_);
  }
  Result Do(const ShowSlurmWorkers& command) { return DoShowSlurmWorkers(command, environment_); }
  Result Do(const CancelSlurmWorkers& command) {
    return DoCancelSlurmWorkers(command, environment_);
  }

  Result Do(const ListFaults& command) {
    std::string lines;
    const auto list = [&](absl::Span<const FaultInfo> faults) {
      for (const FaultInfo& fault : faults) {
        absl::StrAppend(&lines, fault.name, "\t", fault.expected_entry, "\t", fault.sentence, "\n");
      }
    };
    std::vector<FaultInfo> of_kind;
    for (const FaultInfo& fault : Faults()) {
      if (command.job_kind.empty() || fault.job == command.job_kind) of_kind.push_back(fault);
    }
    list(of_kind);
    // Those that no layout of one's own shows are listed by what shows them.
    if (command.job_kind.empty() || command.job_kind == kSweepLayouts) list(SweepFaults());
    // No fault: a kind without any, or no kind at all.
    if (lines.empty()) PLUMBLINE_RETURN_IF_ERROR(ParseKind("--job", command.job_kind).status());
    out_.Print(lines);
    return kExitPassed;
  }

  static absl::StatusOr<v1::JobKind> ParseKind(absl::string_view flag, absl::string_view word) {
    return ParseWord<v1::JobKind>(
        flag, word, "JOB_KIND_",
        +[](absl::string_view name, v1::JobKind* value) {
          return v1::JobKind_Parse(std::string(name), value);
        },
        &JobKindText, v1::JobKind_ARRAYSIZE);
  }

  absl::StatusOr<v1::Job> FetchJob(const std::string& job) {
    v1::GetJobRequest request;
    request.set_name(JobName(job));
    return session_->Call(&Jobs::GetJob, request);
  }

  Result PrintJson(const google::protobuf::Message& message) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string json, MessageJson(message));
    out_.Print(json);
    return kExitPassed;
  }

  const CommandLine& line_;
  const Environment& environment_;
  const Output& out_;
  FlagNames flags_;
  std::vector<std::pair<std::string, std::string>> uploads_;  // Artifact and file.
  std::unique_ptr<Session> session_;
};

}  // namespace

int RunCommand(const CommandLine& line, const Environment& environment) {
  return CommandRunner(line, environment).Run();
}

int RunCommandLine(int argc, const char* const* argv, const Environment& environment) {
  const auto parsed = ParseCommandLine(argc, argv);
  if (!parsed.ok()) {
    environment.output.PrintError(absl::StrCat("plumbline: ", parsed.status().message(), "\n"));
    return kExitBadRequest;
  }
  if (const auto* help = std::get_if<HelpText>(&*parsed)) {
    environment.output.Print(help->text);
    return kExitPassed;
  }
  return RunCommand(std::get<CommandLine>(*parsed), environment);
}

}  // namespace plumbline::client
