#include "worker/jobs/generation/state.h"

#include "common/status.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

std::vector<float> ValuesOf(const h3::HostTensor& tensor) {
  const float* const values = static_cast<const float*>(tensor.tensor.data);
  return {values, values + tensor.tensor.NumElements()};
}

}  // namespace

absl::StatusOr<GenerationState> GenerationState::Start(const GenerationSetup& setup) {
  GenerationState state(&setup);
  // Timesteps that SetStep replaces at once.
  PLUMBLINE_ASSIGN_OR_RETURN(
      state.layout_, h3::BuildPackedLayout(setup.layout, 0, 0, setup.conditioning.text_token_tags));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<h3::NoiseSource> source, setup.OpenNoise());
  PLUMBLINE_ASSIGN_OR_RETURN(
      h3::InitialRows rows,
      h3::DrawInitialRows(setup.weights.config(), setup.layout,
                          setup.conditioning.condition_latents, source.get()));
  state.video_ = ValuesOf(rows.video);
  state.audio_ = ValuesOf(rows.audio);
  state.noise_ = std::move(rows.noise);
  PLUMBLINE_RETURN_IF_ERROR(setup.sampler->SetStep(0, &state.layout_));
  return state;
}

StepInputs GenerationState::Inputs() const {
  const h3::TransformerConfig& config = setup_->weights.config();
  StepInputs inputs;
  inputs.video = VectorView(video_, DType::kF32, config.VideoRowWidth());
  inputs.audio = VectorView(audio_, DType::kF32, config.audio_in_channels);
  inputs.text = setup_->conditioning.prompt_embeds.tensor;
  inputs.layout = &layout_;
  return inputs;
}

absl::Status GenerationState::Advance(absl::Span<const float> video_velocity,
                                      absl::Span<const float> audio_velocity) {
  PLUMBLINE_RETURN_IF_ERROR(setup_->sampler->Advance(step_, layout_, video_velocity, audio_velocity,
                                                     absl::MakeSpan(video_),
                                                     absl::MakeSpan(audio_)));
  ++step_;
  return finished() ? absl::OkStatus() : setup_->sampler->SetStep(step_, &layout_);
}

absl::Span<const float> GenerationState::target_video() const {
  const int64_t keyframes = layout_.keyframe_rows * setup_->weights.config().VideoRowWidth();
  return absl::MakeConstSpan(video_).subspan(static_cast<size_t>(keyframes));
}

}  // namespace plumbline::jobs
