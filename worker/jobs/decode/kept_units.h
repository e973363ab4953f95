#ifndef PLUMBLINE_WORKER_JOBS_DECODE_KEPT_UNITS_H_
#define PLUMBLINE_WORKER_JOBS_DECODE_KEPT_UNITS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/steps/step_store.h"

namespace plumbline::jobs {

// A piece of decoding whose result is kept until the task is done: a clip, or the sound. Tensors of
// float32 by name, in an order that never changes.
struct DecodedUnit {
  std::vector<std::pair<std::string, std::vector<float>>> tensors;
};

// Keeps decoded units where a generation keeps its steps, so that another attempt goes on behind
// the last one that was acknowledged. One thread.
class KeptUnits {
 public:
  // `facts` name the run of units: its identity is what decides their bytes. `inputs` are what
  // every unit is decoded from. The store must outlive it. Errors as the store's;
  // FAILED_PRECONDITION for a run that is broken.
  static absl::StatusOr<KeptUnits> Open(steps::RunFacts facts, std::vector<v1::TensorDigest> inputs,
                                        int32_t attempt, steps::StepStore* store);

  // Unit `index`: what is kept, or what `make` returns, which is then being kept while the caller
  // goes on. DATA_LOSS, reason STEP_INCONSISTENT, where something else is kept under its identity.
  absl::StatusOr<DecodedUnit> Get(int32_t index,
                                  const std::function<absl::StatusOr<DecodedUnit>()>& make);

  // Waits until all units are acknowledged.
  absl::Status Flush() { return store_->Flush(); }

  // Of this attempt.
  int32_t made() const { return made_; }

 private:
  KeptUnits(steps::RunFacts facts, std::vector<v1::TensorDigest> inputs, int32_t attempt,
            steps::StepStore* store)
      : facts_(std::move(facts)), inputs_(std::move(inputs)), attempt_(attempt), store_(store) {}

  absl::StatusOr<DecodedUnit> Read(const steps::SavedStep& step, int32_t index) const;
  std::string InputDigest(int32_t index) const;
  std::string RunName() const;

  const steps::RunFacts facts_;
  const std::vector<v1::TensorDigest> inputs_;
  const int32_t attempt_;
  steps::StepStore* const store_;
  std::map<int32_t, v1::StepRecord> kept_;  // Readable ones.
  int32_t made_ = 0;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_DECODE_KEPT_UNITS_H_
