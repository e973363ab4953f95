#include "worker/h3/model_inputs.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/synthetic.h"
#include "worker/h3/capture_reader.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kLayoutNames[] = {"position_ids",    "token_tags",   "video_indices",
                                              "audio_indices",   "text_indices", "timestep",
                                              "timestep_indices"};
constexpr absl::string_view kBlockNames[] = {"block.input", "block.temb", "block.upstream"};
constexpr absl::string_view kFullModelNames[] = {"input.hidden_states", "input.audio_hidden_states",
                                                 "input.encoder_hidden_states", "upstream.video",
                                                 "upstream.audio"};

constexpr double kInputScale = 1.5;
constexpr double kUpstreamScale = 1;

enum class Rounding { kNone, kBfloat16 };

absl::StatusOr<HostTensor> StandIn(absl::string_view name, uint64_t seed, double scale,
                                   Rounding rounding, int64_t rows, int64_t width) {
  PLUMBLINE_ASSIGN_OR_RETURN(const HostTensor values,
                             AllocateHostTensor(DType::kF32, 1, rows, width));
  const absl::Span<float> floats(static_cast<float*>(values.tensor.data),
                                 values.tensor.NumElements());
  FillSynthetic(name, seed, {scale, 0}, 0, floats);
  if (rounding == Rounding::kBfloat16) {
    for (float& value : floats) value = RoundThroughBf16(value);
  }
  return values;
}

bool IsLayoutName(absl::string_view name) { return absl::c_linear_search(kLayoutNames, name); }

}  // namespace

absl::StatusOr<BlockInputs> StandInBlockInputs(const TransformerConfig& config,
                                               const PackedLayout& layout, uint64_t seed) {
  BlockInputs inputs;
  inputs.layout = layout;
  PLUMBLINE_ASSIGN_OR_RETURN(
      inputs.input, StandIn("block.input", seed, kInputScale, Rounding::kBfloat16, layout.Rows(),
                            config.hidden_size));
  PLUMBLINE_ASSIGN_OR_RETURN(inputs.temb, StandIn("block.temb", seed, kInputScale, Rounding::kNone,
                                                  layout.Timesteps(), config.time_embed_dim));
  PLUMBLINE_ASSIGN_OR_RETURN(inputs.upstream,
                             StandIn("block.upstream", seed, kUpstreamScale, Rounding::kBfloat16,
                                     layout.Rows(), config.hidden_size));
  return inputs;
}

absl::StatusOr<FullModelInputs> StandInFullModelInputs(const TransformerConfig& config,
                                                       const PackedLayout& layout, uint64_t seed) {
  const int64_t video_width = config.VideoRowWidth();
  const int64_t audio_width = config.audio_in_channels;
  FullModelInputs inputs;
  inputs.layout = layout;
  PLUMBLINE_ASSIGN_OR_RETURN(
      inputs.video,
      StandIn("input.video", seed, kInputScale, Rounding::kNone, layout.VideoRows(), video_width));
  PLUMBLINE_ASSIGN_OR_RETURN(
      inputs.audio,
      StandIn("input.audio", seed, kInputScale, Rounding::kNone, layout.AudioRows(), audio_width));
  PLUMBLINE_ASSIGN_OR_RETURN(
      inputs.text, StandIn("input.text", seed, kInputScale, Rounding::kBfloat16, layout.TextRows(),
                           config.text_dim));
  PLUMBLINE_ASSIGN_OR_RETURN(inputs.upstream_video,
                             StandIn("upstream.video", seed, kUpstreamScale, Rounding::kNone,
                                     layout.VideoRows(), video_width));
  PLUMBLINE_ASSIGN_OR_RETURN(inputs.upstream_audio,
                             StandIn("upstream.audio", seed, kUpstreamScale, Rounding::kNone,
                                     layout.AudioRows(), audio_width));
  return inputs;
}

absl::StatusOr<BlockInputs> ReadBlockInputs(const SafetensorsFile& file,
                                            const TransformerConfig& config, bool with_upstream) {
  BlockInputs inputs;
  CaptureReader reader(file);
  reader.ReadLayout(&inputs.layout);
  const PackedLayout& layout = inputs.layout;
  // Where the layout is wrong its sizes are too, but then they are only one violation more.
  reader.ReadFloats("block.input", {1, layout.Rows(), config.hidden_size}, &inputs.input);
  reader.ReadFloats("block.temb", {layout.Timesteps(), config.time_embed_dim}, &inputs.temb);
  if (with_upstream) {
    reader.ReadFloats("block.upstream", {1, layout.Rows(), config.hidden_size}, &inputs.upstream);
  }
  PLUMBLINE_RETURN_IF_ERROR(reader.status());
  return inputs;
}

absl::StatusOr<FullModelInputs> ReadFullModelInputs(const SafetensorsFile& file,
                                                    const TransformerConfig& config,
                                                    bool with_upstream) {
  FullModelInputs inputs;
  CaptureReader reader(file);
  reader.ReadLayout(&inputs.layout);
  const PackedLayout& layout = inputs.layout;
  const std::vector<int64_t> video = {1, layout.VideoRows(), config.VideoRowWidth()};
  const std::vector<int64_t> audio = {1, layout.AudioRows(), config.audio_in_channels};
  reader.ReadFloats("input.hidden_states", video, &inputs.video);
  reader.ReadFloats("input.audio_hidden_states", audio, &inputs.audio);
  reader.ReadFloats("input.encoder_hidden_states", {1, layout.TextRows(), config.text_dim},
                    &inputs.text);
  if (with_upstream) {
    reader.ReadFloats("upstream.video", video, &inputs.upstream_video);
    reader.ReadFloats("upstream.audio", audio, &inputs.upstream_audio);
  }
  PLUMBLINE_RETURN_IF_ERROR(reader.status());
  return inputs;
}

bool IsBlockInputName(absl::string_view name) {
  return IsLayoutName(name) || absl::c_linear_search(kBlockNames, name);
}

bool IsFullModelInputName(absl::string_view name) {
  return IsLayoutName(name) || absl::c_linear_search(kFullModelNames, name);
}

}  // namespace plumbline::h3
