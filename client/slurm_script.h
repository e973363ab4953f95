#ifndef PLUMBLINE_CLIENT_SLURM_SCRIPT_H_
#define PLUMBLINE_CLIENT_SLURM_SCRIPT_H_

#include "absl/strings/string_view.h"

namespace plumbline::client {

// deploy/slurm/plumbline-worker.sbatch.
absl::string_view SlurmScript();

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SLURM_SCRIPT_H_
