#include "worker/surroundings.h"

#include <map>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;

VariableReader Variables(const std::map<std::string, std::string>& values) {
  return [&values](const char* name) {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

TEST(Surroundings, SlurmNamesAreLabels) {
  const std::map<std::string, std::string> values = {
      {"SLURM_JOB_ID", "12"},        {"SLURM_ARRAY_JOB_ID", "11"},
      {"SLURM_ARRAY_TASK_ID", "1"},  {"SLURM_JOB_NAME", "a b=c"},
      {"SLURM_RESTART_COUNT", "3"},  {"SLURMD_NODENAME", "n1"},
      {"SLURM_CLUSTER_NAME", "c"},   {"SLURM_JOB_PARTITION", "p"},
      {"CUDA_VISIBLE_DEVICES", "1"}, {"SLURM_SUBMIT_HOST", "left out"},
      {"HOME", "left out"}};
  EXPECT_THAT(
      ClusterLabels(Variables(values)),
      UnorderedElementsAre(Pair("slurm_job_id", "12"), Pair("slurm_array_job_id", "11"),
                           Pair("slurm_array_task_id", "1"), Pair("slurm_job_name", "a b=c"),
                           Pair("slurm_restart_count", "3"), Pair("slurm_node", "n1"),
                           Pair("slurm_cluster", "c"), Pair("slurm_partition", "p"),
                           Pair("cuda_visible_devices", "1")));
  EXPECT_THAT(ClusterLabels(Variables({})), IsEmpty());
}

TEST(Surroundings, WhateverAJobIsNamedCanBeSentAndPrinted) {
  const std::map<std::string, std::string> values = {{"SLURM_JOB_NAME", "x\xff\x1b[31m\n"},
                                                     {"SLURMD_NODENAME", std::string(1000, 'n')}};
  EXPECT_THAT(ClusterLabels(Variables(values)),
              UnorderedElementsAre(Pair("slurm_job_name", "x??[31m?"),
                                   Pair("slurm_node", std::string(128, 'n'))));
}

TEST(Surroundings, GpusOfTheStepComeBeforeThoseOfTheJob) {
  std::map<std::string, std::string> values;
  EXPECT_THAT(AllottedGpus(Variables(values)), IsEmpty());
  values["SLURM_JOB_GPUS"] = "0,3";
  EXPECT_THAT(AllottedGpus(Variables(values)), ElementsAre("slurm-gpu-0", "slurm-gpu-3"));
  values["SLURM_STEP_GPUS"] = "3";
  EXPECT_THAT(AllottedGpus(Variables(values)), ElementsAre("slurm-gpu-3"));
  values["SLURM_STEP_GPUS"] = "";
  EXPECT_THAT(AllottedGpus(Variables(values)), IsEmpty());
}

}  // namespace
}  // namespace plumbline::worker
