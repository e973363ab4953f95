// Every backward of the golden against finite differences of its forward, over two batch items with
// tables and indices; and that a gradient does not depend on which others are asked for.
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/builtin.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {
namespace {

constexpr int64_t kBatch = 2;
constexpr int64_t kRows = 7;
constexpr int64_t kTableRows = 4;

// Central differences at h and h/2, extrapolated, leave h^4; h is a power of two, and values and
// directions are multiples of 2^-8 below 4, so that every displaced input is exact in float32.
constexpr double kStep = 0x1p-5;
constexpr double kTolerance = 2e-4;

std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.NumElements()));
  std::memcpy(values.data(), tensor.data, values.size() * sizeof(float));
  return values;
}

class GoldenGradient : public testing::Test {
 protected:
  void SetUp() override {
    RegisterGoldenCpu(registry_);
    auto device = MakeCpuDevice(2, int64_t{1} << 30);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
  }

  // A dense float32 tensor of random values that lives as long as the test.
  Tensor Random(int64_t batch, int64_t rows, int64_t width) {
    tensors_.emplace_back(DType::kF32, batch, rows, width);
    FillRandom(tensors_.back().view());
    return tensors_.back().view();
  }

  void FillRandom(const Tensor& tensor) {
    std::uniform_int_distribution<int> uniform(-512, 512);
    float* const values = static_cast<float*>(tensor.data);
    for (int64_t i = 0; i < tensor.NumElements(); ++i)
      values[i] = static_cast<float>(uniform(random_)) / 256.0f;
  }

  Tensor Indices(const std::vector<int64_t>& indices) {
    tensors_.emplace_back(DType::kI64, 1, static_cast<int64_t>(indices.size()), 1);
    std::memcpy(tensors_.back().view().data, indices.data(), indices.size() * sizeof(int64_t));
    return tensors_.back().view();
  }

  // Table row 2 is named by no index.
  Tensor TableIndices() { return Indices({0, 1, 3, 1, 0, 0, 3}); }

  const Operation& Find(OpKind op) {
    const auto registration = registry_.Find("golden", op, "any", DeviceKind::kCpu);
    EXPECT_TRUE(registration.ok()) << registration.status();
    return *(*registration)->operation;
  }

  // The sum of grad_output * forward(inputs).
  double Objective(const CapturedNode& node) {
    const Operation& operation = Find(node.op);
    const HostTensor output(DType::kF32, node.output.batch, node.output.rows, node.output.width);
    ForwardCall call;
    call.inputs = node.inputs;
    call.parameters = node.parameters;
    call.attributes = node.attributes;
    call.output = output.view();
    ExecutionContext context = device_->Context();
    auto workspace = device_->Allocate(operation.ForwardWorkspaceBytes(call, context));
    EXPECT_TRUE(workspace.ok()) << workspace.status();
    context.workspace =
        absl::MakeSpan(static_cast<uint8_t*>(workspace->data()), workspace->bytes());
    EXPECT_TRUE(operation.Forward(context, call).ok());
    const std::vector<float> values = Values(output.view());
    const std::vector<float> weights = Values(node.grad_output);
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i)
      sum += static_cast<double>(values[i]) * static_cast<double>(weights[i]);
    return sum;
  }

  // The derivative of Objective as `variable` moves along `direction`.
  double Derivative(const CapturedNode& node, const Tensor& variable,
                    const std::vector<float>& direction) {
    const std::vector<float> start = Values(variable);
    const auto at = [&](double step) {
      float* const values = static_cast<float*>(variable.data);
      for (size_t i = 0; i < start.size(); ++i)
        values[i] = start[i] + static_cast<float>(step) * direction[i];
      return Objective(node);
    };
    const double wide = (at(kStep) - at(-kStep)) / (2 * kStep);
    const double narrow = (at(kStep / 2) - at(-kStep / 2)) / kStep;
    std::memcpy(variable.data, start.data(), start.size() * sizeof(float));
    return (4 * narrow - wide) / 3;
  }

  void ExpectGradient(const std::string& what, const CapturedNode& node, const Tensor& variable,
                      const Tensor& gradient) {
    const std::vector<float> analytic = Values(gradient);
    double norm = 0;
    for (const float value : analytic) norm += static_cast<double>(value) * value;
    EXPECT_GT(norm, 0) << what;
    for (int repeat = 0; repeat < 3; ++repeat) {
      const HostTensor direction(DType::kF32, variable.batch, variable.rows, variable.width);
      FillRandom(direction.view());
      const std::vector<float> along = Values(direction.view());
      double expected = 0;
      for (size_t i = 0; i < analytic.size(); ++i)
        expected += static_cast<double>(analytic[i]) * static_cast<double>(along[i]);
      EXPECT_NEAR(Derivative(node, variable, along), expected, kTolerance * std::sqrt(norm))
          << what;
    }
  }

  void ExpectGradients(CapturedNode node) {
    SCOPED_TRACE(testing::Message() << OpName(node.op) << ", seed " << seed_);
    node.grad_output = node.output;
    const Operation& operation = Find(node.op);
    auto all = RunCapturedNode(operation, *device_, node);
    ASSERT_TRUE(all.ok()) << all.status();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!node.input_has_gradient[i]) continue;
      ExpectGradient("input " + std::to_string(i), node, node.inputs[i],
                     all->grad_inputs[i]->view());
      CapturedNode alone = node;
      alone.input_has_gradient.assign(node.inputs.size(), false);
      alone.input_has_gradient[i] = true;
      auto one = RunCapturedNode(operation, *device_, alone);
      ASSERT_TRUE(one.ok()) << one.status();
      EXPECT_TRUE(BitwiseEqual(all->grad_inputs[i]->view(), one->grad_inputs[i]->view()));
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      ExpectGradient("parameter " + std::to_string(i), node, node.parameters[i],
                     all->grad_parameters[i]->view());
    }
  }

  const uint32_t seed_ = std::random_device{}();
  std::mt19937 random_{seed_};
  Registry registry_;
  std::unique_ptr<Device> device_;
  std::vector<HostTensor> tensors_;
};

CapturedNode Node(OpKind op, std::vector<Tensor> inputs, std::vector<bool> has_gradient,
                  std::vector<Tensor> parameters, Tensor output, Attributes attributes = {}) {
  CapturedNode node;
  node.name = "node";
  node.op = op;
  node.inputs = std::move(inputs);
  node.input_has_gradient = std::move(has_gradient);
  node.parameters = std::move(parameters);
  node.output = output;
  node.attributes = attributes;
  return node;
}

TEST_F(GoldenGradient, Linear) {
  ExpectGradients(Node(OpKind::kLinear, {Random(kBatch, kRows, 10)}, {true},
                       {Random(1, 5, 10), Random(1, 1, 5)}, Random(kBatch, kRows, 5)));
  ExpectGradients(Node(OpKind::kLinear, {Random(kBatch, kRows, 300)}, {true}, {Random(1, 5, 300)},
                       Random(kBatch, kRows, 5)));
}

TEST_F(GoldenGradient, AdalnProjection) {
  ExpectGradients(Node(OpKind::kAdalnProjection, {Random(1, 3, 10)}, {true},
                       {Random(1, 18, 10), Random(1, 1, 18)}, Random(1, 3, 18)));
}

TEST_F(GoldenGradient, TimeEmbedder) {
  // Small enough a fan-in that SiLU is used where it bends.
  ExpectGradients(Node(OpKind::kTimeEmbedder, {Random(1, 3, 4)}, {true},
                       {Random(1, 6, 4), Random(1, 1, 6), Random(1, 5, 6), Random(1, 1, 5)},
                       Random(1, 3, 5)));
}

TEST_F(GoldenGradient, RmsNorm) {
  Attributes attributes;
  attributes.epsilon = 0.25f;
  ExpectGradients(Node(OpKind::kRmsNorm, {Random(kBatch, kRows, 80)}, {true}, {Random(1, 1, 40)},
                       Random(kBatch, kRows, 80), attributes));
}

TEST_F(GoldenGradient, ModulatedRmsNorm) {
  Attributes attributes;
  attributes.epsilon = 0.25f;
  ExpectGradients(Node(OpKind::kModulatedRmsNorm,
                       {Random(kBatch, kRows, 40), Random(1, kTableRows, 40),
                        Random(1, kTableRows, 40), TableIndices()},
                       {true, true, true, false}, {Random(1, 1, 40)}, Random(kBatch, kRows, 40),
                       attributes));
}

TEST_F(GoldenGradient, Rope) {
  Attributes attributes;
  attributes.head_width = 16;
  attributes.rotary_frequencies = 2;
  attributes.rotary_theta = 100;
  const HostTensor positions(DType::kF64, 1, kRows, 3);
  for (int64_t i = 0; i < 3 * kRows; ++i)
    static_cast<double*>(positions.view().data)[i] = 1.25 * static_cast<double>(i) - 7;
  ExpectGradients(Node(OpKind::kRope, {Random(kBatch, kRows, 32), positions.view()}, {true, false},
                       {}, Random(kBatch, kRows, 32), attributes));
}

TEST_F(GoldenGradient, Attention) {
  Attributes attributes;
  attributes.head_width = 8;
  // More rows than one block of queries.
  ExpectGradients(Node(OpKind::kAttention,
                       {Random(kBatch, 61, 16), Random(kBatch, 61, 16), Random(kBatch, 61, 16)},
                       {true, true, true}, {}, Random(kBatch, 61, 16), attributes));
}

TEST_F(GoldenGradient, Residuals) {
  ExpectGradients(Node(OpKind::kGatedResidual,
                       {Random(kBatch, kRows, 70), Random(kBatch, kRows, 70),
                        Random(1, kTableRows, 70), TableIndices()},
                       {true, true, true, false}, {}, Random(kBatch, kRows, 70)));
  ExpectGradients(Node(OpKind::kResidual, {Random(kBatch, kRows, 9), Random(kBatch, kRows, 9)},
                       {true, true}, {}, Random(kBatch, kRows, 9)));
}

TEST_F(GoldenGradient, SwiGlu) {
  ExpectGradients(
      Node(OpKind::kSwiGlu, {Random(kBatch, kRows, 30)}, {true}, {}, Random(kBatch, kRows, 15)));
}

TEST_F(GoldenGradient, RowMovesAndCast) {
  ExpectGradients(Node(OpKind::kGatherRows, {Random(kBatch, kRows, 9), Indices({6, 0, 3})},
                       {true, false}, {}, Random(kBatch, 3, 9)));
  ExpectGradients(Node(OpKind::kScatterRows,
                       {Random(kBatch, 2, 9), Random(kBatch, 4, 9), Random(kBatch, 1, 9),
                        Indices({6, 0}), Indices({1, 2, 5, 3}), Indices({4})},
                       {true, true, true, false, false, false}, {}, Random(kBatch, kRows, 9)));
  ExpectGradients(
      Node(OpKind::kCast, {Random(kBatch, kRows, 9)}, {true}, {}, Random(kBatch, kRows, 9)));
}

TEST_F(GoldenGradient, ChecksNameWhatIsWrong) {
  const Tensor inputs[] = {Random(1, kRows, 10)};
  const Tensor parameters[] = {Random(1, 5, 11)};
  ForwardCall call;
  call.inputs = inputs;
  call.parameters = parameters;
  call.output = Random(1, kRows, 5);
  const absl::Status status = Find(OpKind::kLinear).Check(call);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "golden Linear: weight is (1, 5, 11); it must be (1, any, 10)");
}

}  // namespace
}  // namespace plumbline
