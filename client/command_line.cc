#include "client/command_line.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/checkpoint_flags.h"
#include "client/command_tree.h"
#include "client/file_flags.h"
#include "client/service_flags.h"
#include "client/slurm_flags.h"
#include "client/submit_flags.h"
#include "client/token_flags.h"
#include "common/command_errors.h"
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
    "  plumbline submit block-replay --checkpoint=H3 --inject=qk-heads --wait     # must fail\n"
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

// Builds the tree of commands over one CommandLine, which must outlive it.
class Parser {
 public:
  explicit Parser(CommandLine* line) : app_(kDescription, "plumbline"), tree_(&app_), line_(line) {
    app_.footer(kFooter);
    app_.set_version_flag("--version", absl::StrCat("plumbline ", kVersion));
    AddReferenceFlag(&app_);
    app_.require_subcommand(1);
    app_.get_formatter()->column_width(36);
    AddServerFlags();
    for (const auto& add :
         {&AddSubmitCommands, &AddJobs, &AddReport, &AddWorkers, &AddRuns, &AddFaults, &AddToken,
          &AddCluster, &AddRule, &AddVerdict, &AddCheckpointChecks, &AddSelftest, &AddCompare,
          &AddCompareMedia, &AddDecode, &AddLayout}) {
      add(&tree_);
    }
  }

  absl::StatusOr<std::variant<CommandLine, HelpText>> Parse(int argc, const char* const* argv) {
    for (int i = 1; i < argc; ++i) {
      if (IsUtf8(argv[i])) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "plumbline: ", Quoted(argv[i]), " is not UTF-8, which all that is asked for must be"));
    }
    try {
      ParseCommandWords(&app_, argc, argv);
    } catch (const CLI::CallForHelp&) {
      return HelpText{app_.help()};
    } catch (const CLI::CallForVersion& version) {
      return HelpText{absl::StrCat(version.what(), "\n")};
    } catch (const CLI::ParseError& error) {
      return absl::InvalidArgumentError(ParseErrorText(app_, error));
    }
    line_->command = tree_.MakeCommand();
    return *line_;
  }

 private:
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

  CLI::App app_;
  CommandTree tree_;
  CommandLine* const line_;
};

}  // namespace

absl::StatusOr<std::variant<CommandLine, HelpText>> ParseCommandLine(int argc,
                                                                     const char* const* argv) {
  CommandLine line;
  return Parser(&line).Parse(argc, argv);
}

}  // namespace plumbline::client
