#include "worker/jobs/generation/tensors.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/latent_rows.h"

namespace plumbline::jobs {
namespace {

template <typename T>
absl::Span<const uint8_t> BytesOf(absl::Span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

v1::TensorDigest DigestOf(const TensorView& view) {
  v1::TensorDigest digest;
  digest.set_name(view.spec.name);
  digest.set_dtype(std::string(DTypeName(view.spec.dtype)));
  for (int64_t extent : view.spec.shape) digest.add_shape(extent);
  digest.set_size_bytes(static_cast<int64_t>(view.bytes.size()));
  digest.set_sha256(Sha256Hex(view.bytes));
  return digest;
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

absl::StatusOr<std::vector<v1::TensorDigest>> WriteLatents(const std::string& path,
                                                           const GenerationSetup& setup,
                                                           const GenerationState& finished) {
  const h3::TransformerConfig& config = setup.weights.config();
  const h3::LayoutSpec& layout = setup.layout;
  const h3::VideoLatentShape shape = {config.in_channels, layout.latent_frames,
                                      layout.latent_height, layout.latent_width};
  std::vector<float> video(static_cast<size_t>(shape.NumElements()));
  h3::Unpatchify(shape, finished.target_video(), absl::MakeSpan(video));
  std::vector<float> audio(finished.audio().size());
  h3::UnpackAudioRows(layout.audio_latents, config.audio_in_channels, finished.audio(),
                      absl::MakeSpan(audio));
  const std::vector<TensorView> views = {
      {{"latents.video", DType::kF32, {1, shape.channels, shape.frames, shape.height, shape.width}},
       BytesOf<float>(video)},
      {{"latents.audio", DType::kF32, {2, config.audio_in_channels, layout.audio_latents}},
       BytesOf<float>(audio)}};
  PLUMBLINE_RETURN_IF_ERROR(WriteSafetensors(path, views));
  std::vector<v1::TensorDigest> digests;
  for (const TensorView& view : views) digests.push_back(DigestOf(view));
  return digests;
}

}  // namespace plumbline::jobs
