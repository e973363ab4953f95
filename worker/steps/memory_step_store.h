#ifndef PLUMBLINE_WORKER_STEPS_MEMORY_STEP_STORE_H_
#define PLUMBLINE_WORKER_STEPS_MEMORY_STEP_STORE_H_

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/steps/step_store.h"

namespace plumbline::steps {

// Steps in memory, whoever reads them: those of a control, which must reach no other run. What is
// saved is acknowledged at once. One thread.
class MemoryStepStore : public StepStore {
 public:
  absl::StatusOr<v1::Run> GetRun(const std::string& run) override {
    const auto found = runs_.find(run);
    if (found == runs_.end()) return absl::NotFoundError(run);
    v1::Run result;
    result.set_name(run);
    *result.mutable_identity() = found->second.facts.identity;
    result.set_seed(found->second.facts.seed);
    result.set_total_steps(found->second.facts.total_steps);
    for (const auto& [index, step] : found->second.steps) *result.add_steps() = step.record;
    return result;
  }

  absl::Status Begin(const RunFacts&) override { return absl::OkStatus(); }

  absl::Status Fetch(const std::string& run, int32_t first, int32_t count,
                     absl::FunctionRef<absl::Status(SavedStep step)> sink) override {
    const auto& steps = runs_[run].steps;
    for (int32_t index = first; index < first + count; ++index) {
      const auto found = steps.find(index);
      if (found == steps.end() || found->second.record.quarantined()) break;
      if (absl::Status status = sink(found->second); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Save(const RunFacts& facts, SavedStep step) override {
    acknowledged_.push_back(step.record);
    Put(facts, std::move(step));
    return absl::OkStatus();
  }

  absl::Status Flush() override { return absl::OkStatus(); }
  std::vector<v1::StepRecord> TakeAcknowledged() override {
    return std::exchange(acknowledged_, {});
  }

  // Puts a step there, whatever was there before.
  void Put(const RunFacts& facts, SavedStep step) {
    Run& run = runs_[absl::StrCat("runs/", facts.identity.sha256())];
    run.facts = facts;
    const int32_t index = step.record.index();
    run.steps[index] = std::move(step);
  }

 private:
  struct Run {
    RunFacts facts;
    std::map<int32_t, SavedStep> steps;
  };

  std::map<std::string, Run> runs_;
  std::vector<v1::StepRecord> acknowledged_;
};

}  // namespace plumbline::steps

#endif  // PLUMBLINE_WORKER_STEPS_MEMORY_STEP_STORE_H_
