#include "worker/surroundings.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace plumbline::worker {
namespace {

constexpr size_t kMaxValueCharacters = 128;

struct LabelledVariable {
  const char* variable;
  const char* label;
};

constexpr LabelledVariable kVariables[] = {
    {"SLURM_CLUSTER_NAME", "slurm_cluster"},
    {"SLURM_JOB_ID", "slurm_job_id"},
    {"SLURM_ARRAY_JOB_ID", "slurm_array_job_id"},
    {"SLURM_ARRAY_TASK_ID", "slurm_array_task_id"},
    {"SLURM_JOB_NAME", "slurm_job_name"},
    {"SLURM_JOB_PARTITION", "slurm_partition"},
    // Unset in a first run.
    {"SLURM_RESTART_COUNT", "slurm_restart_count"},
    {"SLURMD_NODENAME", "slurm_node"},
    {"CUDA_VISIBLE_DEVICES", "cuda_visible_devices"},
};

// A label is sent as UTF-8 and printed by terminals.
std::string LabelValue(absl::string_view value) {
  std::string text(value.substr(0, kMaxValueCharacters));
  for (char& c : text) {
    if (!absl::ascii_isprint(static_cast<unsigned char>(c))) c = '?';
  }
  return text;
}

}  // namespace

std::map<std::string, std::string> ClusterLabels(const VariableReader& variable) {
  std::map<std::string, std::string> labels;
  for (const LabelledVariable& each : kVariables) {
    if (const char* value = variable(each.variable); value != nullptr) {
      labels[each.label] = LabelValue(value);
    }
  }
  return labels;
}

std::vector<std::string> AllottedGpus(const VariableReader& variable) {
  const char* numbers = variable("SLURM_STEP_GPUS");
  if (numbers == nullptr) numbers = variable("SLURM_JOB_GPUS");
  std::vector<std::string> gpus;
  if (numbers == nullptr) return gpus;
  for (absl::string_view number :
       absl::StrSplit(LabelValue(numbers), ',', absl::SkipWhitespace())) {
    gpus.push_back(absl::StrCat("slurm-gpu-", number));
  }
  return gpus;
}

}  // namespace plumbline::worker
