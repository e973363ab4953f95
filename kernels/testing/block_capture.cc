#include "kernels/testing/block_capture.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/numerics/synthetic.h"

namespace plumbline {
namespace {

constexpr char kGolden[] = "tests/golden/";
constexpr char kBlock[] = "transformer_blocks.0.";
constexpr int64_t kHidden = 128;
constexpr int64_t kTimeEmbedding = 64;
constexpr int64_t kHeadWidth = 128;
constexpr int64_t kTags = 3;

// Chunks of the AdaLN table's row.
enum Chunk { kShiftMsa, kScaleMsa, kGateMsa, kShiftMlp, kScaleMlp, kGateMlp };

float ValueAt(const Tensor& tensor, int64_t item, int64_t row, int64_t column) {
  return tensor.dtype == DType::kF32 ? tensor.Row<const float>(row, item)[column]
                                     : WidenBf16(tensor.Row<const bfloat16>(row, item)[column]);
}

void ForEachPair(const Tensor& a, const Tensor& b,
                 const std::function<void(double, double)>& visit) {
  for (int64_t item = 0; item < a.batch; ++item) {
    for (int64_t row = 0; row < a.rows; ++row) {
      for (int64_t column = 0; column < a.width; ++column)
        visit(ValueAt(a, item, row, column), ValueAt(b, item, row, column));
    }
  }
}

bool SameShape(const Tensor& a, const Tensor& b) {
  return a.batch == b.batch && a.rows == b.rows && a.width == b.width;
}

}  // namespace

void HostTensor::Free::operator()(void* data) const { std::free(data); }

HostTensor::HostTensor(DType dtype, int64_t batch, int64_t rows, int64_t width)
    : view_(Tensor::Dense(nullptr, dtype, batch, rows, width)) {
  const size_t bytes = (view_.NumBytes() + 63) / 64 * 64 + 64;
  memory_.reset(std::aligned_alloc(64, bytes));
  // NaN in every float type, so that a value which nobody wrote shows.
  std::memset(memory_.get(), 0xFF, bytes);
  view_.data = memory_.get();
}

absl::StatusOr<HostTensor> ReadHostTensor(const SafetensorsFile& file, absl::string_view name) {
  PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file.Bytes(name));
  const TensorInfo& info = *file.Find(name);
  const std::vector<int64_t>& shape = info.shape;
  int64_t rows = 1;
  int64_t width = 1;
  if (shape.size() == 1) {
    width = shape[0];
  } else if (shape.size() == 2) {
    rows = shape[0];
    width = shape[1];
  } else if (shape.size() > 2) {
    if (shape[0] != 1)
      return absl::InvalidArgumentError(absl::StrCat(name, " has more than one batch item"));
    rows = shape[1];
    for (size_t i = 2; i < shape.size(); ++i) width *= shape[i];
  }
  HostTensor tensor(info.dtype, 1, rows, width);
  std::memcpy(tensor.view().data, bytes.data(), bytes.size());
  return tensor;
}

absl::StatusOr<std::unique_ptr<BlockCapture>> BlockCapture::Open(absl::string_view file) {
  std::unique_ptr<BlockCapture> capture(new BlockCapture());
  PLUMBLINE_RETURN_IF_ERROR(capture->ReadTensors(file));
  capture->AddNodes();
  return capture;
}

const CapturedNode& BlockCapture::node(absl::string_view name) const {
  return *std::find_if(nodes_.begin(), nodes_.end(),
                       [name](const CapturedNode& node) { return node.name == name; });
}

Tensor BlockCapture::Keep(const std::string& name, HostTensor tensor) {
  return tensors_.emplace(name, std::move(tensor)).first->second.view();
}

absl::Status BlockCapture::ReadTensors(absl::string_view file) {
  const auto keep = [this](const SafetensorsFile& from, const std::string& name,
                           const std::string& kept_as) {
    absl::StatusOr<HostTensor> tensor = ReadHostTensor(from, name);
    if (!tensor.ok()) return tensor.status();
    Keep(kept_as, *std::move(tensor));
    return absl::OkStatus();
  };
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsFile capture,
                             SafetensorsFile::Open(absl::StrCat(kGolden, file, ".safetensors")));
  for (const TensorInfo& info : capture.tensors())
    PLUMBLINE_RETURN_IF_ERROR(keep(capture, info.name, info.name));
  PLUMBLINE_ASSIGN_OR_RETURN(
      SafetensorsFile inputs,
      SafetensorsFile::Open(absl::StrCat(kGolden, "transformer_inputs.safetensors")));
  for (const TensorInfo& info : inputs.tensors())
    PLUMBLINE_RETURN_IF_ERROR(keep(inputs, info.name, info.name));
  PLUMBLINE_ASSIGN_OR_RETURN(
      SafetensorsFile checkpoint,
      SafetensorsFile::Open(absl::StrCat(
          kGolden, "checkpoint/transformer/diffusion_pytorch_model.safetensors.index.json")));
  for (const TensorInfo& info : checkpoint.tensors()) {
    if (!absl::StartsWith(info.name, kBlock)) continue;
    PLUMBLINE_RETURN_IF_ERROR(
        keep(checkpoint, info.name, absl::StrCat("weight.", absl::StripPrefix(info.name, kBlock))));
  }
  return absl::OkStatus();
}

Tensor BlockCapture::AddSynthetic(const std::string& name, double scale, DType dtype,
                                  DType rounded_to, int64_t rows, int64_t width) {
  std::vector<float> values(static_cast<size_t>(rows * width));
  FillSynthetic(name, 0, {scale, 0.0}, 0, absl::MakeSpan(values));
  HostTensor tensor(dtype, 1, rows, width);
  for (size_t i = 0; i < values.size(); ++i) {
    if (rounded_to == DType::kBF16) values[i] = RoundThroughBf16(values[i]);
    if (dtype == DType::kF32)
      static_cast<float*>(tensor.view().data)[i] = values[i];
    else
      static_cast<bfloat16*>(tensor.view().data)[i] = RoundToBf16(values[i]);
  }
  return Keep(name, std::move(tensor));
}

CapturedNode& BlockCapture::AddNode(const std::string& name, OpKind op, std::vector<Tensor> inputs,
                                    std::vector<Tensor> grad_inputs,
                                    const std::vector<std::string>& parameters) {
  CapturedNode node;
  node.name = name;
  node.op = op;
  node.inputs = std::move(inputs);
  node.grad_inputs = std::move(grad_inputs);
  // Slots after the given gradients are indices or positions.
  node.input_has_gradient.assign(node.inputs.size(), false);
  std::fill_n(node.input_has_gradient.begin(), node.grad_inputs.size(), true);
  node.grad_inputs.resize(node.inputs.size());
  for (const std::string& parameter : parameters) {
    node.parameters.push_back(tensors_.at(absl::StrCat("weight.", parameter)).view());
    node.grad_parameters.push_back(tensors_.at(absl::StrCat("leaf.", parameter)).view());
  }
  node.output = tensors_.at(absl::StrCat("node.", name)).view();
  node.grad_output = tensors_.at(absl::StrCat("node.", name, ".grad")).view();
  nodes_.push_back(std::move(node));
  return nodes_.back();
}

void BlockCapture::AddNodes() {
  const auto node = [this](absl::string_view name) {
    return tensors_.at(absl::StrCat("node.", name)).view();
  };
  const auto grad = [this](absl::string_view name) {
    return tensors_.at(absl::StrCat("node.", name, ".grad")).view();
  };
  const auto chunk_of = [](const Tensor& adaln, Chunk chunk) {
    return adaln.SplitRows(kTags).Columns(chunk * kHidden, kHidden);
  };
  const auto chunk = [&](Chunk which) { return chunk_of(node("adaln_projection"), which); };
  const auto chunk_grad = [&](Chunk which) { return chunk_of(grad("adaln_projection"), which); };

  const DType activation = node("norm1").dtype;
  const int64_t rows = node("norm1").rows;
  const Tensor input = AddSynthetic("block.input", 1.5, activation, DType::kBF16, rows, kHidden);
  const Tensor temb = AddSynthetic("block.temb", 1.5, DType::kF32, DType::kF32,
                                   node("adaln_projection").rows, kTimeEmbedding);
  HostTensor index_tensor(DType::kI64, 1, rows, 1);
  for (int64_t row = 0; row < rows; ++row) {
    *index_tensor.view().Row<int64_t>(row) =
        tensors_.at("timestep_indices").view().Row<const int64_t>(0)[row] * kTags +
        tensors_.at("token_tags").view().Row<const int64_t>(0)[row];
  }
  const Tensor index = Keep("adaln_index", std::move(index_tensor));
  const Tensor positions = tensors_.at("position_ids").view();
  const Tensor part_of_sum;  // null

  Attributes norm;
  norm.epsilon = 1e-5f;
  Attributes heads;
  heads.head_width = kHeadWidth;
  heads.rotary_frequencies = 16;
  heads.rotary_theta = 10000;

  AddNode("adaln_projection", OpKind::kAdalnProjection, {temb}, {tensors_.at("leaf.temb").view()},
          {"adaln_proj.linear.weight", "adaln_proj.linear.bias"});
  AddNode("norm1", OpKind::kModulatedRmsNorm, {input, chunk(kScaleMsa), chunk(kShiftMsa), index},
          {part_of_sum, chunk_grad(kScaleMsa), chunk_grad(kShiftMsa)}, {"norm1.weight"})
      .attributes = norm;
  for (const std::string letter : {"q", "k", "v"}) {
    AddNode(letter + "_proj", OpKind::kLinear, {node("norm1")}, {part_of_sum},
            {"attn.to_" + letter + ".weight"});
  }
  for (const std::string letter : {"q", "k"}) {
    AddNode(letter + "_norm", OpKind::kRmsNorm, {node(letter + "_proj")}, {grad(letter + "_proj")},
            {"attn.norm_" + letter + ".weight"})
        .attributes = norm;
  }
  for (const std::string letter : {"q", "k"}) {
    AddNode("rope_" + letter, OpKind::kRope, {node(letter + "_norm"), positions},
            {grad(letter + "_norm")}, {})
        .attributes = heads;
  }
  AddNode("attention", OpKind::kAttention, {node("rope_q"), node("rope_k"), node("v_proj")},
          {grad("rope_q"), grad("rope_k"), grad("v_proj")}, {})
      .attributes = heads;
  AddNode("o_proj", OpKind::kLinear, {node("attention")}, {grad("attention")},
          {"attn.to_out.0.weight"});
  AddNode("residual_attn", OpKind::kGatedResidual, {input, node("o_proj"), chunk(kGateMsa), index},
          {part_of_sum, grad("o_proj"), chunk_grad(kGateMsa)}, {});
  AddNode("norm2", OpKind::kModulatedRmsNorm,
          {node("residual_attn"), chunk(kScaleMlp), chunk(kShiftMlp), index},
          {part_of_sum, chunk_grad(kScaleMlp), chunk_grad(kShiftMlp)}, {"norm2.weight"})
      .attributes = norm;
  AddNode("ffn_gate_up", OpKind::kLinear, {node("norm2")}, {grad("norm2")},
          {"ff.net.0.proj.weight"});
  AddNode("swiglu", OpKind::kSwiGlu, {node("ffn_gate_up")}, {grad("ffn_gate_up")}, {});
  AddNode("ffn_down", OpKind::kLinear, {node("swiglu")}, {grad("swiglu")}, {"ff.net.2.weight"});
  AddNode("residual_mlp", OpKind::kGatedResidual,
          {node("residual_attn"), node("ffn_down"), chunk(kGateMlp), index},
          {part_of_sum, grad("ffn_down"), chunk_grad(kGateMlp)}, {});

  sums_ = {{"residual_attn.grad", {{"residual_mlp", 0}, {"norm2", 0}}, grad("residual_attn")},
           {"norm1.grad", {{"v_proj", 0}, {"k_proj", 0}, {"q_proj", 0}}, grad("norm1")},
           {"leaf.input", {{"residual_attn", 0}, {"norm1", 0}}, tensors_.at("leaf.input").view()}};
}

absl::StatusOr<NodeResult> RunCapturedNode(const Operation& operation, Device& device,
                                           const CapturedNode& node) {
  ForwardCall forward;
  forward.inputs = node.inputs;
  forward.parameters = node.parameters;
  forward.attributes = node.attributes;
  NodeResult result;
  result.output = std::make_unique<HostTensor>(node.output.dtype, node.output.batch,
                                               node.output.rows, node.output.width);
  forward.output = result.output->view();
  PLUMBLINE_RETURN_IF_ERROR(operation.Check(forward));

  ExecutionContext context = device.Context();
  const auto run = [&](size_t workspace_bytes, const std::function<absl::Status()>& call) {
    absl::StatusOr<DeviceBuffer> workspace = device.Allocate(workspace_bytes);
    if (!workspace.ok()) return workspace.status();
    std::memset(workspace->data(), 0xFF, workspace_bytes);
    context.workspace =
        absl::MakeSpan(static_cast<uint8_t*>(workspace->data()), workspace->bytes());
    return call();
  };
  PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer saved, device.Allocate(operation.SavedBytes(forward)));
  forward.saved = saved.data();
  PLUMBLINE_RETURN_IF_ERROR(run(operation.ForwardWorkspaceBytes(forward, context),
                                [&] { return operation.Forward(context, forward); }));

  BackwardCall backward;
  backward.inputs = forward.inputs;
  backward.parameters = forward.parameters;
  backward.attributes = forward.attributes;
  backward.output = forward.output;
  backward.saved = saved.data();
  backward.grad_output = node.grad_output;
  std::vector<Tensor> grad_inputs(node.inputs.size());
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Tensor& input = node.inputs[i];
    result.grad_inputs.emplace_back();
    if (!node.input_has_gradient[i]) continue;
    result.grad_inputs.back() =
        std::make_unique<HostTensor>(input.dtype, input.batch, input.rows, input.width);
    grad_inputs[i] = result.grad_inputs.back()->view();
  }
  std::vector<Tensor> grad_parameters;
  for (const Tensor& parameter : node.parameters) {
    const DType dtype =
        operation.precision() == Precision::kFloat32 ? DType::kF32 : parameter.dtype;
    result.grad_parameters.push_back(
        std::make_unique<HostTensor>(dtype, parameter.batch, parameter.rows, parameter.width));
    grad_parameters.push_back(result.grad_parameters.back()->view());
  }
  backward.grad_inputs = grad_inputs;
  backward.grad_parameters = grad_parameters;
  PLUMBLINE_RETURN_IF_ERROR(run(operation.BackwardWorkspaceBytes(backward, context),
                                [&] { return operation.Backward(context, backward); }));
  return result;
}

double RelativeL2(const Tensor& reference, const Tensor& x) {
  if (!SameShape(reference, x)) return std::nan("");
  double difference = 0;
  double norm = 0;
  ForEachPair(reference, x, [&](double a, double b) {
    difference += (a - b) * (a - b);
    norm += a * a;
  });
  return std::sqrt(norm == 0 ? difference : difference / norm);
}

double EqualFraction(const Tensor& reference, const Tensor& x) {
  if (!SameShape(reference, x)) return 0;
  int64_t equal = 0;
  ForEachPair(reference, x, [&](double a, double b) { equal += a == b; });
  return static_cast<double>(equal) / static_cast<double>(reference.NumElements());
}

}  // namespace plumbline
