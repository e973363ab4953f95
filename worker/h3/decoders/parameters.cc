#include "worker/h3/decoders/parameters.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace plumbline::h3 {
namespace {

class List {
 public:
  void Add(std::string name, std::vector<int64_t> shape) {
    parameters_.push_back({std::move(name), DType::kF32, std::move(shape)});
  }
  void AddLinear(absl::string_view name, int64_t outputs, int64_t inputs) {
    Add(absl::StrCat(name, ".weight"), {outputs, inputs});
    Add(absl::StrCat(name, ".bias"), {outputs});
  }
  // A convolution with a normalised weight, whose first extent has a gain each.
  void AddConvolution(absl::string_view name, int64_t first, int64_t second, int64_t taps,
                      int64_t biases) {
    if (biases > 0) Add(absl::StrCat(name, ".bias"), {biases});
    Add(absl::StrCat(name, ".weight_g"), {first, 1, 1});
    Add(absl::StrCat(name, ".weight_v"), {first, second, taps});
  }
  void AddActivation(absl::string_view name, int64_t channels) {
    Add(absl::StrCat(name, ".act.alpha"), {channels});
    Add(absl::StrCat(name, ".act.beta"), {channels});
    Add(absl::StrCat(name, ".upsample.filter"), {1, 1, kResamplingTaps});
    Add(absl::StrCat(name, ".downsample.lowpass.filter"), {1, 1, kResamplingTaps});
  }
  std::vector<ParameterSpec> Take() { return std::move(parameters_); }

 private:
  std::vector<ParameterSpec> parameters_;
};

}  // namespace

std::string VideoBlockPrefix(int64_t block) {
  return absl::StrCat("decoder.transformer_blocks.", block, ".");
}

std::string AmpBlockPrefix(const AudioDecoderConfig& config, int64_t stage, int64_t kernel) {
  const int64_t kernels = static_cast<int64_t>(config.resblock_kernel_sizes.size());
  return absl::StrCat("decoder.resblocks.", stage * kernels + kernel, ".");
}

std::vector<ParameterSpec> VideoDecoderParameters(const VideoDecoderConfig& config) {
  const int64_t width = config.Width();
  const int64_t ffn = config.ffn_mult * width;
  List list;
  list.Add("post_quant_conv.weight", {config.latent_channels, config.latent_channels, 1, 1, 1});
  list.Add("post_quant_conv.bias", {config.latent_channels});
  list.AddLinear("decoder.proj_in", width, config.latent_channels);
  list.Add("decoder.register_tokens", {1, config.num_register_tokens, width});
  for (int64_t block = 0; block < config.num_layers; ++block) {
    const std::string prefix = VideoBlockPrefix(block);
    list.Add(absl::StrCat(prefix, "norm1.weight"), {width});
    for (absl::string_view projection : {"attn.to_q", "attn.to_k", "attn.to_v", "attn.to_out.0"}) {
      list.AddLinear(absl::StrCat(prefix, projection), width, width);
    }
    list.Add(absl::StrCat(prefix, "scale1"), {width});
    list.Add(absl::StrCat(prefix, "norm2.weight"), {width});
    list.AddLinear(absl::StrCat(prefix, "ff.net.0.proj"), 2 * ffn, width);
    list.AddLinear(absl::StrCat(prefix, "ff.net.2"), width, ffn);
    list.Add(absl::StrCat(prefix, "scale2"), {width});
  }
  list.Add("decoder.norm_out.weight", {width});
  list.Add("decoder.norm_out.bias", {width});
  list.AddLinear("decoder.proj_out", config.PatchValues(), width);
  return list.Take();
}

std::vector<ParameterSpec> AudioDecoderParameters(const AudioDecoderConfig& config) {
  List list;
  list.Add("dec_in_proj.weight", {config.latent_dim, config.latent_channels, 1});
  list.Add("dec_in_proj.bias", {config.latent_dim});
  list.AddConvolution("decoder.conv_pre", config.decoder_dim, config.latent_dim, 7,
                      config.decoder_dim);
  int64_t channels = config.decoder_dim;
  for (size_t stage = 0; stage < config.rates.size(); ++stage) {
    list.AddConvolution(absl::StrCat("decoder.ups.", stage, ".0"), channels, channels / 2,
                        config.kernel_sizes[stage], channels / 2);
    channels /= 2;
    for (size_t kernel = 0; kernel < config.resblock_kernel_sizes.size(); ++kernel) {
      const std::string prefix =
          AmpBlockPrefix(config, static_cast<int64_t>(stage), static_cast<int64_t>(kernel));
      const size_t dilations = config.resblock_dilation_sizes[kernel].size();
      for (size_t i = 0; i < dilations; ++i) {
        list.AddActivation(absl::StrCat(prefix, "activations.", 2 * i), channels);
        list.AddConvolution(absl::StrCat(prefix, "convs1.", i), channels, channels,
                            config.resblock_kernel_sizes[kernel], channels);
        list.AddActivation(absl::StrCat(prefix, "activations.", 2 * i + 1), channels);
        list.AddConvolution(absl::StrCat(prefix, "convs2.", i), channels, channels,
                            config.resblock_kernel_sizes[kernel], channels);
      }
    }
  }
  list.AddActivation("decoder.activation_post", channels);
  list.AddConvolution("decoder.conv_post", 1, channels, 7, 0);
  return list.Take();
}

}  // namespace plumbline::h3
