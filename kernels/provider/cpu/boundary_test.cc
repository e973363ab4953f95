// provider/default against the capture of the whole model, at the nodes around the blocks.
#include <gtest/gtest.h>

#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/safetensors.h"
#include "kernels/device.h"
#include "kernels/provider/cpu/operations.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline::provider {
namespace {

constexpr int64_t kHidden = 128;
// Of float32 nodes: a sum in another order, an exponential of another library.
constexpr double kFloat32Tolerance = 1e-6;

class BoundaryTest : public testing::Test {
 protected:
  BoundaryTest() : device_(MakeCpuDevice(2, int64_t{1} << 28).value()) {
    for (const char* const file :
         {"transformer_bf16_cuda.safetensors", "transformer_inputs.safetensors",
          "checkpoint/transformer/diffusion_pytorch_model.safetensors.index.json"}) {
      files_.push_back(SafetensorsFile::Open(std::string("tests/golden/") + file).value());
    }
  }

  // A tensor of any of the files: a vector is a row unless it is a column of indices or timesteps.
  Tensor Get(const std::string& name, bool column = false) {
    for (const SafetensorsFile& file : files_) {
      const TensorInfo* const info = file.Find(name);
      if (info == nullptr) continue;
      const absl::Span<const uint8_t> bytes = file.Bytes(*info);
      const int64_t size = static_cast<int64_t>(bytes.size() / DTypeSize(info->dtype));
      const int64_t width = column ? 1 : info->shape.back();
      memory_.emplace_back(info->dtype, 1, size / width, width);
      std::memcpy(memory_.back().view().data, bytes.data(), bytes.size());
      return memory_.back().view();
    }
    ADD_FAILURE() << "no tensor " << name;
    return Tensor();
  }

  // Runs forward, then backward from `grad_output`, from zeros where none is given. The results
  // live as long as the test.
  const NodeResult& Run(std::shared_ptr<const Operation> operation, std::vector<Tensor> inputs,
                        std::vector<Tensor> parameters, const Tensor& output_like,
                        std::optional<Tensor> grad_output, const Attributes& attributes = {}) {
    CapturedNode node;
    node.attributes = attributes;
    node.inputs = std::move(inputs);
    node.parameters = std::move(parameters);
    node.output = output_like;
    const Tensor& like = output_like;
    memory_.emplace_back(like.dtype, like.batch, like.rows, like.width);
    const Tensor zeros = memory_.back().view();
    std::memset(zeros.data, 0, zeros.NumBytes());
    node.grad_output = grad_output.value_or(zeros);
    node.input_has_gradient.assign(node.inputs.size(), false);
    node.input_has_gradient[0] = true;
    results_.push_back(RunCapturedNode(*operation, *device_, node).value());
    return results_.back();
  }

  // A projection with bias, its input from outside the model.
  void ExpectProjection(const std::string& module, const std::string& input) {
    const Tensor output = Get("nodes." + module);
    const NodeResult& result = Run(MakeLinear(GemmPath::kWholeSum), {Get("input." + input)},
                                   {Get(module + ".weight"), Get(module + ".bias")}, output,
                                   Get("nodes." + module + ".grad"));
    const Tensor grad = Get("input_gradients." + input);
    if (output.dtype == DType::kF32) {
      EXPECT_LE(RelativeL2(output, result.output->view()), kFloat32Tolerance) << module;
      EXPECT_LE(RelativeL2(grad, result.grad_inputs[0]->view()), kFloat32Tolerance) << module;
    } else {
      EXPECT_GE(EqualFraction(output, result.output->view()), 0.999) << module;
      EXPECT_GE(EqualFraction(grad, result.grad_inputs[0]->view()), 0.99) << module;
    }
  }

  static Attributes Norm() {
    Attributes attributes;
    attributes.epsilon = 1e-5f;
    return attributes;
  }

  std::unique_ptr<Device> device_;
  std::vector<SafetensorsFile> files_;
  std::list<HostTensor> memory_;
  std::list<NodeResult> results_;
};

TEST_F(BoundaryTest, TimestepFeaturesAndEmbedding) {
  const Tensor features = Get("nodes.time_proj");
  HostTensor output(DType::kF32, 1, features.rows, features.width);
  const Tensor timestep[] = {Get("timestep", /*column=*/true)};
  ForwardCall call;
  call.inputs = timestep;
  call.output = output.view();
  ASSERT_TRUE(MakeTimeProjection()->Check(call).ok());
  ASSERT_TRUE(MakeTimeProjection()->Forward(device_->Context(), call).ok());
  EXPECT_LE(RelativeL2(features, output.view()), kFloat32Tolerance);

  const Tensor embedding = Get("nodes.time_embedder");
  const NodeResult& result =
      Run(MakeTimeEmbedder(GemmPath::kWholeSum), {features},
          {Get("time_embedder.linear_1.weight"), Get("time_embedder.linear_1.bias"),
           Get("time_embedder.linear_2.weight"), Get("time_embedder.linear_2.bias")},
          embedding, Get("nodes.time_embedder.grad"));
  EXPECT_LE(RelativeL2(embedding, result.output->view()), kFloat32Tolerance);
}

TEST_F(BoundaryTest, ProjectionsIn) {
  ExpectProjection("proj_in", "hidden_states");
  ExpectProjection("audio_proj_in", "audio_hidden_states");
  ExpectProjection("context_embedder", "encoder_hidden_states");
}

TEST_F(BoundaryTest, RefinersFinalNorm) {
  const Tensor output = Get("nodes.token_refiner");
  const NodeResult& result = Run(MakeRmsNorm(), {Get("nodes.token_refiner.refiner_blocks.1")},
                                 {Get("token_refiner.final_norm.weight")}, output,
                                 Get("nodes.token_refiner.grad"), Norm());
  EXPECT_GE(EqualFraction(output, result.output->view()), 0.999);
  EXPECT_GE(EqualFraction(Get("nodes.token_refiner.refiner_blocks.1.grad"),
                          result.grad_inputs[0]->view()),
            0.99);
}

TEST_F(BoundaryTest, OutputNorm) {
  const Tensor temb = Get("nodes.time_embedder");
  const NodeResult& table =
      Run(MakeAdalnProjection(GemmPath::kWholeSum), {temb},
          {Get("norm_out.linear.weight"), Get("norm_out.linear.bias")},
          Tensor::Dense(nullptr, DType::kBF16, 1, temb.rows, 2 * kHidden), std::nullopt);
  const Tensor shift = table.output->view().Columns(0, kHidden);
  const Tensor scale = table.output->view().Columns(kHidden, kHidden);
  const Tensor output = Get("nodes.norm_out");
  const NodeResult& result =
      Run(MakeModulatedRmsNorm(),
          {Get("nodes.block.1"), scale, shift, Get("timestep_indices", /*column=*/true)},
          {Get("norm_out.norm.weight")}, output, Get("nodes.norm_out.grad"), Norm());
  EXPECT_GE(EqualFraction(output, result.output->view()), 0.999);
  EXPECT_GE(EqualFraction(Get("nodes.block.1.grad"), result.grad_inputs[0]->view()), 0.99);
}

TEST_F(BoundaryTest, HeadsAndTheGradientsThatMeetBeforeThem) {
  const Tensor normed = Get("nodes.norm_out");
  const NodeResult& cast =
      Run(MakeCast(), {normed}, {},
          Tensor::Dense(nullptr, DType::kF32, 1, normed.rows, normed.width), std::nullopt);
  std::vector<Tensor> grads;
  const std::map<std::string, std::string> modalities = {{"proj_out", "video"},
                                                         {"audio_proj_out", "audio"}};
  for (const auto& [module, modality] : modalities) {
    const Tensor output = Get("nodes." + module);
    const NodeResult& head = Run(MakeLinear(GemmPath::kWholeSum), {cast.output->view()},
                                 {Get(module + ".weight"), Get(module + ".bias")}, output,
                                 Get("nodes." + module + ".grad"));
    EXPECT_LE(RelativeL2(output, head.output->view()), kFloat32Tolerance) << module;
    grads.push_back(head.grad_inputs[0]->view());

    const Tensor selected = Get("output." + modality);
    const NodeResult& gathered =
        Run(MakeGatherRows(), {output, Get(modality + "_indices", /*column=*/true)}, {}, selected,
            Get("upstream." + modality));
    EXPECT_TRUE(BitwiseEqual(selected, gathered.output->view())) << modality;
    EXPECT_EQ(EqualFraction(Get("nodes." + module + ".grad"), gathered.grad_inputs[0]->view()), 1.0)
        << modality;
  }
  const HostTensor sum(DType::kF32, 1, normed.rows, normed.width);
  ForwardCall call;
  call.inputs = grads;
  call.output = sum.view();
  ASSERT_TRUE(MakeGradSum()->Forward(device_->Context(), call).ok());
  const NodeResult& back = Run(MakeCast(), {normed}, {}, sum.view(), sum.view());
  EXPECT_GE(EqualFraction(Get("nodes.norm_out.grad"), back.grad_inputs[0]->view()), 0.99);
}

}  // namespace
}  // namespace plumbline::provider
