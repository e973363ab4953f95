#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_RUN_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/drift.pb.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/jobs/decode/latents.h"
#include "worker/jobs/generation/latent_drift.h"
#include "worker/jobs/generation/setup.h"
#include "worker/jobs/generation/state.h"
#include "worker/jobs/generation/step_inputs.h"
#include "worker/jobs/generation/tensors.h"
#include "worker/jobs/generation/transformer_calls.h"
#include "worker/jobs/job.h"
#include "worker/steps/step_store.h"

namespace plumbline::jobs {

// One attempt at one seed, from the noise to the latents: every step that is saved is replayed, its
// inputs checked, and every other one computed and saved. Used once, by one thread.
class GenerationRun {
 public:
  // Both must outlive it.
  GenerationRun(const GenerationSetup& setup, steps::StepStore* store);

  // A finished run, or one whose verdict ended it early. DATA_LOSS, reason STEP_INCONSISTENT, names
  // step and tensor where the store holds what this run did not make; for a control that is the
  // verdict instead. CANCELLED where the attempt must stop, or ends behind a step because the
  // worker does; what was computed is saved then.
  absl::StatusOr<JobResult> Run();

 private:
  // A step that does not fit what was saved of it.
  struct Inconsistency {
    int32_t step;
    std::string tensor;
  };

  // What is saved, and what else has to be at hand.
  absl::Status Open();
  // Steps until the run is finished or judged.
  absl::Status TakeSteps();
  absl::Status ReplayFrom(int32_t step);
  absl::Status ReplayStep(const steps::SavedStep& saved);
  absl::Status ComputeStep();
  // Computes a replayed step again and compares the bytes.
  absl::Status VerifyStep(const Velocities& saved);
  // Checks the inputs of the step to come that are not checked yet.
  absl::Status CheckSensitivity(const Velocities& unchanged);
  // Takes the step to come.
  absl::Status FinishStep(const Velocities& velocities, const v1::StepRecord& record,
                          v1::StepOrigin origin);

  absl::StatusOr<Velocities> Evaluate(v1::StepOrigin origin, double* seconds);
  // The inputs of the step to come are those that `record` was made from.
  absl::Status CheckInputs(const v1::StepRecord& record, const TensorDigests& inputs);
  void CheckTrace(const v1::StepRecord& record);
  absl::Status Inconsistent(absl::string_view tensor, absl::string_view what);
  void Judge(std::string entry, std::string gate);
  absl::Status CheckYield() const;
  absl::Status SendPreview(int32_t step) const;
  void SendAcknowledged();
  void SendStep(int32_t step, v1::StepOrigin origin, double seconds) const;
  void SendProgress(absl::string_view activity) const;

  // Null where nothing is saved under that index.
  const v1::StepRecord* Saved(int32_t step) const;
  bool IsReadable(int32_t step) const;
  bool NeedsSensitivity() const;

  // report.cc
  absl::Status Describe();
  absl::StatusOr<JobResult> Finish();
  // Decodes the latents where that is asked for and possible, and says else why not.
  absl::Status Decode(Latents latents, JobResult* result);
  v1::Verdict MakeVerdict() const;
  std::string TensorsPath() const;

  const GenerationSetup& setup_;
  const GenerationEnvironment& environment_;
  steps::StepStore* const store_;
  const std::string run_;
  JobContext context_;  // The environment's, and tells of acknowledged steps.
  steps::RunFacts facts_;

  std::optional<GenerationState> state_;
  StepInputDigester digester_;
  std::unique_ptr<TransformerCalls> calls_;
  std::optional<LatentDriftMeter> drift_;
  std::optional<GenerationTensors> tensors_;

  std::map<int32_t, v1::StepRecord> saved_;  // As the store had them; quarantined ones too.
  std::set<int32_t> unreadable_;             // Of them, those whose bytes could not be had.
  int32_t verified_step_ = -1;               // To be computed again; -1: none.
  std::map<std::string, v1::SensitivityCheck> sensitivity_;  // By input.
  std::map<int32_t, v1::StepOrigin> computed_;               // In this attempt.

  std::optional<Inconsistency> inconsistency_;
  std::optional<v1::FirstFailure> failure_;  // What the verdict will say.
  v1::GenerationReport report_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_RUN_H_
