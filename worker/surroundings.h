// What the cluster that runs this process says about it, for people: nothing here is trusted.
#ifndef PLUMBLINE_WORKER_SURROUNDINGS_H_
#define PLUMBLINE_WORKER_SURROUNDINGS_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace plumbline::worker {

// The value of an environment variable; null where it is not set.
using VariableReader = std::function<const char*(const char* name)>;

// Labels for this process's attempts. Values are whatever users named their jobs: what is not
// printable ASCII becomes '?', and 128 characters are kept.
std::map<std::string, std::string> ClusterLabels(const VariableReader& variable);

// GPUs of this machine that Slurm gave to this step, or else to this job, as names that all jobs of
// the machine share, e.g. {"slurm-gpu-1"}. Empty outside of Slurm, and for a job without GPUs.
std::vector<std::string> AllottedGpus(const VariableReader& variable);

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_SURROUNDINGS_H_
