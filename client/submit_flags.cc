#include "client/submit_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/generation_flags.h"
#include "client/shared_flags.h"
#include "common/command_errors.h"

namespace plumbline::client {
namespace {

void AddBlockReplay(CLI::App* group, CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<SubmitBlockReplay>(
      group, "block-replay", "Replay one transformer block, node by node",
      {"plumbline submit block-replay --checkpoint=synthetic:tiny --layouts=tiny --backward --wait",
       "plumbline submit block-replay --checkpoint=H3 --inject=qk-heads --wait     # must fail"},
      &command);
  AddCheckpoint(command, &flags->checkpoint);
  command->add_option("--block", flags->block, "Index of the block, from 0; default 0")
      ->transform(WholeNumber(0));
  AddLayouts(command,
             "Names: tiny, small, medium, released; or sweep: every duration, odd rows,\n"
             "all keyframes, aspect ratios from 1:4 to 4:1, on small canvases; default tiny",
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

void AddFullModel(CLI::App* group, CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<SubmitFullModel>(
      group, "full-model",
      "Every tensor of the model, forward and backward, by a rule made of the providers",
      {"plumbline submit full-model --checkpoint=synthetic:tiny --layout=tiny --wait",
       "plumbline submit full-model --checkpoint=H3 --layouts=sweep --rule=rule.json "
       "--bundle=evidence"},
      &command);
  AddCheckpoint(command, &flags->checkpoint);
  CLI::Option* layout =
      command->add_option("--layout", flags->layout, absl::StrCat(kLayoutForm, ", or a name"))
          ->option_text("TEXT");
  command
      ->add_option("--layouts", flags->layouts,
                   "sweep: one task for each duration, as of block-replay; or a name;\n"
                   "not together with --layout")
      ->option_text("TEXT")
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

void AddSweep(CLI::App* group, CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags =
      tree->Add<SubmitSweep>(group, "sweep", "Leaf errors of a block over seeds of its inputs",
                             {"plumbline submit sweep --checkpoint=H3 --layouts=tiny,small "
                              "--seeds=0..9 --swap=each-node --wait"},
                             &command);
  AddCheckpoint(command, &flags->checkpoint);
  command->add_option("--block", flags->block, "Index of the block, from 0; default 0")
      ->transform(WholeNumber(0));
  AddLayouts(command, "Names: tiny, small, medium, released; default tiny", &flags->layouts,
             &flags->layout);
  AddComposition(command, &flags->composition, &flags->plugins);
  command->add_option("--seeds", flags->seeds, "E.g. 0..9 or 1,4,7..9; default 0..9");
  command
      ->add_option("--swap", flags->swap, "each-node: also one hybrid per node in both directions")
      ->check(CLI::IsMember({"each-node"}));
  AddWait(command, &flags->job);
}

void AddGeneration(CLI::App* group, CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<SubmitGeneration>(
      group, "generation", "Generate videos, one run a seed, resumable after every step",
      {"plumbline submit generation --checkpoint=synthetic:tiny --contract=contract.json \\\n      "
       "--conditioning=conditioning.safetensors --preflight --wait",
       "plumbline submit generation --checkpoint=H3 --contract=contract.json \\\n      "
       "--conditioning=prompt.safetensors --gate=JOB --against=JOB --wait"},
      &command);
  AddCheckpoint(command, &flags->checkpoint);
  AddGenerationFlags(command, flags);
  AddComposition(command, &flags->composition, &flags->plugins);
  AddInject(command, &flags->inject);
  AddBundle(command, &flags->bundle);
  AddWait(command, &flags->job);
}

void AddDiagnostic(CLI::App* group, CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<SubmitDiagnostic>(
      group, "diagnostic", "Replay one saved step of a run under any composition",
      {"plumbline submit diagnostic --run=RUN --step=3 --composition=provider --wait"}, &command);
  command->add_option("--run", flags->run, "Name of the run: see `plumbline runs list`")
      ->required();
  command->add_option("--step", flags->step, "From 0; default 0")->transform(WholeNumber(0));
  AddComposition(command, &flags->composition, &flags->plugins);
  AddWait(command, &flags->job);
}

}  // namespace

void AddSubmitCommands(CommandTree* tree) {
  CLI::App* group = tree->AddGroup(
      "submit", "Make a job: block-replay, full-model, generation, diagnostic, sweep");
  AddBlockReplay(group, tree);
  AddFullModel(group, tree);
  AddGeneration(group, tree);
  AddDiagnostic(group, tree);
  AddSweep(group, tree);
}

}  // namespace plumbline::client
