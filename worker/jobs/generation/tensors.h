#ifndef PLUMBLINE_WORKER_JOBS_GENERATION_TENSORS_H_
#define PLUMBLINE_WORKER_JOBS_GENERATION_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/safetensors_writer.h"
#include "worker/jobs/decode/latents.h"
#include "worker/jobs/generation/state.h"
#include "worker/jobs/generation/transformer_calls.h"

// The files that a generation leaves.

namespace plumbline::jobs {

// Rows and velocities of every step, under the names of a captured generation: rows.I, audio.I,
// velocity.video.I, velocity.audio.I, timestep.I, timestep_indices.I. One thread.
class GenerationTensors {
 public:
  // The file appears in Finish().
  static absl::StatusOr<GenerationTensors> Create(const std::string& path,
                                                  const GenerationSetup& setup,
                                                  const GenerationState& start);

  // Before a step is taken: what it reads, and its velocities.
  absl::Status WriteStep(const GenerationState& state, const Velocities& velocities);
  // The rows behind the last step.
  absl::Status Finish(const GenerationState& state);

 private:
  explicit GenerationTensors(SafetensorsWriter writer) : writer_(std::move(writer)) {}

  absl::Status WriteRows(const GenerationState& state);

  SafetensorsWriter writer_;
};

// The final latents as the decoders take them: "latents.video" (1, channels, frames, height, width)
// and "latents.audio" (2, channels, latents).
absl::Status WriteLatents(const std::string& path, const Latents& latents);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_GENERATION_TENSORS_H_
