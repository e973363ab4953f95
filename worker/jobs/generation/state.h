#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_STATE_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_STATE_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/h3/noise.h"
#include "worker/h3/packed_layout.h"
#include "worker/jobs/generation/setup.h"
#include "worker/jobs/generation/step_inputs.h"

namespace plumbline::jobs {

// The latents of a run between two steps. Whatever a step's velocities came from, computed or
// saved, they go through the same sampler here. Copied freely; the setup must outlive it.
class GenerationState {
 public:
  // Before the first step: draws the noise.
  static absl::StatusOr<GenerationState> Start(const GenerationSetup& setup);

  // The step to come, from 0.
  int32_t step() const { return step_; }
  bool finished() const { return step_ == setup_->Steps(); }

  // What the evaluation of the step to come reads; valid until Advance().
  StepInputs Inputs() const;

  // Takes the step. INVALID_ARGUMENT, as Sampler::Advance's, if a velocity has not the size of its
  // rows.
  absl::Status Advance(absl::Span<const float> video_velocity,
                       absl::Span<const float> audio_velocity);

  // All rows as the transformer reads them, and of the video those of the target alone.
  absl::Span<const float> video() const { return video_; }
  absl::Span<const float> target_video() const;
  absl::Span<const float> audio() const { return audio_; }
  // With the timesteps of the step to come; of the last one when finished.
  const h3::PackedLayout& layout() const { return layout_; }
  const std::vector<h3::InitialRows::Noise>& noise() const { return noise_; }

 private:
  explicit GenerationState(const GenerationSetup* setup) : setup_(setup) {}

  const GenerationSetup* setup_;
  int32_t step_ = 0;
  h3::PackedLayout layout_;
  std::vector<float> video_;
  std::vector<float> audio_;
  std::vector<h3::InitialRows::Noise> noise_;
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_STATE_H_
