#ifndef PLUMBLINE_CLIENT_SLURM_WORKER_CHECK_H_
#define PLUMBLINE_CLIENT_SLURM_WORKER_CHECK_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline::client {

// Whether `worker`, a path or a name to be found in PATH, is plumbline-worker and takes these
// flags: it is asked itself. INVALID_ARGUMENT with a violation of --worker or FLAG if not. A name
// may be known to the nodes alone: the result then says that nothing was checked, else it is empty.
absl::StatusOr<std::string> CheckSlurmWorker(const std::string& worker, absl::string_view server,
                                             const std::vector<std::string>& flags);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SLURM_WORKER_CHECK_H_
