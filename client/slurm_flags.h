#ifndef PLUMBLINE_CLIENT_SLURM_FLAGS_H_
#define PLUMBLINE_CLIENT_SLURM_FLAGS_H_

#include "client/command_line.h"

namespace CLI {
class App;
}  // namespace CLI

namespace plumbline::client {

// Each adds the flags of one command of `plumbline cluster slurm`, bound to `flags`, which outlives
// `command`.
void AddSubmitSlurmFlags(CLI::App* command, SubmitSlurmWorkers* flags);
void AddShowSlurmFlags(CLI::App* command, ShowSlurmWorkers* flags);
void AddCancelSlurmFlags(CLI::App* command, CancelSlurmWorkers* flags);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SLURM_FLAGS_H_
