#include "client/job_text.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/measure_text.h"
#include "client/table.h"
#include "client/verdict_text.h"

namespace plumbline::client {
namespace {

using Align = Table::Align;

Ink InkOfState(v1::JobState state) {
  switch (state) {
    case v1::JOB_STATE_FAILED:
      return Ink::kBad;
    case v1::JOB_STATE_CANCELLED:
      return Ink::kNotice;
    default:
      return Ink::kPlain;
  }
}

template <typename Map>
std::string LabelText(const Map& labels) {
  // Sorted: a map of the API has no order of its own.
  std::vector<std::string> pairs;
  for (const auto& [key, value] : labels) pairs.push_back(absl::StrCat(key, "=", value));
  std::sort(pairs.begin(), pairs.end());
  return absl::StrJoin(pairs, ",");
}

std::string ProgressText(const v1::Progress& progress) {
  if (progress.total() == 0) return "-";
  return absl::StrCat(progress.done(), "/", progress.total(), " ", progress.unit());
}

std::string WordOrDash(absl::string_view text) { return text.empty() ? "-" : std::string(text); }

std::string AttemptText(const v1::Attempt& attempt) {
  std::string text = absl::StrCat("attempt ", attempt.number(), " on ", attempt.worker());
  if (attempt.end() != v1::ATTEMPT_END_UNSPECIFIED) {
    std::string end = v1::AttemptEnd_Name(attempt.end()).substr(sizeof("ATTEMPT_END_") - 1);
    absl::StrAppend(&text, " ", absl::AsciiStrToLower(end));
  }
  if (!attempt.message().empty()) absl::StrAppend(&text, ": ", attempt.message());
  return text;
}

std::string DeviceText(const v1::Device& device) {
  return absl::StrCat(device.kind() == v1::DEVICE_KIND_CUDA ? "cuda" : "cpu", " ",
                      device.product());
}

std::string WorkerStateText(v1::WorkerState state) {
  return absl::AsciiStrToLower(
      absl::string_view(v1::WorkerState_Name(state)).substr(sizeof("WORKER_STATE_") - 1));
}

// What happened, without sequence number, task and time.
std::string EventBody(const v1::JobEvent& event) {
  switch (event.body_case()) {
    case v1::JobEvent::kJobState: {
      std::string text = absl::StrCat("job ", JobStateText(event.job_state().state()));
      if (!event.job_state().message().empty()) {
        absl::StrAppend(&text, ": ", event.job_state().message());
      }
      return text;
    }
    case v1::JobEvent::kTaskState: {
      const v1::TaskStateEvent& state = event.task_state();
      std::string text = absl::StrCat(state.title(), " ", JobStateText(state.state()));
      if (!state.message().empty()) absl::StrAppend(&text, ": ", state.message());
      if (!state.waiting_reason().message().empty()) {
        absl::StrAppend(&text, ": ", state.waiting_reason().message());
      }
      if (!state.verdict().sentence().empty()) {
        absl::StrAppend(&text, ": ", state.verdict().sentence());
      }
      return text;
    }
    case v1::JobEvent::kAttemptChange:
      return AttemptText(event.attempt_change());
    case v1::JobEvent::kReportReady:
      return absl::StrCat("report ", event.report_ready().name(), ": ",
                          event.report_ready().verdict().sentence());
    case v1::JobEvent::kAttemptSuperseded:
      return absl::StrCat("attempt ", event.attempt_superseded().superseded_attempt(),
                          " is void: events ", event.attempt_superseded().first_sequence(), " to ",
                          event.attempt_superseded().last_sequence());
    case v1::JobEvent::kArtifact:
      return absl::StrCat("file ", event.artifact().file_name(), " as ", event.artifact().name(),
                          ", ", BytesText(event.artifact().size_bytes()));
    case v1::JobEvent::kProgress:
      return absl::StrCat(event.progress().activity(), " ", ProgressText(event.progress()));
    case v1::JobEvent::kNode: {
      const v1::NodeEvent& node = event.node();
      std::string text = absl::StrCat(
          node.layout(), " ", node.entry(),
          node.feed() == v1::FEED_ISOLATED ? " isolated" : " chained", " against ",
          node.comparison().reference(), ": ",
          node.comparison().bitwise_equal()
              ? std::string("bitwise equal")
              : absl::StrCat("relative L2 ", MeasureText(node.comparison().relative_l2())));
      if (node.failed_gates_size() > 0) {
        absl::StrAppend(&text, "; fails ", absl::StrJoin(node.failed_gates(), ", "));
      }
      return text;
    }
    case v1::JobEvent::kStep: {
      const v1::StepEvent& step = event.step();
      const std::string origin =
          v1::StepOrigin_Name(step.origin()).substr(sizeof("STEP_ORIGIN_") - 1);
      return absl::StrCat("seed ", step.seed(), " step ", step.step(), " of ", step.total(), " ",
                          absl::AsciiStrToLower(origin), " in ",
                          MillisecondsText(step.seconds() * 1e3));
    }
    case v1::JobEvent::kLatentDrift:
      return absl::StrCat("seed ", event.latent_drift().seed(), " after step ",
                          event.latent_drift().step(), ": drift of video ",
                          MeasureText(event.latent_drift().video()), ", audio ",
                          MeasureText(event.latent_drift().audio()));
    case v1::JobEvent::kSensitivity:
      return absl::StrCat("changing ", event.sensitivity().input(), " changes video by ",
                          MeasureText(event.sensitivity().video_change()), ", audio by ",
                          MeasureText(event.sensitivity().audio_change()),
                          event.sensitivity().passed() ? "" : ": FAILED");
    case v1::JobEvent::kPreview:
      return absl::StrCat("seed ", event.preview().seed(), " after step ", event.preview().step(),
                          ": picture of ", BytesText(event.preview().png().size()));
    case v1::JobEvent::kLog:
      return event.log().message();
    case v1::JobEvent::kRuleFrozen:
      return absl::StrCat("rule made of ", event.rule_frozen().providers(), " providers: k ",
                          absl::StrFormat("%.1f", event.rule_frozen().k()), ", sha256 ",
                          event.rule_frozen().sha256().substr(0, 16));
    case v1::JobEvent::BODY_NOT_SET:
      break;
  }
  return "event of another version; see --format=json";
}

// The word of a verdict; of a job or task that has not ended yet it has none.
Cell VerdictCell(v1::JobState state, const v1::Verdict& verdict) {
  const bool ended = state == v1::JOB_STATE_SUCCEEDED || state == v1::JOB_STATE_FAILED ||
                     state == v1::JOB_STATE_CANCELLED;
  if (!ended || verdict.outcome() == v1::OUTCOME_UNSPECIFIED) return Cell("-", Ink::kFaint);
  return Cell(OutcomeText(verdict.outcome()), InkOf(verdict.outcome()));
}

}  // namespace

std::string JobTableText(const std::vector<v1::Job>& jobs, const Style& style) {
  Table table(
      {{"job"}, {"kind"}, {"state"}, {"verdict"}, {"progress"}, {"created (UTC)"}, {"labels"}});
  for (const v1::Job& job : jobs) {
    table.AddRow({Cell(job.name()), Cell(JobKindText(job.kind())),
                  Cell(JobStateText(job.state()), InkOfState(job.state())),
                  VerdictCell(job.state(), job.verdict()), Cell(ProgressText(job.progress())),
                  Cell(TimeText(job.create_time())), Cell(LabelText(job.spec().labels()))});
  }
  return table.Render(style);
}

std::string JobText(const v1::Job& job, const Style& style) {
  std::string out;
  const auto fact = [&](absl::string_view label, absl::string_view value) {
    if (value.empty()) return;
    absl::StrAppend(&out, style.Paint(Ink::kFaint, label),
                    std::string(std::max<size_t>(1, 13 - label.size()), ' '), value, "\n");
  };
  fact("job", style.Paint(Ink::kStrong, job.name()));
  fact("kind", JobKindText(job.kind()));
  fact("state", style.Paint(InkOfState(job.state()), JobStateText(job.state())));
  fact("verdict", style.Paint(InkOf(job.verdict().outcome()), job.verdict().sentence()));
  fact("waiting", job.waiting_reason().message());
  fact("error", job.error().message());
  fact("checkpoint", job.spec().checkpoint());
  fact("composition", job.spec().composition());
  fact("inject", job.spec().inject());
  fact("labels", LabelText(job.spec().labels()));
  fact("created", TimeText(job.create_time()));
  fact("started", TimeText(job.start_time()));
  fact("ended", TimeText(job.end_time()));
  absl::StrAppend(&out, "\n");
  Table tasks({{"task"}, {"share"}, {"state"}, {"verdict"}, {"progress"}});
  for (const v1::Task& task : job.tasks()) {
    tasks.AddRow({Cell(task.name()), Cell(task.title()),
                  Cell(JobStateText(task.state()), InkOfState(task.state())),
                  VerdictCell(task.state(), task.verdict()), Cell(ProgressText(task.progress()))});
    for (const v1::Attempt& attempt : task.attempts()) {
      tasks.AddNote(absl::StrCat(style.Arrow(), " ", AttemptText(attempt)), Ink::kFaint);
    }
    if (!task.waiting_reason().message().empty()) {
      tasks.AddNote(absl::StrCat(style.Arrow(), " waiting: ", task.waiting_reason().message()),
                    Ink::kNotice);
    }
  }
  absl::StrAppend(&out, tasks.Render(style));
  if (job.artifacts_size() == 0) return out;
  Table artifacts({{"artifact"}, {"file"}, {"size", Align::kRight}});
  for (const v1::Artifact& artifact : job.artifacts()) {
    artifacts.AddRow({Cell(artifact.name()), Cell(artifact.file_name()),
                      Cell(BytesText(artifact.size_bytes()))});
  }
  return absl::StrCat(out, "\n", artifacts.Render(style));
}

bool HasLine(const v1::JobEvent& event) {
  return !event.has_preview() && !(event.has_progress() && event.progress().unit() == "steps");
}

std::string EventText(const v1::JobEvent& event, const Style& style) {
  std::string task = event.task();
  if (const size_t slash = task.rfind('/'); slash != std::string::npos) {
    task = absl::StrCat("task ", task.substr(slash + 1), "  ");
  }
  const bool failed =
      (event.has_job_state() && event.job_state().state() == v1::JOB_STATE_FAILED) ||
      (event.has_task_state() && event.task_state().state() == v1::JOB_STATE_FAILED) ||
      event.node().failed_gates_size() > 0;
  return absl::StrCat(
      style.Paint(Ink::kFaint, absl::StrCat(event.sequence(), "  ", TimeText(event.time()), "  ")),
      task, style.Paint(failed ? Ink::kBad : Ink::kPlain, EventBody(event)));
}

namespace {

// Entries of one side, "TASK: ENTRY", in their order: a line each, or one for all of a task that
// are more than a reader wants to read.
void AppendOnly(absl::string_view label,
                const google::protobuf::RepeatedPtrField<std::string>& names, std::string* out) {
  constexpr int kMostOfATask = 8;
  const auto task_of = [&](int i) {
    return absl::string_view(names[i]).substr(0, names[i].find(": "));
  };
  for (int first = 0, end = 0; first < names.size(); first = end) {
    while (end < names.size() && task_of(end) == task_of(first)) ++end;
    if (end - first > kMostOfATask) {
      absl::StrAppend(out, "  ", label, task_of(first), ": ", end - first, " entries\n");
      continue;
    }
    for (int i = first; i < end; ++i) absl::StrAppend(out, "  ", label, names[i], "\n");
  }
}

}  // namespace

std::string JobComparisonText(const v1::JobComparison& comparison, const Style& style) {
  std::string out =
      absl::StrCat("A  ", comparison.a(), "  ", comparison.verdict_a().sentence(), "\nB  ",
                   comparison.b(), "  ", comparison.verdict_b().sentence(), "\n\n");
  if (comparison.spec_differences_size() + comparison.identity_differences_size() > 0) {
    Table differences({{"asked or built differently"}, {"A"}, {"B"}});
    for (const auto& difference : comparison.spec_differences()) {
      differences.AddRow({Cell(difference.field()), Cell(WordOrDash(difference.a())),
                          Cell(WordOrDash(difference.b()))});
    }
    for (const v1::IdentityDifference& difference : comparison.identity_differences()) {
      differences.AddRow({Cell(difference.part()), Cell(WordOrDash(difference.a())),
                          Cell(WordOrDash(difference.b()))});
    }
    absl::StrAppend(&out, differences.Render(style), "\n");
  }
  Table rows(
      {{"task"}, {"entry"}, {"measure"}, {"A", Align::kRight}, {"B", Align::kRight}, {"bytes"}});
  for (const v1::JobComparison::Row& row : comparison.rows()) {
    const char* bytes = !row.has_bytes_equal() ? "-" : row.bytes_equal() ? "equal" : "differ";
    rows.AddRow({Cell(row.task()), Cell(row.entry()), Cell(row.measure()),
                 Cell(MeasureText(row.a()), row.passed_a() ? Ink::kPlain : Ink::kBad),
                 Cell(MeasureText(row.b()), row.passed_b() ? Ink::kPlain : Ink::kBad),
                 Cell(bytes)});
  }
  absl::StrAppend(&out, rows.Render(style));
  AppendOnly("only A: ", comparison.only_a(), &out);
  AppendOnly("only B: ", comparison.only_b(), &out);
  return out;
}

namespace {

// The plug-ins of all workers; nothing where there are none.
std::string PluginTableText(const std::vector<v1::Worker>& workers, const Style& style) {
  Table table({{"plug-in"}, {"worker"}, {"nodes"}, {"owner, or why it is refused"}});
  bool any = false;
  for (const v1::Worker& worker : workers) {
    for (const v1::Plugin& plugin : worker.capabilities().plugins()) {
      any = true;
      const bool usable = plugin.refused().empty();
      table.AddRow({Cell(plugin.name(), usable ? Ink::kGood : Ink::kBad), Cell(worker.name()),
                    Cell(absl::StrJoin(plugin.nodes(), ", ")),
                    Cell(usable ? plugin.owner() : plugin.refused())});
    }
  }
  return any ? absl::StrCat("\n", table.Render(style)) : "";
}

}  // namespace

std::string WorkerTableText(const std::vector<v1::Worker>& workers, const Style& style) {
  Table table({{"worker"},
               {"state"},
               {"device"},
               {"memory", Align::kRight},
               {"kernels"},
               {"tasks", Align::kRight},
               {"heard of (UTC)"}});
  for (const v1::Worker& worker : workers) {
    const v1::Device& device = worker.capabilities().device();
    table.AddRow({Cell(worker.name()),
                  Cell(WorkerStateText(worker.state()),
                       worker.state() == v1::WORKER_STATE_ACTIVE ? Ink::kGood : Ink::kNotice),
                  Cell(DeviceText(device)), Cell(BytesText(device.memory_bytes())),
                  Cell(worker.capabilities().kernel_identity().sha256().substr(0, 12)),
                  Cell(absl::StrCat(worker.leases_size())),
                  Cell(TimeText(worker.last_heartbeat_time()))});
    if (!worker.labels().empty()) {
      table.AddNote(absl::StrCat(style.Arrow(), " ", LabelText(worker.labels())), Ink::kFaint);
    }
  }
  return absl::StrCat(table.Render(style), PluginTableText(workers, style));
}

}  // namespace plumbline::client
