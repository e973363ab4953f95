#include "client/checkpoint_flags.h"

#include <CLI/CLI.hpp>

namespace plumbline::client {
namespace {

constexpr char kDirectory[] =
    "Folder that holds transformer/, under the worker's roots;\nor synthetic:NAME[:SEED]";

}  // namespace

void AddVerifyCheckpointFlags(CLI::App* command, VerifyCheckpoint* flags) {
  command->add_option("DIR", flags->checkpoint, kDirectory)->required();
  command->add_option("--manifest", flags->manifest,
                      "What it must be, as `checkpoint manifest` wrote it:\nFILE or worker:PATH");
}

void AddWriteManifestFlags(CLI::App* command, WriteManifest* flags) {
  command->add_option("DIR", flags->checkpoint, kDirectory)->required();
  command->add_option("--output", flags->output, "File to write; default manifest.json");
}

void AddBundleFolder(CLI::App* command, RecomputeVerdict* flags) {
  command->add_option("BUNDLE", flags->bundle, "Folder that --bundle wrote")->required();
  command->add_option("--public-key", flags->public_key,
                      "PEM file: Ed25519 key that the bundle must be signed under");
}

}  // namespace plumbline::client
