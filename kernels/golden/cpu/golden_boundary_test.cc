// The golden's operations around the blocks, against the float32 capture of the whole model.
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/safetensors.h"
#include "gtest/gtest.h"
#include "kernels/builtin.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {
namespace {

constexpr double kForwardTolerance = 1e-6;
constexpr double kGradientTolerance = 1e-5;
constexpr int64_t kHidden = 128;

class GoldenBoundary : public testing::Test {
 protected:
  void SetUp() override {
    RegisterGoldenCpu(registry_);
    auto device = MakeCpuDevice(2, int64_t{1} << 30);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    for (const char* file :
         {"transformer_fp32_cpu.safetensors", "transformer_inputs.safetensors",
          "checkpoint/transformer/diffusion_pytorch_model.safetensors.index.json"}) {
      auto opened = SafetensorsFile::Open(absl::StrCat("tests/golden/", file));
      ASSERT_TRUE(opened.ok()) << opened.status();
      for (const TensorInfo& info : opened->tensors()) {
        auto tensor = ReadHostTensor(*opened, info.name);
        ASSERT_TRUE(tensor.ok()) << tensor.status();
        tensors_.emplace(info.name, *std::move(tensor));
      }
    }
  }

  Tensor Get(const std::string& name) { return tensors_.at(name).view(); }

  // A (1, n) list of indices as the (n, 1) that operations take.
  Tensor Indices(const std::string& name) {
    const Tensor list = Get(name);
    return Tensor::Dense(list.data, list.dtype, 1, list.width, 1);
  }

  CapturedNode Node(const std::string& name, OpKind op, std::vector<Tensor> inputs,
                    const std::vector<std::string>& parameters) {
    CapturedNode node;
    node.name = name;
    node.op = op;
    node.inputs = std::move(inputs);
    node.input_has_gradient.assign(node.inputs.size(), false);
    node.input_has_gradient[0] = true;
    for (const std::string& parameter : parameters) {
      node.parameters.push_back(Get(parameter));
      node.grad_parameters.push_back(Get(absl::StrCat("parameter.", parameter)));
    }
    node.output = Get(absl::StrCat("nodes.", name));
    node.grad_output = Get(absl::StrCat("nodes.", name, ".grad"));
    node.attributes.epsilon = 1e-5f;
    return node;
  }

  const Operation& Find(OpKind op) {
    const auto registration = registry_.Find("golden", op, "any", DeviceKind::kCpu);
    EXPECT_TRUE(registration.ok()) << registration.status();
    return *(*registration)->operation;
  }

  // Runs the node and compares its output and its parameters' gradients.
  NodeResult RunAndCompare(const CapturedNode& node) {
    SCOPED_TRACE(node.name);
    auto result = RunCapturedNode(Find(node.op), *device_, node);
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_LE(RelativeL2(node.output, result->output->view()), kForwardTolerance);
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      EXPECT_LE(RelativeL2(node.grad_parameters[i], result->grad_parameters[i]->view()),
                kGradientTolerance)
          << "gradient of parameter " << i;
    }
    return *std::move(result);
  }

  void RunLinear(const std::string& name, const Tensor& input, const Tensor& grad_input) {
    const NodeResult result =
        RunAndCompare(Node(name, OpKind::kLinear, {input}, {name + ".weight", name + ".bias"}));
    if (!grad_input.IsNull()) {
      EXPECT_LE(RelativeL2(grad_input, result.grad_inputs[0]->view()), kGradientTolerance) << name;
    }
  }

  Registry registry_;
  std::unique_ptr<Device> device_;
  std::map<std::string, HostTensor> tensors_;
};

TEST_F(GoldenBoundary, LinearLayersAtBothEnds) {
  RunLinear("proj_in", Get("input.hidden_states"), Get("input_gradients.hidden_states"));
  RunLinear("audio_proj_in", Get("input.audio_hidden_states"),
            Get("input_gradients.audio_hidden_states"));
  RunLinear("context_embedder", Get("input.encoder_hidden_states"),
            Get("input_gradients.encoder_hidden_states"));
  RunLinear("proj_out", Get("nodes.norm_out"), Tensor());
  RunLinear("audio_proj_out", Get("nodes.norm_out"), Tensor());
}

TEST_F(GoldenBoundary, TimestepPath) {
  const Tensor list = Get("timestep");
  const Tensor timestep = Tensor::Dense(list.data, list.dtype, 1, list.width, 1);
  const Tensor expected = Get("nodes.time_proj");
  const HostTensor features(DType::kF32, 1, expected.rows, expected.width);
  ForwardCall call;
  call.inputs = absl::MakeConstSpan(&timestep, 1);
  call.output = features.view();
  const Operation& projection = Find(OpKind::kTimeProjection);
  ASSERT_TRUE(projection.Check(call).ok()) << projection.Check(call);
  ASSERT_TRUE(projection.Forward(device_->Context(), call).ok());
  EXPECT_LE(RelativeL2(expected, features.view()), kForwardTolerance);

  RunAndCompare(Node("time_embedder", OpKind::kTimeEmbedder, {expected},
                     {"time_embedder.linear_1.weight", "time_embedder.linear_1.bias",
                      "time_embedder.linear_2.weight", "time_embedder.linear_2.bias"}));
}

TEST_F(GoldenBoundary, FinalNormOfTheRefiner) {
  const NodeResult result = RunAndCompare(Node("token_refiner", OpKind::kRmsNorm,
                                               {Get("nodes.token_refiner.refiner_blocks.1")},
                                               {"token_refiner.final_norm.weight"}));
  EXPECT_LE(
      RelativeL2(Get("nodes.token_refiner.refiner_blocks.1.grad"), result.grad_inputs[0]->view()),
      kGradientTolerance);
}

TEST_F(GoldenBoundary, OutputNormModulatedByTimestep) {
  // The table, made from the captured temb: shift in its first half, scale in its second.
  const HostTensor table(DType::kF32, 1, Get("timestep").width, 2 * kHidden);
  CapturedNode linear;
  linear.op = OpKind::kAdalnProjection;
  linear.inputs = {Get("nodes.time_embedder")};
  linear.input_has_gradient = {true};
  linear.parameters = {Get("norm_out.linear.weight"), Get("norm_out.linear.bias")};
  linear.output = table.view();
  linear.grad_output = table.view();  // any gradient will do to get the output
  auto projected = RunCapturedNode(Find(linear.op), *device_, linear);
  ASSERT_TRUE(projected.ok()) << projected.status();
  const Tensor shift = projected->output->view().Columns(0, kHidden);
  const Tensor scale = projected->output->view().Columns(kHidden, kHidden);

  CapturedNode norm = Node("norm_out", OpKind::kModulatedRmsNorm,
                           {Get("nodes.block.1"), scale, shift, Indices("timestep_indices")},
                           {"norm_out.norm.weight"});
  norm.input_has_gradient = {true, true, true, false};
  const NodeResult result = RunAndCompare(norm);
  EXPECT_LE(RelativeL2(Get("nodes.block.1.grad"), result.grad_inputs[0]->view()),
            kGradientTolerance);

  // Back through the table to the projection's parameters.
  const HostTensor grad_table(DType::kF32, 1, table.view().rows, 2 * kHidden);
  const ExecutionContext context = device_->Context();
  ASSERT_TRUE(
      device_
          ->Convert(context, result.grad_inputs[2]->view(), grad_table.view().Columns(0, kHidden))
          .ok());
  ASSERT_TRUE(device_
                  ->Convert(context, result.grad_inputs[1]->view(),
                            grad_table.view().Columns(kHidden, kHidden))
                  .ok());
  linear.grad_output = grad_table.view();
  auto gradients = RunCapturedNode(Find(linear.op), *device_, linear);
  ASSERT_TRUE(gradients.ok()) << gradients.status();
  EXPECT_LE(
      RelativeL2(Get("parameter.norm_out.linear.weight"), gradients->grad_parameters[0]->view()),
      kGradientTolerance);
  EXPECT_LE(
      RelativeL2(Get("parameter.norm_out.linear.bias"), gradients->grad_parameters[1]->view()),
      kGradientTolerance);
}

TEST_F(GoldenBoundary, OutputsAreTheRowsOfTheirModality) {
  for (const auto& [indices, from, to] :
       {std::tuple("video_indices", "nodes.proj_out", "output.video"),
        std::tuple("audio_indices", "nodes.audio_proj_out", "output.audio")}) {
    CapturedNode gather;
    gather.op = OpKind::kGatherRows;
    gather.inputs = {Get(from), Indices(indices)};
    gather.input_has_gradient = {true, false};
    gather.output = Get(to);
    gather.grad_output = Get(absl::StrCat("upstream.", absl::string_view(to).substr(7)));
    auto result = RunCapturedNode(Find(gather.op), *device_, gather);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(BitwiseEqual(gather.output, result->output->view()));
    EXPECT_TRUE(BitwiseEqual(Get(absl::StrCat(from, ".grad")), result->grad_inputs[0]->view()));
  }
}

TEST_F(GoldenBoundary, ScatterAndGatherAreEachOthersGradient) {
  // Rows of the three modalities, scattered: gathering them gives them back, and the gradient of
  // each is its rows of what came from above.
  const char* const sources[] = {"nodes.token_refiner", "nodes.proj_in", "nodes.audio_proj_in"};
  const char* const index_names[] = {"text_indices", "video_indices", "audio_indices"};
  CapturedNode scatter;
  scatter.op = OpKind::kScatterRows;
  for (const char* source : sources) scatter.inputs.push_back(Get(source));
  for (const char* name : index_names) scatter.inputs.push_back(Indices(name));
  scatter.input_has_gradient = {true, true, true, false, false, false};
  scatter.output = Get("nodes.block.0");  // the shape
  scatter.grad_output = Get("nodes.block.0.grad");
  auto result = RunCapturedNode(Find(scatter.op), *device_, scatter);
  ASSERT_TRUE(result.ok()) << result.status();
  for (size_t i = 0; i < 3; ++i) {
    for (const auto& [packed, rows] :
         {std::pair(result->output->view(), scatter.inputs[i]),
          std::pair(scatter.grad_output, result->grad_inputs[i]->view())}) {
      const HostTensor gathered(DType::kF32, 1, rows.rows, kHidden);
      const Tensor inputs[] = {packed, Indices(index_names[i])};
      ForwardCall call;
      call.inputs = inputs;
      call.output = gathered.view();
      ASSERT_TRUE(Find(OpKind::kGatherRows).Forward(device_->Context(), call).ok());
      EXPECT_TRUE(BitwiseEqual(rows, gathered.view())) << sources[i];
    }
  }
}

}  // namespace
}  // namespace plumbline
