#include "worker/jobs/generation/replay.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/step_digest.h"
#include "worker/h3/latent_rows.h"
#include "worker/jobs/generation/step_bytes.h"
#include "worker/jobs/generation/step_inputs.h"

namespace plumbline::jobs {
namespace {

absl::Status Inconsistent(const std::string& run, int32_t step, absl::string_view tensor,
                          absl::string_view what) {
  return WithReason(
      absl::DataLossError(absl::StrCat(run, ": step ", step, ": ", tensor, ": ", what)),
      "STEP_INCONSISTENT");
}

}  // namespace

absl::StatusOr<SavedPoint> ReplayTo(int32_t step, const v1::Run& run, const GenerationSetup& setup,
                                    steps::StepStore* store, absl::string_view field) {
  PLUMBLINE_ASSIGN_OR_RETURN(GenerationState start, GenerationState::Start(setup));
  SavedPoint point = {std::move(start), {}};
  StepInputDigester digester;
  int32_t next = 0;
  const auto take = [&](const steps::SavedStep& saved) -> absl::Status {
    const StepInputs inputs = point.state.Inputs();
    const TensorDigests digests = digester.Digest(inputs);
    if (StepInputDigest(run.identity().sha256(), next, digests) != saved.record.input_digest()) {
      const std::string tensor = FirstDifference(digests, saved.record.inputs());
      return Inconsistent(run.name(), next, tensor.empty() ? "input_digest" : tensor,
                          "the saved step was computed from another one");
    }
    std::string tensor;
    absl::StatusOr<Velocities> velocities = ReadVelocities(saved, inputs, &tensor);
    if (!velocities.ok()) {
      return Inconsistent(run.name(), next, tensor, velocities.status().message());
    }
    if (next++ == step) {
      point.velocities = *std::move(velocities);
      return absl::OkStatus();
    }
    return point.state.Advance(velocities->video, velocities->audio);
  };
  PLUMBLINE_RETURN_IF_ERROR(store->Fetch(run.name(), 0, step + 1, take));
  if (next != step + 1) {
    return FieldError(field,
                      absl::StrCat("step ", step, " is not saved, or a step before it is not; ",
                                   run.name(), " can be replayed as far as step ", next - 1),
                      "a saved step with all those before it");
  }
  return point;
}

absl::StatusOr<GenerationState> ReplayWholeRun(const v1::Run& run, const GenerationSetup& setup,
                                               steps::StepStore* store, absl::string_view field) {
  PLUMBLINE_ASSIGN_OR_RETURN(SavedPoint point,
                             ReplayTo(setup.Steps() - 1, run, setup, store, field));
  PLUMBLINE_RETURN_IF_ERROR(point.state.Advance(point.velocities.video, point.velocities.audio));
  return std::move(point.state);
}

Latents LatentsOf(const GenerationSetup& setup, const GenerationState& finished) {
  const h3::TransformerConfig& config = setup.weights.config();
  const h3::LayoutSpec& layout = setup.layout;
  Latents latents;
  latents.video_shape = {config.in_channels, layout.latent_frames, layout.latent_height,
                         layout.latent_width};
  latents.video.resize(static_cast<size_t>(latents.video_shape.NumElements()));
  h3::Unpatchify(latents.video_shape, finished.target_video(), absl::MakeSpan(latents.video));
  latents.audio_channels = 2;
  latents.audio_width = config.audio_in_channels;
  latents.audio_latents = layout.audio_latents;
  latents.audio.resize(finished.audio().size());
  h3::UnpackAudioRows(layout.audio_latents, config.audio_in_channels, finished.audio(),
                      absl::MakeSpan(latents.audio));
  return latents;
}

}  // namespace plumbline::jobs
