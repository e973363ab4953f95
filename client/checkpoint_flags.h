#ifndef PLUMBLINE_CLIENT_CHECKPOINT_FLAGS_H_
#define PLUMBLINE_CLIENT_CHECKPOINT_FLAGS_H_

#include "client/command_tree.h"

// Checks of what a worker has: its checkpoints, and itself.

namespace plumbline::client {

void AddCheckpointChecks(CommandTree* tree);
void AddSelftest(CommandTree* tree);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_CHECKPOINT_FLAGS_H_
