// provider/default against the capture of the real model code on a GPU, fed from it node by node.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "kernels/builtin.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {
namespace {

constexpr char kProvider[] = "provider/default";
constexpr double kForwardFraction = 0.999;
constexpr double kGradientFraction = 0.99;

// Scale, shift and gate are read through an index.
bool IsTable(const CapturedNode& node, size_t input) {
  return (node.op == OpKind::kModulatedRmsNorm && (input == 1 || input == 2)) ||
         (node.op == OpKind::kGatedResidual && input == 2);
}

class CaptureTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<BlockCapture>> capture = BlockCapture::Open("block0_bf16_cuda");
    ASSERT_TRUE(capture.ok()) << capture.status();
    capture_ = *std::move(capture);
    absl::StatusOr<std::unique_ptr<Device>> device = MakeCpuDevice(2, int64_t{1} << 30);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    RegisterProviderCpu(registry_);
    for (const CapturedNode& node : capture_->nodes()) {
      absl::StatusOr<NodeResult> result =
          RunCapturedNode(Operation(node.op, node.name), *device_, node);
      ASSERT_TRUE(result.ok()) << node.name << ": " << result.status();
      results_.emplace(node.name, *std::move(result));
    }
  }

  const plumbline::Operation& Operation(OpKind op, const std::string& node) {
    return *registry_.Find(kProvider, op, node, DeviceKind::kCpu).value()->operation;
  }

  Registry registry_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<BlockCapture> capture_;
  std::map<std::string, NodeResult> results_;
};

TEST_F(CaptureTest, EveryForwardNodeHasTheBitsOfTheCapture) {
  for (const CapturedNode& node : capture_->nodes()) {
    const Tensor output = results_.at(node.name).output->view();
    EXPECT_GE(EqualFraction(node.output, output), kForwardFraction) << node.name;
  }
}

TEST_F(CaptureTest, EveryGradientHasTheBitsOfTheCapture) {
  for (const CapturedNode& node : capture_->nodes()) {
    const NodeResult& result = results_.at(node.name);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.grad_inputs[i].IsNull()) continue;
      const Tensor grad = result.grad_inputs[i]->view();
      if (node.inputs[i].dtype == DType::kF32) {
        // temb's gradient is float32, and the last bit of its SiLU' is the device's.
        EXPECT_LE(RelativeL2(node.grad_inputs[i], grad), 1e-6) << node.name << ", input " << i;
      } else if (IsTable(node, i)) {
        // Added by atomics, in another order in every run of the provider.
        EXPECT_LE(RelativeL2(node.grad_inputs[i], grad), 1.5e-2) << node.name << ", input " << i;
      } else {
        EXPECT_GE(EqualFraction(node.grad_inputs[i], grad), kGradientFraction)
            << node.name << ", input " << i;
      }
    }
    // The AdaLN projection's too: it is fed the captured gradient of the table.
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      EXPECT_GE(EqualFraction(node.grad_parameters[i], result.grad_parameters[i]->view()),
                kGradientFraction)
          << node.name << ", parameter " << i;
    }
  }
}

TEST_F(CaptureTest, EverySumOfGradientsHasTheBitsOfTheCapture) {
  for (const CapturedSum& sum : capture_->sums()) {
    std::unique_ptr<HostTensor> total;
    Tensor so_far;
    for (const CapturedSum::Part& part : sum.parts) {
      const Tensor value = results_.at(part.node).grad_inputs[part.input]->view();
      if (so_far.IsNull()) {
        so_far = value;
        continue;
      }
      auto next = std::make_unique<HostTensor>(value.dtype, value.batch, value.rows, value.width);
      const Tensor inputs[] = {so_far, value};
      ForwardCall call;
      call.inputs = inputs;
      call.output = next->view();
      const plumbline::Operation& grad_sum = Operation(OpKind::kGradSum, "grad_sum");
      ASSERT_TRUE(grad_sum.Check(call).ok());
      ASSERT_TRUE(grad_sum.Forward(device_->Context(), call).ok());
      total = std::move(next);
      so_far = total->view();
    }
    EXPECT_GE(EqualFraction(sum.expected, so_far), kGradientFraction) << sum.name;
  }
}

}  // namespace
}  // namespace plumbline
