#include "worker/h3/decoders/graphs.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "worker/h3/decoders/parameters.h"

namespace plumbline::h3 {
namespace {

std::vector<std::string> WeightAndBias(absl::string_view module) {
  return {absl::StrCat(module, ".weight"), absl::StrCat(module, ".bias")};
}

Value Float32(RowSpace rows, int64_t row_factor, int64_t extra_rows, int64_t width) {
  Value value{"", rows, width, DType::kF32};
  value.differentiable = false;
  value.row_factor = row_factor;
  value.extra_rows = extra_rows;
  return value;
}

// Adds nodes whose names get a prefix.
class Builder {
 public:
  Builder(Graph& graph, std::string prefix) : graph_(graph), prefix_(std::move(prefix)) {}

  ValueId Add(absl::string_view role, OpKind op, const std::vector<ValueId>& inputs,
              std::vector<std::string> parameters, Value output, Attributes attributes = {}) {
    Node node;
    node.name = absl::StrCat(prefix_, role);
    node.role = std::string(role);
    node.op = op;
    for (ValueId input : inputs) node.inputs.push_back({input});
    node.parameters = std::move(parameters);
    node.attributes = attributes;
    return graph_.AddNode(std::move(node), std::move(output));
  }

 private:
  Graph& graph_;
  const std::string prefix_;
};

// A block of the video decoder's transformer. Returns the new residual stream.
ValueId AddVideoBlock(Graph& graph, const VideoDecoderConfig& config, int64_t block, ValueId x,
                      ValueId positions) {
  Builder b(graph, absl::StrCat("block.", block, "/"));
  const std::string prefix = VideoBlockPrefix(block);
  const int64_t extra = config.num_register_tokens + 1;
  const auto tokens = [&](int64_t width) { return Float32(RowSpace::kVoxels, 1, extra, width); };
  const auto name = [&](absl::string_view parameter) { return absl::StrCat(prefix, parameter); };
  const int64_t width = config.Width();
  const int64_t ffn = config.ffn_mult * width;
  Attributes heads;
  heads.epsilon = static_cast<float>(config.norm_eps);
  heads.head_width = config.attention_head_dim;
  heads.rotary_frequencies = config.RotaryFrequencies();
  heads.rotary_theta = static_cast<float>(config.rope_theta);
  const auto linear = [&](absl::string_view role, ValueId from, absl::string_view module,
                          int64_t outputs) {
    return b.Add(role, OpKind::kDecoderLinear, {from}, WeightAndBias(name(module)),
                 tokens(outputs));
  };

  const ValueId norm1 =
      b.Add("norm1", OpKind::kDecoderRmsNorm, {x}, {name("norm1.weight")}, tokens(width), heads);
  const ValueId q_proj = linear("q_proj", norm1, "attn.to_q", width);
  const ValueId k_proj = linear("k_proj", norm1, "attn.to_k", width);
  const ValueId v_proj = linear("v_proj", norm1, "attn.to_v", width);
  const ValueId q_norm =
      b.Add("q_norm", OpKind::kDecoderHeadNorm, {q_proj}, {}, tokens(width), heads);
  const ValueId k_norm =
      b.Add("k_norm", OpKind::kDecoderHeadNorm, {k_proj}, {}, tokens(width), heads);
  const ValueId rope_q =
      b.Add("rope_q", OpKind::kDecoderRope, {q_norm, positions}, {}, tokens(width), heads);
  const ValueId rope_k =
      b.Add("rope_k", OpKind::kDecoderRope, {k_norm, positions}, {}, tokens(width), heads);
  const ValueId attention = b.Add("attention", OpKind::kDecoderAttention, {rope_q, rope_k, v_proj},
                                  {}, tokens(width), heads);
  const ValueId o_proj = linear("o_proj", attention, "attn.to_out.0", width);
  const ValueId residual_attn = b.Add("residual_attn", OpKind::kDecoderResidual, {x, o_proj},
                                      {name("scale1")}, tokens(width));
  const ValueId norm2 = b.Add("norm2", OpKind::kDecoderRmsNorm, {residual_attn},
                              {name("norm2.weight")}, tokens(width), heads);
  const ValueId gate_up = linear("ffn_gate_up", norm2, "ff.net.0.proj", 2 * ffn);
  const ValueId swiglu = b.Add("swiglu", OpKind::kDecoderSwiGlu, {gate_up}, {}, tokens(ffn));
  const ValueId ffn_down = linear("ffn_down", swiglu, "ff.net.2", width);
  return b.Add("residual_mlp", OpKind::kDecoderResidual, {residual_attn, ffn_down},
               {name("scale2")}, tokens(width));
}

// The values of one instant at one place in the audio decoder.
struct Stage {
  int64_t row_factor;
  int64_t channels;

  Value Rows() const { return Float32(RowSpace::kAudioLatents, row_factor, 0, channels); }
};

std::vector<std::string> ActivationParameters(absl::string_view module) {
  return {absl::StrCat(module, ".act.alpha"), absl::StrCat(module, ".act.beta"),
          absl::StrCat(module, ".upsample.filter"),
          absl::StrCat(module, ".downsample.lowpass.filter")};
}

std::vector<std::string> ConvolutionParameters(absl::string_view module, bool has_bias) {
  std::vector<std::string> names = {absl::StrCat(module, ".weight_v"),
                                    absl::StrCat(module, ".weight_g")};
  if (has_bias) names.push_back(absl::StrCat(module, ".bias"));
  return names;
}

Attributes Normalised(int64_t dilation) {
  Attributes attributes;
  attributes.weight_norm = true;
  attributes.dilation = dilation;
  return attributes;
}

// For each dilation x += conv2(act(conv1(act(x)))).
ValueId AddAmpBlock(Graph& graph, const AudioDecoderConfig& config, int64_t stage, int64_t kernel,
                    const Stage& at, ValueId x) {
  const std::string name = absl::StrCat("stage.", stage, "/amp.", kernel);
  const std::string prefix = AmpBlockPrefix(config, stage, kernel);
  const std::vector<int64_t>& dilations =
      config.resblock_dilation_sizes[static_cast<size_t>(kernel)];
  graph.StartSegment(name);
  for (size_t i = 0; i < dilations.size(); ++i) {
    Builder b(graph, absl::StrCat(name, "/", i, "/"));
    const auto activation = [&](absl::string_view role, ValueId from, size_t number) {
      return b.Add(role, OpKind::kSnakeBeta, {from},
                   ActivationParameters(absl::StrCat(prefix, "activations.", number)), at.Rows());
    };
    const auto convolution = [&](absl::string_view role, ValueId from, absl::string_view module,
                                 int64_t dilation) {
      return b.Add(role, OpKind::kConv1d, {from},
                   ConvolutionParameters(absl::StrCat(prefix, module, i), true), at.Rows(),
                   Normalised(dilation));
    };
    const ValueId act1 = activation("act1", x, 2 * i);
    const ValueId conv1 = convolution("conv1", act1, "convs1.", dilations[i]);
    const ValueId act2 = activation("act2", conv1, 2 * i + 1);
    const ValueId conv2 = convolution("conv2", act2, "convs2.", 1);
    x = b.Add("residual", OpKind::kDecoderResidual, {x, conv2}, {}, at.Rows());
  }
  return x;
}

}  // namespace

Graph BuildVideoDecoderGraph(const VideoDecoderConfig& config) {
  Graph graph;
  const int64_t extra = config.num_register_tokens + 1;
  const int64_t width = config.Width();
  const auto voxels = [](int64_t columns) { return Float32(RowSpace::kVoxels, 1, 0, columns); };
  const auto tokens = [&](int64_t columns) {
    return Float32(RowSpace::kVoxels, 1, extra, columns);
  };
  Value latents = voxels(config.latent_channels);
  latents.name = kDecoderLatents;
  Value positions = tokens(3);
  positions.name = kDecoderPositions;
  positions.dtype = DType::kF64;
  positions.batched = false;
  const ValueId z = graph.AddInput(std::move(latents));
  const ValueId position_ids = graph.AddInput(std::move(positions));

  graph.StartSegment("inputs");
  Builder b(graph, "");
  const ValueId quantised = b.Add("post_quant_conv", OpKind::kDecoderLinear, {z},
                                  WeightAndBias("post_quant_conv"), voxels(config.latent_channels));
  const ValueId proj_in = b.Add("proj_in", OpKind::kDecoderLinear, {quantised},
                                WeightAndBias("decoder.proj_in"), voxels(width));
  ValueId h = b.Add("append_tokens", OpKind::kAppendTokens, {proj_in}, {"decoder.register_tokens"},
                    tokens(width));
  for (int64_t block = 0; block < config.num_layers; ++block) {
    graph.StartSegment(absl::StrCat("block.", block));
    h = AddVideoBlock(graph, config, block, h, position_ids);
  }
  graph.StartSegment("outputs");
  Attributes epsilon;
  epsilon.epsilon = static_cast<float>(config.norm_eps);
  const ValueId norm_out = b.Add("norm_out", OpKind::kDecoderLayerNorm, {h},
                                 WeightAndBias("decoder.norm_out"), tokens(width), epsilon);
  graph.MarkOutput(b.Add(kVideoDecoderOutput, OpKind::kDecoderLinear, {norm_out},
                         WeightAndBias("decoder.proj_out"), tokens(config.PatchValues())));
  return graph;
}

Graph BuildAudioDecoderGraph(const AudioDecoderConfig& config) {
  Graph graph;
  Stage at{1, config.latent_channels};
  Value latents = at.Rows();
  latents.name = kDecoderLatents;
  const ValueId z = graph.AddInput(std::move(latents));

  graph.StartSegment("inputs");
  Builder b(graph, "");
  at.channels = config.latent_dim;
  const ValueId projected =
      b.Add("dec_in_proj", OpKind::kConv1d, {z}, WeightAndBias("dec_in_proj"), at.Rows());
  at.channels = config.decoder_dim;
  ValueId x = b.Add("conv_pre", OpKind::kConv1d, {projected},
                    ConvolutionParameters("decoder.conv_pre", true), at.Rows(), Normalised(1));
  for (size_t stage = 0; stage < config.rates.size(); ++stage) {
    Builder of_stage(graph, absl::StrCat("stage.", stage, "/"));
    graph.StartSegment(absl::StrCat("stage.", stage));
    at.row_factor *= config.rates[stage];
    at.channels /= 2;
    Attributes upsampling;
    upsampling.stride = config.rates[stage];
    x = of_stage.Add("upsample", OpKind::kConvTranspose1d, {x},
                     ConvolutionParameters(absl::StrCat("decoder.ups.", stage, ".0"), true),
                     at.Rows(), upsampling);
    std::vector<ValueId> blocks;
    for (size_t kernel = 0; kernel < config.resblock_kernel_sizes.size(); ++kernel) {
      blocks.push_back(AddAmpBlock(graph, config, static_cast<int64_t>(stage),
                                   static_cast<int64_t>(kernel), at, x));
    }
    x = of_stage.Add("mean", OpKind::kMean, blocks, {}, at.Rows());
  }
  graph.StartSegment("outputs");
  x = b.Add("activation_post", OpKind::kSnakeBeta, {x},
            ActivationParameters("decoder.activation_post"), at.Rows());
  at.channels = 1;
  graph.MarkOutput(b.Add(kAudioDecoderOutput, OpKind::kConv1d, {x},
                         ConvolutionParameters("decoder.conv_post", false), at.Rows(),
                         Normalised(1)));
  return graph;
}

}  // namespace plumbline::h3
