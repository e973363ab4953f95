#include "client/command_line.h"

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/checkpoint_flags.h"
#include "client/generation_flags.h"
#include "client/slurm_flags.h"
#include "common/command_reference.h"
#include "common/status.h"
#include "common/utf8.h"
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
    "  plumbline submit full-model --checkpoint=synthetic:tiny --layout=tiny --wait\n"
    "  plumbline submit generation --checkpoint=H3 --contract=contract.json \\\n"
    "      --conditioning=prompt.safetensors --gate=JOB\n"
    "  plumbline jobs list\n"
    "  plumbline report JOB --format=json\n"
    "  plumbline report JOB --bundle=evidence && plumbline verify evidence\n"
    "  plumbline checkpoint verify H3 --manifest=manifest.json\n"
    "  plumbline selftest\n"
    "  plumbline compare A.safetensors B.safetensors\n"
    "  plumbline compare-media A.mp4 B.mp4\n"
    "  plumbline decode --checkpoint=H3 --latents=latents.safetensors --output=video.mp4\n"
    "  plumbline cluster slurm submit --server=HOST:PORT --workers=8 --partition=PREEMPTABLE \\\n"
    "      -- --checkpoint-root=CHECKPOINTS\n"
    "\n"
    "Without --server and PLUMBLINE_SERVER the command runs server and worker in its own process,\n"
    "with what they keep in PLUMBLINE_STATE_DIR, else XDG_STATE_HOME/plumbline, else\n"
    "~/.local/state/plumbline, on the first GPU that there is or the device that PLUMBLINE_DEVICE\n"
    "names (cpu, cuda:N).\n"
    "\n"
    "Exit status: 0 gate passed, 1 gate failed, 2 bad request, 3 the service failed.";

constexpr char kLayoutForm[] = "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES";

// Builds the tree of commands over one CommandLine, which must outlive it.
class Parser {
 public:
  explicit Parser(CommandLine* line) : app_(kDescription, "plumbline"), line_(line) {
    app_.footer(kFooter);
    app_.set_version_flag("--version", absl::StrCat("plumbline ", kVersion));
    AddReferenceFlag(&app_);
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(36);
    AddServerFlags();
    AddSubmit();
    AddJobs();
    AddReport();
    AddWorkers();
    AddRuns();
    AddFaults();
    AddToken();
    AddCluster();
    AddRule();
    AddVerdict();
    AddCheckpointChecks();
    AddSelftest();
    AddCompare();
    AddCompareMedia();
    AddDecode();
    AddLayout();
  }

  absl::StatusOr<std::variant<CommandLine, HelpText>> Parse(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
      if (IsUtf8(argv[i])) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(Quoted(argv[i]), " is not UTF-8, which all that is asked for must be"));
    }
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
    app_.add_option("--token-file", flags.files.token_file, "File that holds the bearer token");
    app_.add_option("--ca", flags.files.ca, "PEM file: who may sign the server's certificate; TLS");
    app_.add_option("--cert", flags.files.cert, "PEM file: this client's certificate, with --key");
    app_.add_option("--key", flags.files.key, "PEM file: this client's private key");
    app_.add_option("--signing-key", line_->signing_key,
                    "PEM file: Ed25519 private key that bundles are signed with")
        ->envname("PLUMBLINE_SIGNING_KEY");
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
    CLI::App* group =
        AddGroup("submit", "Make a job: block-replay, full-model, generation, diagnostic, sweep");
    AddBlockReplay(group);
    AddFullModel(group);
    AddGeneration(group);
    AddDiagnostic(group);
    AddSweep(group);
  }

  static void AddCheckpoint(CLI::App* command, std::string* checkpoint) {
    command
        ->add_option("--checkpoint", *checkpoint,
                     "Folder under the worker's roots, or synthetic:NAME[:SEED] with NAME\n"
                     "released, tiny or a configuration file")
        ->required();
  }

  static void AddLayouts(CLI::App* command, const char* description,
                         std::vector<std::string>* layouts, std::vector<std::string>* layout) {
    command->add_option("--layouts", *layouts, description)
        ->delimiter(',')
        ->allow_extra_args(false);
    AddRepeated(command, "--layout", layout,
                "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES; repeatable");
  }

  static void AddComposition(CLI::App* command, std::string* composition,
                             std::vector<std::string>* plugins) {
    command->add_option("--composition", *composition,
                        "What is judged, e.g. candidate+provider:attention or\n"
                        "candidate+plugin/NAME:attention; default candidate");
    AddRepeated(command, "--plugin", plugins,
                "A plug-in to load for the job: a shared object, see docs/plugin.md;\n"
                "a server must allow it; repeatable");
  }

  static void AddCaptures(CLI::App* command, CaptureFlags* flags) {
    command->add_option("--inputs", flags->inputs, "Captured inputs: FILE or worker:PATH");
    command->add_option("--golden", flags->golden, "Captured golden: FILE or worker:PATH");
    AddRepeated(command, "--provider", &flags->providers,
                "NAME=FILE or NAME=worker:PATH, a captured provider; repeatable");
    command->add_option("--candidate", flags->candidate, "Captured candidate: FILE or worker:PATH");
  }

  static void AddInject(CLI::App* command, std::string* inject) {
    command->add_option("--inject", *inject,
                        "Fault to put into the candidate: see `plumbline faults`");
  }

  static void AddBundle(CLI::App* command, std::string* bundle) {
    command->add_option("--bundle", *bundle,
                        "Write report, verdict, tables, figures and rules to this new folder");
  }

  static void AddWait(CLI::App* command, JobFlags* flags) {
    command->add_flag("--wait", flags->wait, "Wait for the report and print it");
    AddJobFlags(command, flags);
  }

  void AddBlockReplay(CLI::App* group) {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<SubmitBlockReplay>(
        group, "block-replay", "Replay one transformer block, node by node", &command);
    AddCheckpoint(command, &flags->checkpoint);
    command->add_option("--block", flags->block, "Index of the block; default 0");
    AddLayouts(command,
               "Names: tiny, small, medium, released; or sweep: every duration, odd rows,\n"
               "all keyframes, aspect ratios from 1:4 to 4:1, on small canvases",
               &flags->layouts, &flags->layout);
    AddComposition(command, &flags->composition, &flags->plugins);
    command->add_flag("--backward", flags->backward, "Also replay the backward pass");
    AddCaptures(command, &flags->captures);
    AddInject(command, &flags->inject);
    command->add_option("--save-tensors", flags->save_tensors,
                        "Write the composition's tensors to this file (waits for them);\n"
                        "of several layouts, to one file each: NAME-LAYOUT.safetensors");
    AddBundle(command, &flags->bundle);
    AddWait(command, &flags->job);
  }

  void AddFullModel(CLI::App* group) {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<SubmitFullModel>(
        group, "full-model",
        "Every tensor of the model, forward and backward, by a rule made of the providers",
        &command);
    AddCheckpoint(command, &flags->checkpoint);
    CLI::Option* layout =
        command->add_option("--layout", flags->layout, absl::StrCat(kLayoutForm, ", or a name"));
    command
        ->add_option("--layouts", flags->layouts,
                     "sweep: one task for each duration, as of block-replay; or a name")
        ->excludes(layout);
    AddCaptures(command, &flags->captures);
    command
        ->add_option("--providers", flags->providers,
                     "Of the ensemble; default default,sdpa-flash,sdpa-efficient,sdpa-math,\n"
                     "blas-cublaslt")
        ->delimiter(',')
        ->allow_extra_args(false);
    AddComposition(command, &flags->composition, &flags->plugins);
    CLI::Option* freeze =
        command->add_option("--freeze-rule", flags->freeze_rule,
                            "Make a rule of the providers, write it to this file, and stop");
    command->add_option("--rule", flags->rule, "Judge by this rule: FILE or worker:PATH")
        ->excludes(freeze);
    command->add_flag("--allow-other-device", flags->allow_other_device,
                      "Take a rule of another device class; the verdict says so");
    command->add_flag("--ablation", flags->ablation,
                      "Also replace one group of nodes at a time by the provider's");
    AddInject(command, &flags->inject);
    AddRepeated(command, "--keep", &flags->keep,
                "Keep tensors of this name, with * and ?, of every composition;\n"
                "repeatable");
    command->add_option("--save-tensors", flags->save_tensors,
                        "Write the composition's tensors to this file (waits for them), and\n"
                        "kept ones beside it: NAME-kept-COMPOSITION.safetensors");
    AddBundle(command, &flags->bundle);
    AddWait(command, &flags->job);
  }

  void AddSweep(CLI::App* group) {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<SubmitSweep>(
        group, "sweep", "Leaf errors of a block over seeds of its inputs", &command);
    AddCheckpoint(command, &flags->checkpoint);
    command->add_option("--block", flags->block, "Index of the block; default 0");
    AddLayouts(command, "Names: tiny, small, medium, released", &flags->layouts, &flags->layout);
    AddComposition(command, &flags->composition, &flags->plugins);
    command->add_option("--seeds", flags->seeds, "E.g. 0..9 or 1,4,7..9; default 0..9");
    command
        ->add_option("--swap", flags->swap,
                     "each-node: also one hybrid per node in both directions")
        ->check(CLI::IsMember({"each-node"}));
    AddWait(command, &flags->job);
  }

  void AddGeneration(CLI::App* group) {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<SubmitGeneration>(
        group, "generation", "Generate videos, one run a seed, resumable after every step",
        &command);
    AddCheckpoint(command, &flags->checkpoint);
    AddGenerationFlags(command, flags);
    AddComposition(command, &flags->composition, &flags->plugins);
    AddInject(command, &flags->inject);
    AddBundle(command, &flags->bundle);
    AddWait(command, &flags->job);
  }

  void AddDiagnostic(CLI::App* group) {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<SubmitDiagnostic>(
        group, "diagnostic", "Replay one saved step of a run under any composition", &command);
    command->add_option("--run", flags->run, "Name of the run: see `plumbline runs list`")
        ->required();
    command->add_option("--step", flags->step, "From 0; default 0");
    AddComposition(command, &flags->composition, &flags->plugins);
    AddWait(command, &flags->job);
  }

  void AddRuns() {
    CLI::App* group = AddGroup("runs", "Look at the saved steps of generations");
    CLI::App* command = nullptr;
    auto* list = AddCommand<ListRuns>(group, "list", "List runs, last used first", &command);
    command->add_option("--job", list->job, "Only runs that this job needs or made");
    command->add_option("--limit", list->limit, "Runs at most; default 50")
        ->check(CLI::PositiveNumber);
    const auto add_run = [&command](std::string* run) {
      command->add_option("RUN", *run, "Name of the run, or its first 8 characters or more")
          ->required();
    };
    auto* show = AddCommand<ShowRun>(group, "show", "One run with its steps", &command);
    add_run(&show->run);
    AddFormat(command, &show->format);
    auto* verify = AddCommand<VerifyRun>(
        group, "verify", "Read every saved byte and check its digest; exit status 1 if one fails",
        &command);
    add_run(&verify->run);
    auto* compare = AddCommand<CompareRuns>(
        group, "compare", "Two runs' steps, byte for byte; exit status 1 if they differ", &command);
    command->add_option("A", compare->a, "Name of a run")->required();
    command->add_option("B", compare->b, "Name of the run to compare with")->required();
    command->add_flag("--media", compare->media,
                      "Also the quality of what the first was decoded to against the second");
    auto* adopt = AddCommand<AdoptRun>(
        group, "adopt", "Carry a run on that was recorded under another identity", &command);
    add_run(&adopt->run);
    command->add_option("--from", adopt->from, "Run identity that the steps are recorded under")
        ->required();
    auto* remove =
        AddCommand<DeleteRuns>(group, "delete", "Delete runs with their steps", &command);
    command->add_option("RUN", remove->runs, "Names of runs")->required();
    AddCommand<BackupRuns>(group, "backup", "Make a consistent copy of the server's store",
                           &command);
  }

  void AddToken() {
    CLI::App* group = AddGroup(
        "token", "Who may call a server: its access file. Changes the file on this machine");
    CLI::App* command = nullptr;
    const auto add_file = [&command](std::string* file) {
      command->add_option("--file", *file, "The file of plumbline-server's --access-file")
          ->required();
    };
    auto* create = AddCommand<CreateToken>(
        group, "create", "Let somebody in; prints the token, which is kept nowhere", &command);
    add_file(&create->file);
    command->add_option("--name", create->name, "Who it is: in the audit log too")->required();
    command->add_option("--role", create->role, "viewer, submitter, worker or admin")->required();
    command->add_option("--expires", create->expires, "In so long, e.g. 720h; default never");
    command->add_option("--certificate", create->certificate,
                        "No token: the common name of client certificates");
    auto* list = AddCommand<ListTokens>(group, "list", "Who may call, and who no more", &command);
    add_file(&list->file);
    auto* revoke = AddCommand<RevokeToken>(
        group, "revoke", "Let somebody in no more; the server notices within a second", &command);
    command->add_option("NAME", revoke->name, "As created")->required();
    add_file(&revoke->file);
  }

  void AddCluster() {
    CLI::App* cluster = AddGroup("cluster", "Run workers under a cluster's own scheduler");
    CLI::App* group = cluster->add_subcommand("slurm", "Workers as jobs of Slurm");
    group->require_subcommand(1);
    group->fallthrough();
    CLI::App* command = nullptr;
    auto* submit = AddCommand<SubmitSlurmWorkers>(
        group, "submit", "Submit workers as an array of jobs that outlive preemptions", &command);
    AddSubmitSlurmFlags(command, submit);
    auto* status =
        AddCommand<ShowSlurmWorkers>(group, "status", "Workers that are queued or run", &command);
    AddShowSlurmFlags(command, status);
    auto* cancel = AddCommand<CancelSlurmWorkers>(
        group, "cancel", "End workers; what they did is kept by the coordinator", &command);
    AddCancelSlurmFlags(command, cancel);
  }

  void AddRule() {
    CLI::App* group = AddGroup("rule", "Look at rule files, seal and compare them");
    CLI::App* command = nullptr;
    auto* show = AddCommand<ShowRule>(group, "show", "Check a rule and print it", &command);
    command->add_option("RULE", show->rule, "FILE or worker:PATH")->required();
    AddJobFlags(command, &show->job);

    auto* seal = AddCommand<SealRule>(group, "seal",
                                      "Make a rule that was edited a valid manual one", &command);
    command->add_option("RULE", seal->rule, "FILE or worker:PATH")->required();
    command->add_option("--output", seal->output, "File to write; default the rule's own");
    AddJobFlags(command, &seal->job);

    auto* compare = AddCommand<CompareRules>(
        group, "compare", "k, leave-one-out and bounds of two rules side by side", &command);
    command->add_option("A", compare->a, "FILE or worker:PATH")->required();
    command->add_option("B", compare->b, "FILE or worker:PATH")->required();
    AddJobFlags(command, &compare->job);
  }

  void AddVerdict() {
    CLI::App* command = nullptr;
    auto* verdict = AddCommand<RecomputeVerdict>(
        &app_, "verdict", "Recompute a bundle's verdict from its files alone", &command);
    AddBundleFolder(command, verdict);
    AddJobFlags(command, &verdict->job);
    auto* verify = AddCommand<RecomputeVerdict>(
        &app_, "verify", "Check a bundle: its files, its signature, and its verdict", &command);
    AddBundleFolder(command, verify);
    AddJobFlags(command, &verify->job);
  }

  void AddCheckpointChecks() {
    CLI::App* group = AddGroup("checkpoint", "Check a checkpoint's files and weights");
    CLI::App* command = nullptr;
    auto* verify = AddCommand<VerifyCheckpoint>(
        group, "verify", "Files, tensors and values, and all of it against a manifest", &command);
    AddVerifyCheckpointFlags(command, verify);
    AddJobFlags(command, &verify->job);
    auto* manifest = AddCommand<WriteManifest>(
        group, "manifest", "Write what `checkpoint verify` is to hold another copy against",
        &command);
    AddWriteManifestFlags(command, manifest);
    AddJobFlags(command, &manifest->job);
  }

  void AddSelftest() {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<Selftest>(
        &app_, "selftest",
        "Hold a worker against every capture and every negative control, on its device", &command);
    AddRepeated(command, "--worker-label", &flags->worker_labels,
                "K=V that the worker must carry; repeatable");
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
    AddBundle(command, &flags->bundle);
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

  void AddCompareMedia() {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<CompareMedia>(
        &app_, "compare-media",
        "Quality of a video and its sound against another: PSNR, SSIM, temporal RMSE,\n"
        "audio, frame by frame",
        &command);
    command
        ->add_option("A", flags->a,
                     "MP4, WAV or safetensors (frames, samples): FILE or worker:PATH; name of\n"
                     "a run; or of a generation job, as is B then; judged")
        ->required();
    command->add_option("B", flags->b, "The same, the reference")->required();
    command->add_option("--diff", flags->difference,
                        "Write a video of the difference to this MP4: grey where both are equal");
    command->add_option("--spread", flags->spread,
                        "Of jobs: generation by another provider composition, shown beside A;\n"
                        "may be given several times");
    command->add_option("--repeat", flags->repeat,
                        "Of jobs: generation that repeats B, as a control");
    command->add_option("--seeds", flags->seeds, "Of jobs: e.g. 42,43; default all");
    AddJobFlags(command, &flags->job);
  }

  void AddDecode() {
    CLI::App* command = nullptr;
    auto* flags = AddCommand<DecodeLatents>(
        &app_, "decode", "Decode latents to a video, a soundtrack, a picture or tensors", &command);
    command->add_option("--checkpoint", flags->checkpoint,
                        "As in submit; of a run, default its own");
    CLI::Option_group* source = command->add_option_group("source");
    CLI::Option* latents =
        source->add_option("--latents", flags->latents,
                           "FILE or worker:PATH, safetensors with z or latents.video and\n"
                           "latents.audio; or the name of a finished run");
    source
        ->add_option("--kept", flags->kept,
                     "In its place: frames that a worker without FFmpeg kept, artifacts/NAME,\n"
                     "FILE or worker:PATH; their .mp4 is made")
        ->excludes(latents);
    source->require_option(1);
    AddRepeated(command, "--output", &flags->out,
                "FILE.mp4, .wav, .png or .safetensors to write; repeatable, one of\n"
                "each kind")
        ->required();
    command->add_option("--composition", flags->composition,
                        "What decodes, e.g. provider; default golden");
    command
        ->add_option("--frames", flags->frames,
                     "Of a .safetensors: f32, or u8 for 8 bits; default f32")
        ->check(CLI::IsMember({"f32", "u8"}));
    CLI::Option* tile =
        command->add_option("--tile", flags->tile, "Side of a tile in pixels; default 256");
    CLI::Option* overlap = command->add_option("--tile-overlap", flags->tile_overlap,
                                               "Least overlap of tiles in pixels; default 64");
    command->add_flag("--no-tiling", flags->no_tiling, "One tile, whatever the size")
        ->excludes(tile)
        ->excludes(overlap);
    command->add_option("--image-frame", flags->image_frame,
                        "Frame of a .png, from 0; default the middle one");
    command->add_option("--fps", flags->fps,
                        "Frames a second of a .mp4; default 24, of a run its own");
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
