#include "client/command_line.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "common/version.h"

namespace plumbline::client {
namespace {

constexpr char kDescription[] =
    "Validates kernels of the MiniMax-H3 diffusion transformer: node by node, forward and\n"
    "backward, against the provider and a golden.";

constexpr char kFooter[] =
    "Examples:\n"
    "  plumbline submit block-replay --checkpoint=synthetic:tiny --layouts=tiny --backward --wait\n"
    "  plumbline submit block-replay --checkpoint=H3 --inject=qk-heads --wait     (must fail)\n"
    "  plumbline jobs list\n"
    "  plumbline report JOB --format=json\n"
    "  plumbline compare A.safetensors B.safetensors\n"
    "\n"
    "Without --server and PLUMBLINE_SERVER the command runs server and worker in its own process,\n"
    "with what they keep in PLUMBLINE_STATE_DIR, else XDG_STATE_HOME/plumbline, else\n"
    "~/.local/state/plumbline.\n"
    "\n"
    "Exit status: 0 gate passed, 1 gate failed, 2 bad request, 3 the service failed.";

constexpr char kLayoutForm[] = "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES";

// Builds the tree of commands over one CommandLine, which must outlive it.
class Parser {
 public:
  explicit Parser(CommandLine* line) : app_(kDescription, "plumbline"), line_(line) {
    app_.footer(kFooter);
    app_.set_version_flag("--version", absl::StrCat("plumbline ", kVersion));
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(36);
    AddServerFlags();
    AddSubmit();
    AddJobs();
    AddReport();
    AddWorkers();
    AddFaults();
    AddCompare();
    AddLayout();
  }

  absl::StatusOr<std::variant<CommandLine, HelpText>> Parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return HelpText{app_.help()};
    } catch (const CLI::CallForVersion& version) {
      return HelpText{absl::StrCat(version.what(), "\n")};
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(absl::StrCat(error.what(), "\nSee ", HelpCommand()));
    }
    line_->command = make_command_();
    return *line_;
  }

 private:
  // A command whose flags are bound to the T that this returns; running it makes that the result.
  template <typename T>
  T* AddCommand(CLI::App* parent, const char* name, const char* description, CLI::App** command) {
    *command = parent->add_subcommand(name, description);
    (*command)->fallthrough();
    auto flags = std::make_shared<T>();
    T* const raw = flags.get();
    (*command)->callback([this, flags] { make_command_ = [flags] { return Command(*flags); }; });
    return raw;
  }

  CLI::App* AddGroup(const char* name, const char* description) {
    CLI::App* group = app_.add_subcommand(name, description);
    group->require_subcommand(1);
    group->fallthrough();
    return group;
  }

  // May be given several times, one value each.
  static CLI::Option* AddRepeated(CLI::App* command, const char* flag,
                                  std::vector<std::string>* values, const char* description) {
    return command->add_option(flag, *values, description)->allow_extra_args(false);
  }

  void AddServerFlags() {
    ServerFlags& flags = line_->server;
    app_.add_option("--server", flags.server, "HOST:PORT of the coordinator, or unix:PATH")
        ->envname("PLUMBLINE_SERVER");
    app_.add_option("--token-file", flags.token_file, "File that holds the bearer token");
    app_.add_option("--ca", flags.ca, "PEM file: who may sign the server's certificate; TLS");
    app_.add_option("--cert", flags.cert, "PEM file: this client's certificate, with --key");
    app_.add_option("--key", flags.key, "PEM file: this client's private key");
  }

  static void AddJobFlags(CLI::App* command, JobFlags* flags) {
    command->add_option("--report", flags->report,
                        "Write the report to this file as JSON (waits for it)");
    AddRepeated(command, "--label", &flags->labels, "K=V, for people and fair share; repeatable");
    command->add_option("--priority", flags->priority, "-100 to 100, larger first; default 0");
  }

  static void AddFormat(CLI::App* command, std::string* format) {
    *format = "text";
    command->add_option("--format", *format, "text or json")
        ->check(CLI::IsMember({"text", "json"}));
  }

  void AddSubmit() {
    CLI::App* group = AddGroup("submit", "Make a job: block-replay");
    CLI::App* command = nullptr;
    auto* flags = AddCommand<SubmitBlockReplay>(
        group, "block-replay", "Replay one transformer block, node by node", &command);
    command
        ->add_option("--checkpoint", flags->checkpoint,
                     "Folder under the worker's roots, or synthetic:NAME[:SEED] with NAME\n"
                     "released, tiny or a configuration file")
        ->required();
    command->add_option("--block", flags->block, "Index of the block; default 0");
    command->add_option("--layouts", flags->layouts, "Names: tiny, small, medium, released")
        ->delimiter(',')
        ->allow_extra_args(false);
    AddRepeated(command, "--layout", &flags->layout,
                "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES; repeatable");
    command->add_option("--composition", flags->composition,
                        "What is judged, e.g. candidate+provider:attention;\ndefault candidate");
    command->add_flag("--backward", flags->backward, "Also replay the backward pass");
    command->add_option("--inputs", flags->inputs, "Captured inputs: FILE or worker:PATH");
    command->add_option("--golden", flags->golden, "Captured golden: FILE or worker:PATH");
    AddRepeated(command, "--provider", &flags->providers,
                "NAME=FILE or NAME=worker:PATH, a captured provider; repeatable");
    command->add_option("--candidate", flags->candidate, "Captured candidate: FILE or worker:PATH");
    command->add_option("--inject", flags->inject,
                        "Fault to put into the candidate: see `plumbline faults`");
    command->add_option("--save-tensors", flags->save_tensors,
                        "Write the composition's tensors to this file (waits for them);\n"
                        "of several layouts, to one file each: NAME-LAYOUT.safetensors");
    command->add_flag("--wait", flags->job.wait, "Wait for the report and print it");
    AddJobFlags(command, &flags->job);
  }

  void AddJobs() {
    CLI::App* group = AddGroup("jobs", "Look at jobs and steer them");
    CLI::App* command = nullptr;

    auto* list = AddCommand<ListJobs>(group, "list", "List jobs, newest first", &command);
    command->add_option("--kind", list->kinds, "E.g. block-replay,comparison")
        ->delimiter(',')
        ->allow_extra_args(false);
    command->add_option("--state", list->states, "queued,running,succeeded,failed,cancelled")
        ->delimiter(',')
        ->allow_extra_args(false);
    AddRepeated(command, "--label", &list->labels, "K=V that jobs must carry; repeatable");
    command->add_option("--limit", list->limit, "Jobs at most; default 50")
        ->check(CLI::PositiveNumber);

    auto* get = AddCommand<GetJob>(group, "get", "Show one job with its tasks", &command);
    command->add_option("JOB", get->job, "Name of the job")->required();
    AddFormat(command, &get->format);

    auto* watch = AddCommand<WatchJobCommand>(
        group, "watch", "Print a job's events until it ends; exit status by its verdict", &command);
    command->add_option("JOB", watch->job, "Name of the job")->required();
    command->add_option("--after", watch->after, "Only events after this sequence number")
        ->check(CLI::NonNegativeNumber);
    AddFormat(command, &watch->format);

    auto* cancel = AddCommand<CancelJob>(group, "cancel", "Cancel a job", &command);
    command->add_option("JOB", cancel->job, "Name of the job")->required();
    command->add_option("--reason", cancel->reason, "For a person; kept with the job");

    auto* compare =
        AddCommand<CompareJobs>(group, "compare", "Two jobs' reports side by side", &command);
    command->add_option("A", compare->a, "Name of a job")->required();
    command->add_option("B", compare->b, "Name of the job to compare with")->required();
    AddFormat(command, &compare->format);

    auto* remove = AddCommand<DeleteJobs>(
        group, "delete", "Delete finished jobs with their events, reports and files", &command);
    command->add_option("JOB", remove->jobs, "Names of jobs")->required();
  }

  void AddReport() {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<ShowReport>(
        &app_, "report", "Print a job's report; exit status by its verdict", &command);
    command->add_option("JOB", flags->job, "Name of the job")->required();
    AddFormat(command, &flags->format);
  }

  void AddWorkers() {
    CLI::App* group = AddGroup("workers", "Look at workers and drain them");
    CLI::App* command = nullptr;
    AddCommand<ListWorkers>(group, "list", "List workers", &command);
    auto* drain = AddCommand<DrainWorker>(
        group, "drain", "Let a worker finish or hand back its task, and end", &command);
    command->add_option("WORKER", drain->worker, "Name of the worker")->required();
    command->add_option("--reason", drain->reason, "For a person");
  }

  void AddFaults() {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<ListFaults>(
        &app_, "faults", "List negative controls: NAME, tab, place, tab, sentence", &command);
    command->add_option("--job", flags->job_kind, "Only those of this kind of job");
  }

  void AddCompare() {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<CompareFiles>(
        &app_, "compare", "Every measure of every tensor of two safetensors files", &command);
    command->add_option("A", flags->a, "FILE or worker:PATH, judged")->required();
    command->add_option("B", flags->b, "FILE or worker:PATH, the reference")->required();
    AddJobFlags(command, &flags->job);
  }

  void AddLayout() {
    CLI::App* command = nullptr;
    auto* flags =
        AddCommand<BuildLayout>(&app_, "layout", "Build the tensors of a packed layout", &command);
    command->add_option("--layout", flags->layout, absl::StrCat(kLayoutForm, ", or a name"))
        ->required();
    command->add_option("--save-tensors", flags->save_tensors, "safetensors file to write")
        ->required();
    AddJobFlags(command, &flags->job);
  }

  // "plumbline jobs get --help", of the command that was being parsed.
  std::string HelpCommand() const {
    std::string words = "plumbline";
    const CLI::App* app = &app_;
    while (!app->get_subcommands().empty()) {
      app = app->get_subcommands().front();
      absl::StrAppend(&words, " ", app->get_name());
    }
    return absl::StrCat(words, " --help");
  }

  CLI::App app_;
  CommandLine* const line_;
  std::function<Command()> make_command_;
};

}  // namespace

absl::StatusOr<std::variant<CommandLine, HelpText>> ParseCommandLine(int argc,
                                                                     const char* const* argv) {
  CommandLine line;
  return Parser(&line).Parse(argc, argv);
}

}  // namespace plumbline::client
