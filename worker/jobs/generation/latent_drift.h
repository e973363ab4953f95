#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_LATENT_DRIFT_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_LATENT_DRIFT_H_

#include <future>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/plumbline/v1/generation.pb.h"
#include "worker/jobs/generation/state.h"
#include "worker/steps/step_store.h"

namespace plumbline::jobs {

// Follows another run, step by step, through its saved velocities, and measures how far a run has
// drifted from it. One thread; stays where it is once Prepare() was called.
class LatentDriftMeter {
 public:
  // `start` is the measured run before its first step; `against` is "runs/{run}". NOT_FOUND if
  // there is no such run; FAILED_PRECONDITION, reason NOISE_DIFFERS, unless it began with the same
  // noise, conditioning and timesteps.
  static absl::StatusOr<LatentDriftMeter> Make(const GenerationState& start,
                                               const std::string& against, steps::StepStore* store);

  // Begins, beside the caller, to take the other run's next step; Join() waits for that. In between
  // nobody else uses the store but for what was acknowledged.
  void Prepare();
  absl::Status Join();

  // The drift after the step that `state` has just taken; none once the other run's steps end.
  // Asked once after every step, in order. Takes the other run's step if that was not prepared.
  absl::StatusOr<std::optional<v1::LatentDrift>> Measure(const GenerationState& state);

 private:
  LatentDriftMeter(const GenerationState& start, const std::string& against,
                   steps::StepStore* store)
      : other_(start), against_(against), store_(store) {}

  absl::Status TakeStep();

  GenerationState other_;
  std::string against_;
  steps::StepStore* store_;
  std::future<absl::Status> prepared_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_LATENT_DRIFT_H_
