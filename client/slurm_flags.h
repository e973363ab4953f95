#ifndef PLUMBLINE_CLIENT_SLURM_FLAGS_H_
#define PLUMBLINE_CLIENT_SLURM_FLAGS_H_

#include "client/command_tree.h"

// `plumbline cluster ...`.

namespace plumbline::client {

void AddCluster(CommandTree* tree);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SLURM_FLAGS_H_
