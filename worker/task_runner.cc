#include "worker/task_runner.h"

#include <google/protobuf/descriptor.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/crash_point.h"
#include "common/logging.h"
#include "common/mapped_file.h"
#include "common/status.h"
#include "kernels/plugin/fault.h"
#include "worker/jobs/task_failure.h"
#include "worker/lease/backoff.h"
#include "worker/lease/event_reporter.h"
#include "worker/lease/retry.h"
#include "worker/steps/remote_step_store.h"

namespace plumbline::worker {
namespace {

constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(5);
// A report must be one message of less than 4 MB.
constexpr size_t kMaxReportBytes = 4'000'000;
// What a slow disk and network still take: 60 s, and a second for each 4 MiB.
constexpr int64_t kLeastBytesPerSecond = 4 << 20;
constexpr absl::Duration kPutOverhead = absl::Seconds(60);

std::string KindOf(const v1::JobSpec& spec) {
  const auto* const field = v1::JobSpec::descriptor()->FindFieldByNumber(spec.kind_case());
  return field == nullptr ? "none" : field->name();
}

}  // namespace

// One run of Run().
class TaskRunner::Attempt {
 public:
  Attempt(const TaskRunnerOptions& options, HeldTask* task)
      : options_(options), task_(*task), reporter_(options.coordinator, task, options.clock) {}

  AttemptOutcome Run(const JobFunction& job) {
    if (task_.stop_reason() == StopReason::kRelease) return Release("it had not begun");
    absl::StatusOr<jobs::JobResult> result = RunJob(job);
    absl::Status stored;
    if (result.ok()) stored = StoreFiles(&*result);
    // Nothing is said under a lost lease, and what was told to stop has failed of nothing else.
    switch (task_.stop_reason()) {
      case StopReason::kLeaseLost:
        return AttemptOutcome::kLeaseLost;
      case StopReason::kCancelled:
        return Fail(absl::CancelledError("cancelled as asked"));
      case StopReason::kRelease:
        if (!result.ok() || !stored.ok()) return Release("it could not be finished in time");
        break;
      case StopReason::kNone:
        break;
    }
    if (!result.ok()) {
      // It ended behind a piece of work that is kept.
      if (absl::IsCancelled(result.status()) && task_.asked_to_yield()) {
        return Release(result.status().message());
      }
      // A worker with more memory may do it.
      if (const int64_t needed = GetNeededMemory(result.status()); needed > 0) {
        return ReleaseFor(v1::RELEASE_REASON_UNSUITABLE, result.status().message(), needed);
      }
      return Fail(result.status());
    }
    if (!stored.ok()) return Fail(stored);
    return Succeed(std::move(result->report));
  }

 private:
  absl::StatusOr<jobs::JobResult> RunJob(const JobFunction& job) {
    PLUMBLINE_ASSIGN_OR_RETURN(std::string folder, options_.state->NewTaskFolder());
    jobs::JobEnvironment environment;
    environment.context.device = options_.device;
    environment.context.registry = options_.registry;
    environment.context.clock = options_.clock;
    // An event that cannot be reported ends the job at its next check_cancelled().
    environment.context.on_node = [this](const v1::NodeEvent& node) {
      v1::JobEvent event;
      *event.mutable_node() = node;
      KeepError(reporter_.Report(std::move(event)));
    };
    environment.context.on_progress = [this](const v1::Progress& progress) {
      v1::JobEvent event;
      *event.mutable_progress() = progress;
      KeepError(reporter_.Report(std::move(event)));
    };
    environment.context.on_rule_frozen = [this](const v1::RuleFrozenEvent& frozen) {
      v1::JobEvent event;
      *event.mutable_rule_frozen() = frozen;
      PLUMBLINE_RETURN_IF_ERROR(reporter_.Report(std::move(event)));
      return reporter_.Flush().status();
    };
    environment.context.check_cancelled = [this] {
      return task_.work()->raised() ? absl::CancelledError("the attempt must stop") : event_error_;
    };
    environment.kernel_identity = options_.kernel_identity;
    environment.libraries = options_.libraries;
    environment.threads = options_.threads;
    environment.checkpoints = options_.checkpoints;
    environment.fetch = [this](const v1::InputFile& file, absl::string_view field) {
      return options_.input_files->Fetch(file, field, task_.work());
    };
    environment.output_folder = std::move(folder);
    environment.ffmpeg = options_.ffmpeg;
    const v1::JobSpec& spec = task_.assignment().spec();
    if (options_.plugins != nullptr) environment.plugins = options_.plugins->Identities();
    std::optional<Registry> registry;
    if (!spec.plugins().empty()) {
      PLUMBLINE_ASSIGN_OR_RETURN(registry, LoadPlugins(spec, &environment));
      environment.context.registry = &*registry;
    }
    if (!spec.has_generation() && !spec.has_diagnostic() && !spec.has_decode()) {
      return job(spec, environment);
    }
    steps::RemoteStepStore steps(options_.coordinator, &task_, options_.clock, options_.step_cache,
                                 options_.backoff_seed);
    environment.generation = MakeGenerationEnvironment(&steps);
    return job(spec, environment);
  }

  // The worker's implementations and those that the task brings.
  absl::StatusOr<Registry> LoadPlugins(const v1::JobSpec& spec, jobs::JobEnvironment* environment) {
    if (!options_.takes_uploaded_plugins || options_.plugins == nullptr) {
      return absl::FailedPreconditionError("plugins: this worker loads no uploaded plug-ins");
    }
    options_.before_uploaded_plugins();
    Plugins plugins = *options_.plugins;
    for (int i = 0; i < spec.plugins_size(); ++i) {
      const std::string field = absl::StrCat("plugins[", i, "]");
      if (!spec.plugins(i).has_artifact()) {
        return FieldError(field, "is no uploaded file", "artifact");
      }
      PLUMBLINE_ASSIGN_OR_RETURN(const std::string path,
                                 environment->fetch(spec.plugins(i), field));
      const absl::Status added = plugins.Add(path);
      // What only a disk can be blamed for may be right elsewhere.
      if (absl::IsUnavailable(added)) return AnnotateStatus(added, field);
      if (!added.ok()) return FieldError(field, added.message());
    }
    environment->plugins = plugins.Identities();
    return plugins.MakeRegistry();
  }

  jobs::GenerationEnvironment MakeGenerationEnvironment(steps::StepStore* steps) {
    const v1::Assignment& assignment = task_.assignment();
    jobs::GenerationEnvironment generation;
    generation.steps = steps;
    generation.attempt = assignment.lease().attempt();
    generation.fencing_token = task_.fencing_token();
    if (assignment.has_gate_identity()) generation.gate_identity = assignment.gate_identity();
    generation.against_run = assignment.against_run();
    generation.sensitivity.assign(assignment.sensitivity().begin(), assignment.sensitivity().end());
    generation.on_run = [this](const std::string& run) { task_.SetRun(run); };
    generation.on_step = [this](const v1::StepEvent& step) {
      options_.metrics->StepDone(step.origin(), absl::Seconds(step.seconds()));
      v1::JobEvent event;
      *event.mutable_step() = step;
      KeepError(reporter_.Report(std::move(event)));
    };
    generation.on_latent_drift = [this](const v1::LatentDrift& drift) {
      v1::JobEvent event;
      *event.mutable_latent_drift() = drift;
      KeepError(reporter_.Report(std::move(event)));
    };
    generation.on_sensitivity = [this](const v1::SensitivityCheck& check) {
      v1::JobEvent event;
      *event.mutable_sensitivity() = check;
      KeepError(reporter_.Report(std::move(event)));
    };
    generation.on_preview = [this](const v1::PreviewEvent& preview) {
      v1::JobEvent event;
      *event.mutable_preview() = preview;
      KeepError(reporter_.Report(std::move(event)));
    };
    generation.should_yield = [this] { return task_.asked_to_yield(); };
    return generation;
  }

  void KeepError(const absl::Status& status) {
    if (status.ok() || !event_error_.ok()) return;
    // Whatever the coordinator has against an event is no fault of the request.
    event_error_ = absl::IsCancelled(status)
                       ? status
                       : absl::UnknownError(absl::StrCat("events refused: ", status.message()));
  }

  // Calls the coordinator until it answers, or nothing may be written any more.
  template <typename Call>
  auto Retry(Call call) {
    return RetryWhileTransient(options_.clock,
                               Backoff(kFirstRetry, kLongestRetry, options_.backoff_seed),
                               *task_.writes(), std::move(call));
  }

  absl::Status StoreFiles(jobs::JobResult* result) {
    for (const jobs::OutputFile& file : result->files) {
      PLUMBLINE_ASSIGN_OR_RETURN(const MappedFile mapped, MappedFile::Open(file.path));
      v1::PutArtifactRequest::Header header;
      header.set_task(task_.name());
      header.set_fencing_token(task_.fencing_token());
      header.set_role(file.role);
      header.set_file_name(file.file_name);
      header.set_media_type(file.media_type);
      const absl::Duration timeout =
          kPutOverhead +
          absl::Seconds(static_cast<int64_t>(mapped.bytes().size()) / kLeastBytesPerSecond);
      PLUMBLINE_ASSIGN_OR_RETURN(*result->report.add_artifacts(), Retry([&] {
        return options_.coordinator->PutArtifact(header, mapped.bytes(), {timeout, task_.writes()});
      }));
    }
    return absl::OkStatus();
  }

  AttemptOutcome Succeed(v1::TaskReport report) {
    if (report.ByteSizeLong() > kMaxReportBytes) {
      return Fail(
          absl::InternalError(absl::StrCat("the report takes ", report.ByteSizeLong(),
                                           " bytes; at most ", kMaxReportBytes, " can be sent")));
    }
    v1::CompleteTaskRequest request;
    *request.mutable_report() = std::move(report);
    const absl::Status status = Complete(&request);
    if (status.ok()) return AttemptOutcome::kSucceeded;
    if (Lost(status)) return AttemptOutcome::kLeaseLost;
    return Fail(AnnotateStatus(status, "the coordinator refused the report"));
  }

  AttemptOutcome Fail(const absl::Status& error) {
    Log(LogLevel::kWarning, "task failed", {{"task", task_.name()}, {"error", error.ToString()}});
    v1::CompleteTaskRequest request;
    *request.mutable_failure() = jobs::MakeTaskFailure(error);
    const absl::Status status = Complete(&request);
    if (!status.ok() && !Lost(status)) {
      // It has learned nothing: it queues the task again when the lease expires.
      Log(LogLevel::kError, "failure refused",
          {{"task", task_.name()}, {"error", status.ToString()}});
    }
    if (GetReason(error) == plugin::kDeviceFaultReason) options_.on_broken_device();
    if (Lost(status)) return AttemptOutcome::kLeaseLost;
    return absl::IsCancelled(error) ? AttemptOutcome::kCancelled : AttemptOutcome::kFailed;
  }

  // Ends the attempt, its events first.
  absl::Status Complete(v1::CompleteTaskRequest* request) {
    const absl::StatusOr<int64_t> last_event = reporter_.Flush();
    // Events that were refused are no reason to leave the task unfinished.
    request->set_last_client_sequence(last_event.ok() ? *last_event : 0);
    request->set_task(task_.name());
    request->set_fencing_token(task_.fencing_token());
    CrashPoint(CrashPlace::kWorkerBeforeComplete);
    return Retry([&] {
      return options_.coordinator->CompleteTask(*request, {absl::Seconds(20), task_.writes()});
    });
  }

  AttemptOutcome Release(absl::string_view message) {
    return ReleaseFor(options_.release_reason(), message);
  }

  AttemptOutcome ReleaseFor(v1::ReleaseReason reason, absl::string_view message,
                            int64_t needed_memory_bytes = 0) {
    // What it did counts, although it did not end. The lease is lost where this fails for good.
    reporter_.Flush().IgnoreError();
    v1::ReleaseTaskRequest request;
    request.set_task(task_.name());
    request.set_fencing_token(task_.fencing_token());
    request.set_reason(reason);
    request.set_message(std::string(message));
    request.set_needed_memory_bytes(needed_memory_bytes);
    const absl::Status status = Retry([&] {
      return options_.coordinator->ReleaseTask(request, {absl::Seconds(20), task_.writes()});
    });
    if (Lost(status)) return AttemptOutcome::kLeaseLost;
    if (!status.ok()) {
      Log(LogLevel::kError, "release refused",
          {{"task", task_.name()}, {"error", status.ToString()}});
    }
    return AttemptOutcome::kReleased;
  }

  bool Lost(const absl::Status& status) {
    return IsLeaseLost(status) || task_.stop_reason() == StopReason::kLeaseLost;
  }

  const TaskRunnerOptions& options_;
  HeldTask& task_;
  EventReporter reporter_;
  absl::Status event_error_;  // The first, of the job's thread.
};

TaskRunner::TaskRunner(TaskRunnerOptions options, JobFunction job)
    : options_(std::move(options)), job_(std::move(job)) {}

AttemptOutcome TaskRunner::Run(HeldTask* task) {
  const std::string kind = KindOf(task->assignment().spec());
  const int attempt = task->assignment().lease().attempt();
  // "jobs/{job}/tasks/{task}"
  const std::vector<std::string> name = absl::StrSplit(task->name(), '/');
  const std::string job = name.size() > 1 ? absl::StrCat(name[0], "/", name[1]) : "";
  Log(LogLevel::kInfo, "task started",
      {{"job", job},
       {"task", task->name()},
       {"attempt", attempt},
       {"kind", kind},
       {"title", task->assignment().title()},
       {"fencing_token", task->fencing_token()}});
  options_.metrics->AttemptStarted(kind);
  options_.device->ResetHighWater();
  const absl::Time start = options_.clock->Now();
  const AttemptOutcome outcome = Attempt(options_, task).Run(job_);
  const absl::Duration duration = options_.clock->Now() - start;
  options_.metrics->AttemptEnded(kind, outcome, duration);
  options_.metrics->SetDeviceMemory(options_.device->MemoryBytes(),
                                    options_.device->HighWaterBytes());
  Log(LogLevel::kInfo, "task ended",
      {{"job", job},
       {"task", task->name()},
       {"attempt", attempt},
       {"outcome", AttemptOutcomeName(outcome)},
       {"seconds", absl::ToDoubleSeconds(duration)},
       {"device_bytes", options_.device->HighWaterBytes()}});
  options_.input_files->Trim();
  return outcome;
}

}  // namespace plumbline::worker
