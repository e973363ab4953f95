#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_LATENT_DRIFT_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_LATENT_DRIFT_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/jobs/generation/state.h"
#include "worker/steps/step_store.h"

namespace plumbline::jobs {

// Follows another run, step by step, through its saved velocities, and measures how far a run has
// drifted from it. One thread.
class LatentDriftMeter {
 public:
  // `start` is the measured run before its first step; `against` is "runs/{run}". NOT_FOUND if
  // there is no such run; FAILED_PRECONDITION, reason NOISE_DIFFERS, unless it began with the same
  // noise, conditioning and timesteps.
  static absl::StatusOr<LatentDriftMeter> Make(const GenerationState& start,
                                               const std::string& against, steps::StepStore* store);

  // The drift after the step that `state` has just taken; none once the other run's steps end.
  // Asked once after every step, in order.
  absl::StatusOr<std::optional<v1::LatentDrift>> Measure(const GenerationState& state);

 private:
  LatentDriftMeter(const GenerationState& start, const std::string& against,
                   steps::StepStore* store)
      : other_(start), against_(against), store_(store) {}

  GenerationState other_;
  std::string against_;
  steps::StepStore* store_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_LATENT_DRIFT_H_
