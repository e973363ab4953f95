#include "client/slurm_request.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr int kMostWorkers = 100'000;
// Slurm counts the seconds of --signal in 16 bits.
constexpr int kMostNoticeSeconds = 65'535;

// What the job script relies on, in all of their forms.
constexpr absl::string_view kOwnSbatchOptions[] = {
    "--array",  "-a", "--requeue", "--no-requeue", "--signal", "--open-mode",
    "--output", "-o", "--wrap",    "--job-name",   "-J",       "--parsable"};
// What decides which GPUs a job gets, in place of --gres.
constexpr absl::string_view kGpuOptions[] = {
    "--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "-G", "--gres"};
// What the job script and the command itself give to plumbline-worker.
constexpr absl::string_view kOwnWorkerFlags[] = {"--server", "--state-dir",
                                                 "--preempted-exit-status"};

bool HasControlCharacter(absl::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_iscntrl(static_cast<unsigned char>(c)); });
}

// Whether `written` is this option: "--array=1", "-a1"; or "--arr=1", as getopt_long abbreviates.
bool IsOption(absl::string_view written, absl::string_view option) {
  if (!absl::StartsWith(option, "--")) {
    return absl::StartsWith(written, option);
  }
  const absl::string_view name = written.substr(0, written.find('='));
  // An abbreviation is the program's to resolve where it is short enough to be several options.
  constexpr size_t kShortest = sizeof("--xxx") - 1;
  return name == option || (name.size() >= kShortest && absl::StartsWith(option, name));
}

template <size_t kCount>
bool IsAnyOption(absl::string_view written, const absl::string_view (&options)[kCount]) {
  return std::any_of(options, options + kCount,
                     [&](absl::string_view option) { return IsOption(written, option); });
}

absl::Status CheckPassedOptions(const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    if (option.size() < 2 || option[0] != '-' || option == "--" || option == "-") {
      return FieldError("--sbatch", absl::StrCat(Quoted(option), " is no option of sbatch"),
                        "one option with its value: --sbatch=--constraint=h200, --sbatch=-wnode1");
    }
    if (IsAnyOption(option, kOwnSbatchOptions)) {
      return FieldError("--sbatch",
                        absl::StrCat(Quoted(option), " is what the workers' job script relies on"),
                        "see plumbline cluster slurm submit --help for flags of that meaning");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckWorkerFlags(const std::vector<std::string>& flags) {
  if (!flags.empty() && !absl::StartsWith(flags[0], "-")) {
    return FieldError("FLAG", absl::StrCat(Quoted(flags[0]), " is no flag of plumbline-worker"),
                      "after --: --checkpoint-root=DIR, --token-file=FILE, ...");
  }
  for (const std::string& flag : flags) {
    const absl::string_view name = absl::string_view(flag).substr(0, flag.find('='));
    for (const absl::string_view own : kOwnWorkerFlags) {
      if (name != own) continue;
      return FieldError("FLAG", absl::StrCat(Quoted(flag), " is given to every worker already"),
                        own == "--server"      ? "--server of this command, before the --"
                        : own == "--state-dir" ? "--state-root of this command, before the --"
                                               : "any other flag of plumbline-worker");
    }
  }
  return absl::OkStatus();
}

// The seconds of a time limit as sbatch takes it: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours[:minutes[:seconds]]. Nothing for what only Slurm can judge.
std::optional<int64_t> TimeLimitSeconds(absl::string_view time) {
  const std::vector<absl::string_view> halves = absl::StrSplit(time, absl::MaxSplits('-', 1));
  std::vector<int64_t> numbers;
  for (const absl::string_view part : absl::StrSplit(halves.back(), ':')) {
    uint32_t number;
    if (!absl::SimpleAtoi(part, &number)) return std::nullopt;
    numbers.push_back(number);
  }
  if (numbers.size() > 3) return std::nullopt;
  int64_t days = 0;
  if (halves.size() == 2) {
    uint32_t number;
    if (!absl::SimpleAtoi(halves[0], &number)) return std::nullopt;
    days = number;
    numbers.resize(3, 0);  // Hours come first.
  } else {
    if (numbers.size() < 3) numbers.insert(numbers.begin(), 0);
    numbers.resize(3, 0);  // Minutes did.
  }
  return ((days * 24 + numbers[0]) * 60 + numbers[1]) * 60 + numbers[2];
}

// A file name pattern of Slurm's that stands for `path` itself.
absl::StatusOr<std::string> OutputPattern(const std::string& path) {
  if (absl::StrContains(path, '\\') || HasControlCharacter(path)) {
    return FieldError("--log-dir",
                      absl::StrCat(Quoted(path), " is nothing that Slurm can write to"),
                      "a folder's path without backslashes and control characters");
  }
  return absl::StrReplaceAll(path, {{"%", "%%"}});
}

absl::StatusOr<std::string> JobList(const std::vector<std::string>& jobs) {
  for (const std::string& job : jobs) {
    const std::vector<absl::string_view> parts = absl::StrSplit(job, '_');
    const bool is_job =
        parts.size() <= 2 && std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
          return !part.empty() && part.size() <= 18 &&
                 std::all_of(part.begin(), part.end(), [](char c) {
                   return absl::ascii_isdigit(static_cast<unsigned char>(c));
                 });
        });
    if (!is_job) {
      return FieldError("JOB", absl::StrCat(Quoted(job), " is no job of Slurm's"),
                        "the number that submit printed, e.g. 123, or one worker of it, 123_0");
    }
  }
  return absl::StrJoin(jobs, ",");
}

}  // namespace

absl::StatusOr<std::vector<std::string>> SbatchCommand(const SubmitSlurmWorkers& command,
                                                       absl::string_view server,
                                                       const std::string& script) {
  // First: who wrote --server behind the -- is to be told so.
  PLUMBLINE_RETURN_IF_ERROR(CheckWorkerFlags(command.worker_flags));
  if (server.empty()) {
    return FieldError("--server", "is not set: workers need a coordinator that every node reaches",
                      "HOST:PORT");
  }
  if (command.workers < 1 || command.workers > kMostWorkers) {
    return FieldError("--workers", absl::StrCat("is ", command.workers),
                      absl::StrCat("1 to ", kMostWorkers));
  }
  if (command.notice_seconds < 1 || command.notice_seconds > kMostNoticeSeconds) {
    return FieldError("--notice", absl::StrCat("is ", command.notice_seconds),
                      absl::StrCat("1 to ", kMostNoticeSeconds, " seconds"));
  }
  // 0 is no limit.
  const int64_t limit_seconds = TimeLimitSeconds(command.time).value_or(0);
  if (limit_seconds > 0 && limit_seconds <= command.notice_seconds) {
    return FieldError("--time",
                      absl::StrCat("is ", limit_seconds, " seconds, and a worker is told to end ",
                                   command.notice_seconds, " seconds before them"),
                      "more than --notice");
  }
  if (command.name.empty() || HasControlCharacter(command.name)) {
    return FieldError("--name", absl::StrCat(Quoted(command.name), " is no name for a job"),
                      "1 or more characters, none of them a control character");
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckPassedOptions(command.sbatch));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string logs, OutputPattern(command.log_dir));

  // The options that are passed on come first: one that lacks its value then takes an option of
  // ours for it, which sbatch refuses, and never the script.
  std::vector<std::string> words = {"sbatch"};
  words.insert(words.end(), command.sbatch.begin(), command.sbatch.end());
  const auto add = [&words](absl::string_view option, absl::string_view value) {
    if (!value.empty()) words.push_back(absl::StrCat(option, "=", value));
  };
  add("--partition", command.partition);
  add("--account", command.account);
  add("--qos", command.qos);
  add("--time", command.time);
  const bool chooses_gpus =
      std::any_of(command.sbatch.begin(), command.sbatch.end(),
                  [](const std::string& option) { return IsAnyOption(option, kGpuOptions); });
  add("--gres", command.gres.empty() && !chooses_gpus ? "gpu:1" : command.gres);
  words.emplace_back("--parsable");
  add("--job-name", command.name);
  add("--array", absl::StrCat("0-", command.workers - 1));
  words.emplace_back("--requeue");
  add("--open-mode", "append");
  add("--signal", absl::StrCat("B:TERM@", command.notice_seconds));
  add("--output", absl::StrCat(logs, "/plumbline-%A_%a.log"));
  words.insert(words.end(), {script, command.worker, command.state_root});
  add("--server", server);
  words.insert(words.end(), command.worker_flags.begin(), command.worker_flags.end());
  return words;
}

std::string SlurmLogPattern(const SubmitSlurmWorkers& command, absl::string_view job) {
  return absl::StrCat(command.log_dir, "/plumbline-", job, "_*.log");
}

absl::StatusOr<std::string> ParseSbatchOutput(absl::string_view output) {
  const absl::string_view last = absl::StripAsciiWhitespace(output);
  const std::string job(last.substr(0, last.find(';')));
  if (job.empty() || !JobList({job}).ok()) {
    return absl::InternalError(absl::StrCat("sbatch printed no job: ", Quoted(output)));
  }
  return job;
}

absl::StatusOr<std::vector<std::string>> SqueueCommand(const ShowSlurmWorkers& command) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string jobs, JobList(command.jobs));
  std::vector<std::string> words = {
      "squeue", "--noheader", "--array",
      "--Format=JobArrayID:|,State:|,Partition:|,NodeList:|,RestartCnt:|,Reason:|"};
  if (jobs.empty()) {
    words.insert(words.end(), {"--me", absl::StrCat("--name=", command.name)});
  } else {
    words.push_back(absl::StrCat("--jobs=", jobs));
  }
  return words;
}

absl::StatusOr<std::vector<std::string>> ScancelCommand(const CancelSlurmWorkers& command) {
  PLUMBLINE_RETURN_IF_ERROR(JobList(command.jobs).status());
  // Without it scancel says nothing of a job that there is not, and ends with 0.
  std::vector<std::string> words = {"scancel", "--verbose"};
  words.insert(words.end(), command.jobs.begin(), command.jobs.end());
  return words;
}

std::vector<SlurmWorkerRow> ParseSqueueOutput(absl::string_view output) {
  std::vector<SlurmWorkerRow> rows;
  for (const absl::string_view line : absl::StrSplit(output, '\n', absl::SkipWhitespace())) {
    std::vector<std::string> cells = absl::StrSplit(line, '|');
    if (cells.size() < 6) continue;
    for (std::string& cell : cells) cell = std::string(absl::StripAsciiWhitespace(cell));
    rows.push_back(
        {cells[0], cells[1], cells[2], cells[3], cells[4], cells[5] == "None" ? "" : cells[5]});
  }
  return rows;
}

std::string ShellText(const std::vector<std::string>& words) {
  std::vector<std::string> quoted;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
             absl::StrContains("-_=+./:,@%", c);
    });
    quoted.push_back(
        is_plain ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  }
  return absl::StrJoin(quoted, " ");
}

}  // namespace plumbline::client
