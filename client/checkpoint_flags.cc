#include "client/checkpoint_flags.h"

#include <CLI/CLI.hpp>

#include "client/shared_flags.h"

namespace plumbline::client {
namespace {

constexpr char kDirectory[] =
    "Folder that holds transformer/, under the worker's roots;\nor synthetic:NAME[:SEED]";

void AddVerifyCheckpointFlags(CLI::App* command, VerifyCheckpoint* flags) {
  command->add_option("DIR", flags->checkpoint, kDirectory)->required();
  command->add_option("--manifest", flags->manifest,
                      "What it must be, as `checkpoint manifest` wrote it:\nFILE or worker:PATH");
}

void AddWriteManifestFlags(CLI::App* command, WriteManifest* flags) {
  command->add_option("DIR", flags->checkpoint, kDirectory)->required();
  command->add_option("--output", flags->output, "File to write; default manifest.json");
}

}  // namespace

void AddCheckpointChecks(CommandTree* tree) {
  CLI::App* group = tree->AddGroup("checkpoint", "Check a checkpoint's files and weights");
  CLI::App* command = nullptr;
  auto* verify = tree->Add<VerifyCheckpoint>(
      group, "verify", "Files, tensors and values, and all of it against a manifest",
      {"plumbline checkpoint verify H3 --manifest=manifest.json"}, &command);
  AddVerifyCheckpointFlags(command, verify);
  AddJobFlags(command, &verify->job);
  auto* manifest = tree->Add<WriteManifest>(
      group, "manifest", "Write what `checkpoint verify` is to hold another copy against",
      {"plumbline checkpoint manifest H3 --output=manifest.json"}, &command);
  AddWriteManifestFlags(command, manifest);
  AddJobFlags(command, &manifest->job);
}

void AddSelftest(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<Selftest>(
      tree->root(), "selftest",
      "Hold a worker against every capture and every negative control, on its device",
      {"plumbline selftest", "plumbline selftest --server=HOST:PORT --worker-label=host=node1"},
      &command);
  AddRepeated(command, "--worker-label", &flags->worker_labels,
              "K=V that the worker must carry; repeatable");
  AddJobFlags(command, &flags->job);
}

}  // namespace plumbline::client
