// The operation set: everything that a graph node can ask for. Numbers are decided by the classes
// that implement these operations (kernels/golden, kernels/provider, kernels/candidate, plug-ins)
// and nowhere else.
//
// Precision. Every implementation works in one of two:
//   kFloat32  every activation and gradient is float32; parameters may be stored as bfloat16 and
//   are widened. kMixed    activations and gradients have the type that the graph gives (bfloat16,
//   and float32 around the timestep
//             path and the heads); a parameter's gradient has the parameter's type.
// "One rounding" means: accumulate in float32, round to bfloat16 once.
#ifndef PLUMBLINE_KERNELS_OPS_H_
#define PLUMBLINE_KERNELS_OPS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/tensor.h"

namespace plumbline {

class Device;
class ThreadPool;

// Slots are written as name(rows, width); R packed rows, T distinct timesteps, H hidden width, D
// head width. Index and position inputs, tables and parameters have batch 1 and are shared by all
// batch items; their gradients sum over the batch, item after item.
enum class OpKind {
  // inputs: timestep(T, 1) float32. Output (T, 2 F): cos(t f_i) then sin(t f_i), f_i =
  // exp(-ln(10000) i / F), i < F, evaluated in float32. No gradient.
  kTimeProjection,
  // inputs: features(T, F). Parameters: linear_1.weight, linear_1.bias, linear_2.weight,
  // linear_2.bias. linear_2(SiLU(linear_1(features))), float32 throughout in either precision.
  kTimeEmbedder,
  // inputs: x(R, K). Parameters: weight(N, K)[, bias(1, N)]. x is cast to the weight's type, one
  // rounding after the bias. Output (R, N) in the weight's type. Gradients: dx = dy W, cast to x's
  // type; dW = dy^T x and db = sum of dy over rows, each a float32 sum rounded once.
  kLinear,
  // inputs: temb(T, E) float32. Parameters: weight(N, E), bias(1, N). SiLU in float32, cast to the
  // weight's type, then as kLinear. Gradient of temb: the rounded product with W, times SiLU' in
  // float32.
  kAdalnProjection,
  // inputs: x(R, W). Parameters: weight(1, G), W a multiple of G. RMSNorm of each run of G
  // channels: statistics and product in float32, one rounding. Gradients in float32, one rounding.
  kRmsNorm,
  // inputs: x(R, H), scale(table, H), shift(table, H), index(R, 1). Parameters: weight(1, H). n =
  // RMSNorm(x) as kRmsNorm; output = round(round(n * round(1 + scale[index])) + shift[index]).
  // Backward of g: dshift[index] += g; dscale[index] += round(g n); dn = round(g round(1 + scale)),
  // then as kRmsNorm. How the table sums are ordered and rounded is the implementation's promise.
  kModulatedRmsNorm,
  // inputs: x(R, heads * D), position_ids(R, 3) float64. inv_freq_j = 1 / theta^(2j / 2F), j < F,
  // F rotary_frequencies, and angle = float32(position) * inv_freq, both in float32; angles of the
  // three axes concatenated to 3 F and duplicated to 6 F; cos and sin in float32, cast to x's type.
  // Over the first 6 F channels of each head x cos + concat(-x2, x1) sin (x1, x2 the halves), each
  // product and the sum rounded; the other channels pass.
  kRope,
  // inputs: q, k, v (R, heads * D). softmax(q k^T / sqrt(D)) v for each head and each batch item,
  // no mask.
  kAttention,
  // inputs: x(R, H), branch(R, H), gate(table, H), index(R, 1). round(x + round(gate[index] *
  // branch)). Backward of g: dx = g; dbranch = round(g gate); dgate[index] += round(g branch).
  kGatedResidual,
  // inputs: x(R, W), branch(R, W). round(x + branch). Both gradients are g.
  kResidual,
  // inputs: gate_up(R, 2 F): value a, then gate b. round(a * round(SiLU(b))). Backward of g: da =
  // round(g s), s the rounded SiLU; ds = round(g a); db = round(ds SiLU'(b)).
  kSwiGlu,
  // inputs: text(Rt, H), video(Rv, H), audio(Ra, H), text_indices, video_indices, audio_indices
  // (each (rows, 1)). Output (R, H): each source row cast to the output type and put at its index;
  // every row is written exactly once.
  kScatterRows,
  // inputs: x(R, W), indices(n, 1). Output (n, W): the rows of x at the indices, which are
  // distinct. The gradient is zero elsewhere.
  kGatherRows,
  // inputs: x(R, W). Output (R, W): the values rounded to the output's type. The gradient is cast
  // back to x's type.
  kCast,
  // inputs: a, b of one shape. round(a + b); the output may be a's memory. A gradient reaching a
  // value with several uses is the sum of theirs, added two at a time in the order in which the
  // backward produces them. Forward only.
  kGradSum,

  // Of the decoders. All values, and all parameters, are float32; forward only. Rows are tokens of
  // a
  // tile in the video decoder and instants in the audio decoder, width is channels. Where a node
  // says "float16", a provider on a GPU works under PyTorch's float16 autocast: what it reads there
  // is rounded to float16 first, and so is its result, which float32 then holds.

  // As kLinear. float16.
  kDecoderLinear,
  // inputs: x(R, W). Parameters: weight(1, W). RMSNorm of a row.
  kDecoderRmsNorm,
  // inputs: x(R, heads * D). RMSNorm of each head's D channels, without a weight. float16: the
  // result alone.
  kDecoderHeadNorm,
  // inputs: x(R, W). Parameters: weight(1, W), bias(1, W). LayerNorm of a row, the variance that of
  // the whole population.
  kDecoderLayerNorm,
  // As kRope. float16: cos and sin, each product and the sum rounded.
  kDecoderRope,
  // As kAttention. float16.
  kDecoderAttention,
  // As kSwiGlu. float16.
  kDecoderSwiGlu,
  // inputs: x(R, W), branch(R, W). Parameters: none, or scale(1, W). x + branch * scale.
  kDecoderResidual,
  // inputs: x(R, W). Parameters: tokens(1, n * W). Output (R + n + 1, W): x, the n tokens, and a
  // row
  // of zeros.
  kAppendTokens,
  // inputs: x(L, C). Parameters: weight(N, C * K)[, gain(N, 1) if weight_norm][, bias(1, N)], the
  // weight's row n in the order (channel, tap). Output (L, N): y(t, n) = bias(n) + the sum of
  // weight(n, c, k) x(t + (k - (K - 1) / 2) * dilation, c), x being zero outside. With weight_norm
  // the weight is weight(n, .) gain(n) / |weight(n, .)|.
  kConv1d,
  // inputs: x(L, C). Parameters: weight(C, N * K), gain(C, 1), bias(1, N), the weight's row c in
  // the
  // order (channel, tap), normalised as in kConv1d. Output (L * stride, N): y(t, n) = bias(n) + the
  // sum of weight(c, n, k) x(s, c) over all s stride + k - (K - stride) / 2 = t.
  kConvTranspose1d,
  // inputs: x(L, C). Parameters: alpha(1, C), beta(1, C), up(1, K), down(1, K). The activation of
  // BigVGAN between an upsampling by two and a downsampling by two, both of K taps and with the
  // ends
  // repeated: u = 2 * (x convolved up), v = u + sin(exp(alpha) u)^2 / (exp(beta) + 1e-9), y = every
  // second value of (v convolved down).
  kSnakeBeta,
  // inputs: n of shape (L, C). Their sum in order, divided by n.
  kMean,
};

inline constexpr OpKind kLastOp = OpKind::kMean;

// The name of an operation in errors and listings, e.g. "SwiGlu".
absl::string_view OpName(OpKind op);

// What does not come as a tensor. Fields that an operation does not name above are not read by it.
struct Attributes {
  float epsilon = 0;               // the norms
  int64_t head_width = 0;          // kRope, kAttention, and the decoders' three that see heads: D
  int64_t rotary_frequencies = 0;  // kRope: frequencies of each of the three axes
  float rotary_theta = 0;          // kRope
  int64_t dilation = 1;            // kConv1d
  int64_t stride = 1;              // kConvTranspose1d
  bool weight_norm = false;        // kConv1d
};

// One node's forward. Spans point into the plan and stay valid while the plan lives.
struct ForwardCall {
  absl::Span<const Tensor> inputs;
  absl::Span<const Tensor> parameters;
  Attributes attributes;
  // Null only in a fused call, for a node that nobody but the fused operation itself reads.
  Tensor output;
  // SavedBytes() bytes in the device's memory, 64-byte aligned: what this forward hands to its
  // backward beside the inputs and the output. Null when no backward will follow.
  void* saved = nullptr;
};

// One node's backward. The forward's inputs and output are still there.
struct BackwardCall {
  absl::Span<const Tensor> inputs;
  absl::Span<const Tensor> parameters;
  Attributes attributes;
  Tensor output;
  const void* saved = nullptr;
  Tensor grad_output;
  // One for each input and parameter, null where none is wanted. The operation overwrites every
  // value of a view that is not null, rows of a table that no index names with zeros; it never adds
  // to what is there.
  absl::Span<const Tensor> grad_inputs;
  absl::Span<const Tensor> grad_parameters;
};

// Where a call runs. `workspace` is scratch of at least the bytes that the operation asked for,
// 64-byte aligned, whose contents do not outlive the call.
struct ExecutionContext {
  Device* device = nullptr;
  void* stream = nullptr;         // CUDA: a cudaStream_t; CPU: null
  ThreadPool* threads = nullptr;  // CPU: never null; CUDA: null
  absl::Span<uint8_t> workspace;
  // The node that runs, for messages; may be empty.
  absl::string_view node;
  // Whether what a plug-in does to memory is checked. Not where calls are timed.
  bool guarded = true;
};

enum class Precision { kFloat32, kMixed };

// One operation of one implementation. Stateless but for what its constructor fixed: calls may come
// from any thread. On a CPU a call returns when it is done; on a GPU it only enqueues, allocates
// nothing and never synchronises.
class Operation {
 public:
  virtual ~Operation() = default;

  virtual Precision precision() const = 0;
  // Whether there is a Backward() for a node whose output takes a gradient. Asked when a plan is
  // made.
  virtual bool has_backward() const { return true; }
  // Whether it stands for a node that only a fused operation of its implementation computes. Then
  // it never runs, and the plan uses that operation whatever the feed is.
  virtual bool only_fused() const { return false; }

  // Whether the shapes, types and alignments of `call` (whose tensors may be null) are supported;
  // INVALID_ARGUMENT says what is not. Asked when a plan is made, never while it runs.
  virtual absl::Status Check(const ForwardCall& call) const { return absl::OkStatus(); }

  // Sizes for `call`, whose tensors may be null.
  virtual size_t SavedBytes(const ForwardCall& call) const { return 0; }
  virtual size_t ForwardWorkspaceBytes(const ForwardCall& call,
                                       const ExecutionContext& context) const {
    return 0;
  }
  virtual size_t BackwardWorkspaceBytes(const BackwardCall& call,
                                        const ExecutionContext& context) const {
    return 0;
  }

  virtual absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const = 0;
  // Operations without a gradient (kTimeProjection, kGradSum) keep this.
  virtual absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const {
    return absl::UnimplementedError("this operation has no backward");
  }
};

// Computes consecutive nodes in one pass. Its bytes, saved state included, are those of the unfused
// operations of the same implementation, whether an output is asked for or not; so the unfused
// backwards serve it.
class FusedOperation {
 public:
  virtual ~FusedOperation() = default;
  // `calls` are in node order; an input that is the output of an earlier call of the span has that
  // call's view, which is null when nobody else asked for it.
  virtual absl::Status Check(absl::Span<const ForwardCall> calls) const { return absl::OkStatus(); }
  virtual size_t WorkspaceBytes(absl::Span<const ForwardCall> calls,
                                const ExecutionContext& context) const {
    return 0;
  }
  virtual absl::Status Forward(const ExecutionContext& context,
                               absl::Span<const ForwardCall> calls) const = 0;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_OPS_H_
