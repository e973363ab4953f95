#include "worker/h3/transformer_graph.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace plumbline::h3 {
namespace {

// Columns of the AdaLN table (3 T, 6 H), in units of H.
enum TableColumn { kShiftMsa, kScaleMsa, kGateMsa, kShiftMlp, kScaleMlp, kGateMlp, kTableColumns };
// The table has a row for each (timestep, modality).
constexpr int64_t kModalities = 3;

// Adds nodes of one place in the model: all names get its prefix, all parameters theirs.
class Builder {
 public:
  Builder(Graph& graph, const TransformerConfig& config, RowSpace rows)
      : graph_(graph), config_(config), rows_(rows) {}

  void SetPrefixes(std::string node_prefix, std::string parameter_prefix) {
    node_prefix_ = std::move(node_prefix);
    parameter_prefix_ = std::move(parameter_prefix);
  }

  ValueId Add(absl::string_view role, OpKind op, std::vector<Use> inputs,
              std::vector<std::string> parameters, int64_t width, Attributes attributes = {},
              DType dtype = DType::kBF16) {
    Node node = MakeNode(role, op, std::move(inputs), std::move(parameters), attributes);
    return graph_.AddNode(std::move(node), {"", rows_, width, dtype});
  }

  // A value that depends on the timesteps alone: not replicated by the batch.
  ValueId AddPerTimestep(absl::string_view role, OpKind op, ValueId input,
                         std::vector<std::string> parameters, int64_t width, DType dtype,
                         bool differentiable) {
    Node node = MakeNode(role, op, {{input}}, std::move(parameters), {});
    Value output{"", RowSpace::kTimesteps, width, dtype};
    output.batched = false;
    output.differentiable = differentiable;
    return graph_.AddNode(std::move(node), std::move(output));
  }

  ValueId Linear(absl::string_view role, ValueId x, std::string weight, int64_t width) {
    return Add(role, OpKind::kLinear, {{x}}, {std::move(weight)}, width);
  }

  ValueId HeadNorm(absl::string_view role, ValueId x, std::string weight) {
    return Add(role, OpKind::kRmsNorm, {{x}}, {std::move(weight)}, inner(),
               Epsilon(config_.qk_norm_eps));
  }

  ValueId Attention(ValueId q, ValueId k, ValueId v) {
    Attributes attributes;
    attributes.head_width = config_.attention_head_dim;
    return Add("attention", OpKind::kAttention, {{q}, {k}, {v}}, {}, inner(), attributes);
  }

  static Attributes Epsilon(float epsilon) {
    Attributes attributes;
    attributes.epsilon = epsilon;
    return attributes;
  }

  int64_t hidden() const { return config_.hidden_size; }
  int64_t inner() const { return config_.num_attention_heads * config_.attention_head_dim; }

 private:
  Node MakeNode(absl::string_view role, OpKind op, std::vector<Use> inputs,
                std::vector<std::string> parameters, Attributes attributes) {
    Node node;
    node.name = absl::StrCat(node_prefix_, role);
    node.role = std::string(role);
    node.op = op;
    node.inputs = std::move(inputs);
    for (std::string& parameter : parameters)
      parameter = absl::StrCat(parameter_prefix_, parameter);
    node.parameters = std::move(parameters);
    node.attributes = attributes;
    return node;
  }

  Graph& graph_;
  const TransformerConfig& config_;
  RowSpace rows_;
  std::string node_prefix_;
  std::string parameter_prefix_;
};

Value Index(std::string name, RowSpace rows) {
  Value value{std::move(name), rows, 1, DType::kI64};
  value.batched = false;
  value.differentiable = false;
  return value;
}

Value Positions() {
  Value value{"position_ids", RowSpace::kPacked, 3, DType::kF64};
  value.batched = false;
  value.differentiable = false;
  return value;
}

Value PerTimestepInput(std::string name, int64_t width, bool differentiable) {
  Value value{std::move(name), RowSpace::kTimesteps, width, DType::kF32};
  value.batched = false;
  value.differentiable = differentiable;
  return value;
}

// What every block reads beside the residual stream.
struct BlockContext {
  ValueId temb;
  ValueId position_ids;
  ValueId adaln_indices;
};

// The 17 nodes, in the order in which they execute. Returns the new residual stream.
ValueId AddBlock(Graph& graph, const TransformerConfig& config, int64_t block, ValueId x,
                 const BlockContext& context) {
  Builder b(graph, config, RowSpace::kPacked);
  b.SetPrefixes(absl::StrCat("block.", block, "/"),
                absl::StrCat("transformer_blocks.", block, "."));
  const int64_t hidden = b.hidden();

  const ValueId table =
      b.AddPerTimestep("adaln_projection", OpKind::kAdalnProjection, context.temb,
                       {"adaln_proj.linear.weight", "adaln_proj.linear.bias"},
                       kModalities * kTableColumns * hidden, DType::kBF16, /*differentiable=*/true);
  const auto chunk = [&](TableColumn column) {
    return Use{table, kModalities, column * hidden, hidden};
  };
  const Use index{context.adaln_indices};
  Attributes rope;
  rope.head_width = config.attention_head_dim;
  rope.rotary_frequencies = config.rope_freq_dim;
  rope.rotary_theta = config.rope_theta;

  const ValueId norm1 =
      b.Add("norm1", OpKind::kModulatedRmsNorm, {{x}, chunk(kScaleMsa), chunk(kShiftMsa), index},
            {"norm1.weight"}, hidden, Builder::Epsilon(config.norm_eps));
  const ValueId q_proj = b.Linear("q_proj", norm1, "attn.to_q.weight", b.inner());
  const ValueId k_proj = b.Linear("k_proj", norm1, "attn.to_k.weight", b.inner());
  const ValueId v_proj = b.Linear("v_proj", norm1, "attn.to_v.weight", b.inner());
  const ValueId q_norm = b.HeadNorm("q_norm", q_proj, "attn.norm_q.weight");
  const ValueId k_norm = b.HeadNorm("k_norm", k_proj, "attn.norm_k.weight");
  const ValueId rope_q =
      b.Add("rope_q", OpKind::kRope, {{q_norm}, {context.position_ids}}, {}, b.inner(), rope);
  const ValueId rope_k =
      b.Add("rope_k", OpKind::kRope, {{k_norm}, {context.position_ids}}, {}, b.inner(), rope);
  const ValueId attention = b.Attention(rope_q, rope_k, v_proj);
  const ValueId o_proj = b.Linear("o_proj", attention, "attn.to_out.0.weight", hidden);
  const ValueId residual_attn = b.Add("residual_attn", OpKind::kGatedResidual,
                                      {{x}, {o_proj}, chunk(kGateMsa), index}, {}, hidden);
  const ValueId norm2 = b.Add("norm2", OpKind::kModulatedRmsNorm,
                              {{residual_attn}, chunk(kScaleMlp), chunk(kShiftMlp), index},
                              {"norm2.weight"}, hidden, Builder::Epsilon(config.norm_eps));
  const ValueId gate_up =
      b.Linear("ffn_gate_up", norm2, "ff.net.0.proj.weight", 2 * config.ffn_dim);
  const ValueId swiglu = b.Add("swiglu", OpKind::kSwiGlu, {{gate_up}}, {}, config.ffn_dim);
  const ValueId ffn_down = b.Linear("ffn_down", swiglu, "ff.net.2.weight", hidden);
  return b.Add("residual_mlp", OpKind::kGatedResidual,
               {{residual_attn}, {ffn_down}, chunk(kGateMlp), index}, {}, hidden);
}

// A refiner block: no modulation, no rotary.
ValueId AddRefinerBlock(Graph& graph, const TransformerConfig& config, int64_t block, ValueId x) {
  Builder b(graph, config, RowSpace::kText);
  b.SetPrefixes(absl::StrCat("refiner.", block, "/"),
                absl::StrCat("token_refiner.refiner_blocks.", block, "."));
  const Attributes epsilon = Builder::Epsilon(config.norm_eps);

  const ValueId norm1 =
      b.Add("norm1", OpKind::kRmsNorm, {{x}}, {"norm1.weight"}, b.hidden(), epsilon);
  const ValueId q_proj = b.Linear("q_proj", norm1, "attn.to_q.weight", b.inner());
  const ValueId k_proj = b.Linear("k_proj", norm1, "attn.to_k.weight", b.inner());
  const ValueId v_proj = b.Linear("v_proj", norm1, "attn.to_v.weight", b.inner());
  const ValueId q_norm = b.HeadNorm("q_norm", q_proj, "attn.norm_q.weight");
  const ValueId k_norm = b.HeadNorm("k_norm", k_proj, "attn.norm_k.weight");
  const ValueId attention = b.Attention(q_norm, k_norm, v_proj);
  const ValueId o_proj = b.Linear("o_proj", attention, "attn.to_out.0.weight", b.hidden());
  const ValueId residual_attn =
      b.Add("residual_attn", OpKind::kResidual, {{x}, {o_proj}}, {}, b.hidden());
  const ValueId norm2 =
      b.Add("norm2", OpKind::kRmsNorm, {{residual_attn}}, {"norm2.weight"}, b.hidden(), epsilon);
  const ValueId gate_up =
      b.Linear("ffn_gate_up", norm2, "ff.net.0.proj.weight", 2 * config.ffn_dim);
  const ValueId swiglu = b.Add("swiglu", OpKind::kSwiGlu, {{gate_up}}, {}, config.ffn_dim);
  const ValueId ffn_down = b.Linear("ffn_down", swiglu, "ff.net.2.weight", b.hidden());
  return b.Add("residual_mlp", OpKind::kResidual, {{residual_attn}, {ffn_down}}, {}, b.hidden());
}

std::vector<std::string> WeightAndBias(absl::string_view module) {
  return {absl::StrCat(module, ".weight"), absl::StrCat(module, ".bias")};
}

}  // namespace

const std::vector<std::string>& BlockRoles() {
  static const auto* const roles = new std::vector<std::string>{
      "adaln_projection", "norm1",         "q_proj", "k_proj",      "v_proj",
      "q_norm",           "k_norm",        "rope_q", "rope_k",      "attention",
      "o_proj",           "residual_attn", "norm2",  "ffn_gate_up", "swiglu",
      "ffn_down",         "residual_mlp"};
  return *roles;
}

Graph BuildBlockGraph(const TransformerConfig& config, int64_t block) {
  Graph graph;
  const ValueId x =
      graph.AddInput({"block.input", RowSpace::kPacked, config.hidden_size, DType::kBF16});
  BlockContext context;
  context.temb = graph.AddInput(
      PerTimestepInput("block.temb", config.time_embed_dim, /*differentiable=*/true));
  context.position_ids = graph.AddInput(Positions());
  context.adaln_indices = graph.AddInput(Index("adaln_indices", RowSpace::kPacked));
  graph.StartSegment(absl::StrCat("block.", block));
  graph.MarkOutput(AddBlock(graph, config, block, x, context));
  return graph;
}

Graph BuildTransformerGraph(const TransformerConfig& config) {
  Graph graph;
  const int64_t video_width = config.VideoRowWidth();
  const ValueId video_rows =
      graph.AddInput({"input.hidden_states", RowSpace::kVideo, video_width, DType::kF32});
  const ValueId audio_rows = graph.AddInput(
      {"input.audio_hidden_states", RowSpace::kAudio, config.audio_in_channels, DType::kF32});
  const ValueId text_rows = graph.AddInput(
      {"input.encoder_hidden_states", RowSpace::kText, config.text_dim, DType::kF32});
  const ValueId timestep =
      graph.AddInput(PerTimestepInput("timestep", 1, /*differentiable=*/false));
  BlockContext context;
  context.position_ids = graph.AddInput(Positions());
  context.adaln_indices = graph.AddInput(Index("adaln_indices", RowSpace::kPacked));
  const ValueId timestep_indices = graph.AddInput(Index("timestep_indices", RowSpace::kPacked));
  const ValueId text_indices = graph.AddInput(Index("text_indices", RowSpace::kText));
  const ValueId video_indices = graph.AddInput(Index("video_indices", RowSpace::kVideo));
  const ValueId audio_indices = graph.AddInput(Index("audio_indices", RowSpace::kAudio));

  graph.StartSegment("inputs");
  Builder video(graph, config, RowSpace::kVideo);
  Builder audio(graph, config, RowSpace::kAudio);
  Builder text(graph, config, RowSpace::kText);
  Builder packed(graph, config, RowSpace::kPacked);
  const int64_t hidden = config.hidden_size;

  const ValueId proj_in = video.Add("proj_in", OpKind::kLinear, {{video_rows}},
                                    WeightAndBias("proj_in"), hidden, {}, DType::kF32);
  const ValueId audio_proj_in = audio.Add("audio_proj_in", OpKind::kLinear, {{audio_rows}},
                                          WeightAndBias("audio_proj_in"), hidden, {}, DType::kF32);
  ValueId refined = text.Add("context_embedder", OpKind::kLinear, {{text_rows}},
                             WeightAndBias("context_embedder"), hidden);
  for (int64_t block = 0; block < config.num_refiner_layers; ++block) {
    refined = AddRefinerBlock(graph, config, block, refined);
  }
  refined =
      text.Add("token_refiner", OpKind::kRmsNorm, {{refined}}, {"token_refiner.final_norm.weight"},
               hidden, Builder::Epsilon(config.final_norm_eps));
  ValueId h = packed.Add(
      "scatter", OpKind::kScatterRows,
      {{refined}, {proj_in}, {audio_proj_in}, {text_indices}, {video_indices}, {audio_indices}}, {},
      hidden);
  const ValueId time_proj =
      packed.AddPerTimestep("time_proj", OpKind::kTimeProjection, timestep, {}, config.freq_dim,
                            DType::kF32, /*differentiable=*/false);
  context.temb =
      packed.AddPerTimestep("time_embedder", OpKind::kTimeEmbedder, time_proj,
                            {"time_embedder.linear_1.weight", "time_embedder.linear_1.bias",
                             "time_embedder.linear_2.weight", "time_embedder.linear_2.bias"},
                            config.time_embed_dim, DType::kF32, /*differentiable=*/true);

  for (int64_t block = 0; block < config.num_layers; ++block) {
    graph.StartSegment(absl::StrCat("block.", block));
    h = AddBlock(graph, config, block, h, context);
  }

  graph.StartSegment("outputs");
  const ValueId shift_scale = packed.AddPerTimestep(
      "norm_out/linear", OpKind::kAdalnProjection, context.temb, WeightAndBias("norm_out.linear"),
      2 * hidden, DType::kBF16, /*differentiable=*/true);
  const ValueId norm_out = packed.Add(
      "norm_out", OpKind::kModulatedRmsNorm,
      {{h}, {shift_scale, 1, hidden, hidden}, {shift_scale, 1, 0, hidden}, {timestep_indices}},
      {"norm_out.norm.weight"}, hidden, Builder::Epsilon(config.final_norm_eps));
  // One cast for both heads: their gradients meet in float32.
  const ValueId cast =
      packed.Add("norm_out/float32", OpKind::kCast, {{norm_out}}, {}, hidden, {}, DType::kF32);
  const ValueId proj_out = packed.Add("proj_out", OpKind::kLinear, {{cast}},
                                      WeightAndBias("proj_out"), video_width, {}, DType::kF32);
  const ValueId audio_proj_out =
      packed.Add("audio_proj_out", OpKind::kLinear, {{cast}}, WeightAndBias("audio_proj_out"),
                 config.audio_in_channels, {}, DType::kF32);
  graph.MarkOutput(video.Add("output.video", OpKind::kGatherRows, {{proj_out}, {video_indices}}, {},
                             video_width, {}, DType::kF32));
  graph.MarkOutput(audio.Add("output.audio", OpKind::kGatherRows,
                             {{audio_proj_out}, {audio_indices}}, {}, config.audio_in_channels, {},
                             DType::kF32));
  return graph;
}

}  // namespace plumbline::h3
