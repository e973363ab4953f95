#ifndef PLUMBLINE_CLIENT_CHECKPOINT_FLAGS_H_
#define PLUMBLINE_CLIENT_CHECKPOINT_FLAGS_H_

#include "client/command_line.h"

namespace CLI {
class App;
}  // namespace CLI

namespace plumbline::client {

// Adds what `checkpoint verify` and `checkpoint manifest` take, bound to `flags`, which outlives
// the command.
void AddVerifyCheckpointFlags(CLI::App* command, VerifyCheckpoint* flags);
void AddWriteManifestFlags(CLI::App* command, WriteManifest* flags);

// Of `verify` and of `verdict`.
void AddBundleFolder(CLI::App* command, RecomputeVerdict* flags);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_CHECKPOINT_FLAGS_H_
