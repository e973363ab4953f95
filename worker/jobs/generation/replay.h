#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_REPLAY_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_REPLAY_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "worker/jobs/decode/latents.h"
#include "worker/jobs/generation/setup.h"
#include "worker/jobs/generation/state.h"
#include "worker/jobs/generation/transformer_calls.h"
#include "worker/steps/step_store.h"

// A run from what is saved of it, without evaluating anything.

namespace plumbline::jobs {

// The state before `step`, and that step as it was saved.
struct SavedPoint {
  GenerationState state;
  Velocities velocities;
};

// Replays the steps of `run` before `step`; every one must fit. DATA_LOSS, reason
// STEP_INCONSISTENT, where one does not; INVALID_ARGUMENT on `field` where one is not saved.
absl::StatusOr<SavedPoint> ReplayTo(int32_t step, const v1::Run& run, const GenerationSetup& setup,
                                    steps::StepStore* store, absl::string_view field);

// The same behind the last step.
absl::StatusOr<GenerationState> ReplayWholeRun(const v1::Run& run, const GenerationSetup& setup,
                                               steps::StepStore* store, absl::string_view field);

// What the decoders take of a finished run.
Latents LatentsOf(const GenerationSetup& setup, const GenerationState& finished);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_REPLAY_H_
