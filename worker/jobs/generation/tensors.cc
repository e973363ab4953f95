#include "worker/jobs/generation/tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace plumbline::jobs {
namespace {

template <typename T>
absl::Span<const uint8_t> BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

absl::StatusOr<GenerationTensors> GenerationTensors::Create(const std::string& path,
                                                            const GenerationSetup& setup,
                                                            const GenerationState& start) {
  const Tensor video = start.Inputs().video;
  const Tensor audio = start.Inputs().audio;
  std::vector<TensorSpec> specs;
  const auto add = [&specs](absl::string_view name, int64_t step, DType dtype,
                            std::vector<int64_t> shape) {
    specs.push_back({absl::StrCat(name, ".", step), dtype, std::move(shape)});
  };
  h3::PackedLayout layout = start.layout();
  for (int64_t step = 0; step <= setup.Steps(); ++step) {
    add("rows", step, DType::kF32, {video.rows, video.width});
    add("audio", step, DType::kF32, {audio.rows, audio.width});
    if (step == setup.Steps()) break;
    add("velocity.video", step, DType::kF32, {video.rows, video.width});
    add("velocity.audio", step, DType::kF32, {audio.rows, audio.width});
    PLUMBLINE_RETURN_IF_ERROR(setup.sampler->SetStep(step, &layout));
    add("timestep", step, DType::kF32, {layout.Timesteps()});
    add("timestep_indices", step, DType::kI64, {layout.Rows()});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs));
  return GenerationTensors(std::move(writer));
}

absl::Status GenerationTensors::WriteRows(const GenerationState& state) {
  const int32_t step = state.step();
  PLUMBLINE_RETURN_IF_ERROR(writer_.Write(absl::StrCat("rows.", step), BytesOf(state.video())));
  return writer_.Write(absl::StrCat("audio.", step), BytesOf(state.audio()));
}

absl::Status GenerationTensors::WriteStep(const GenerationState& state,
                                          const Velocities& velocities) {
  const int32_t step = state.step();
  PLUMBLINE_RETURN_IF_ERROR(WriteRows(state));
  PLUMBLINE_RETURN_IF_ERROR(
      writer_.Write(absl::StrCat("velocity.video.", step), BytesOf<float>(velocities.video)));
  PLUMBLINE_RETURN_IF_ERROR(
      writer_.Write(absl::StrCat("velocity.audio.", step), BytesOf<float>(velocities.audio)));
  PLUMBLINE_RETURN_IF_ERROR(
      writer_.Write(absl::StrCat("timestep.", step), BytesOf<float>(state.layout().timestep)));
  return writer_.Write(absl::StrCat("timestep_indices.", step),
                       BytesOf<int64_t>(state.layout().timestep_indices));
}

absl::Status GenerationTensors::Finish(const GenerationState& state) {
  PLUMBLINE_RETURN_IF_ERROR(WriteRows(state));
  return writer_.Finish();
}

absl::Status WriteLatents(const std::string& path, const Latents& latents) {
  const h3::VideoLatentShape& shape = latents.video_shape;
  return WriteSafetensors(path,
                          {{{"latents.video",
                             DType::kF32,
                             {1, shape.channels, shape.frames, shape.height, shape.width}},
                            BytesOf<float>(latents.video)},
                           {{"latents.audio",
                             DType::kF32,
                             {latents.audio_channels, latents.audio_width, latents.audio_latents}},
                            BytesOf<float>(latents.audio)}});
}

}  // namespace plumbline::jobs
