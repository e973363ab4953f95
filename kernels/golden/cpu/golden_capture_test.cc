// The golden, node by node, against the float32 capture of the model code.
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "kernels/builtin.h"
#include "kernels/testing/bitwise.h"
#include "kernels/testing/block_capture.h"

namespace plumbline {
namespace {

constexpr double kForwardTolerance = 1e-6;
constexpr double kGradientTolerance = 1e-5;
constexpr int64_t kMemoryBytes = int64_t{1} << 30;

class GoldenCapture : public testing::Test {
 protected:
  void SetUp() override {
    RegisterGoldenCpu(registry_);
    auto capture = BlockCapture::Open("block0_fp32_cpu");
    ASSERT_TRUE(capture.ok()) << capture.status();
    capture_ = *std::move(capture);
  }

  NodeResult Run(const CapturedNode& node, int threads) {
    auto device = MakeCpuDevice(threads, kMemoryBytes);
    const auto registration = registry_.Find("golden", node.op, node.name, DeviceKind::kCpu);
    EXPECT_TRUE(registration.ok()) << registration.status();
    auto result = RunCapturedNode(*(*registration)->operation, **device, node);
    EXPECT_TRUE(result.ok()) << node.name << ": " << result.status();
    return *std::move(result);
  }

  Registry registry_;
  std::unique_ptr<BlockCapture> capture_;
};

TEST_F(GoldenCapture, EveryNodeIsTheCaptures) {
  EXPECT_EQ(capture_->nodes().size(), 17u);
  for (const CapturedNode& node : capture_->nodes()) {
    SCOPED_TRACE(node.name);
    const NodeResult result = Run(node, 2);
    EXPECT_LE(RelativeL2(node.output, result.output->view()), kForwardTolerance);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.grad_inputs[i].IsNull()) continue;
      EXPECT_LE(RelativeL2(node.grad_inputs[i], result.grad_inputs[i]->view()), kGradientTolerance)
          << "gradient of input " << i;
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      EXPECT_LE(RelativeL2(node.grad_parameters[i], result.grad_parameters[i]->view()),
                kGradientTolerance)
          << "gradient of parameter " << i;
    }
  }
}

TEST_F(GoldenCapture, GradientsThatMeetAddUpToTheCaptures) {
  auto device = MakeCpuDevice(1, kMemoryBytes);
  const auto grad_sum = registry_.Find("golden", OpKind::kGradSum, "grad_sum", DeviceKind::kCpu);
  ASSERT_TRUE(grad_sum.ok()) << grad_sum.status();
  for (const CapturedSum& sum : capture_->sums()) {
    std::unique_ptr<HostTensor> total;
    for (const CapturedSum::Part& part : sum.parts) {
      NodeResult result = Run(capture_->node(part.node), 1);
      std::unique_ptr<HostTensor> addend = std::move(result.grad_inputs[part.input]);
      if (total == nullptr) {
        total = std::move(addend);
        continue;
      }
      const Tensor inputs[] = {total->view(), addend->view()};
      ForwardCall call;
      call.inputs = inputs;
      call.output = total->view();  // in place, as allowed
      ASSERT_TRUE((*grad_sum)->operation->Check(call).ok());
      ASSERT_TRUE((*grad_sum)->operation->Forward((*device)->Context(), call).ok());
    }
    EXPECT_LE(RelativeL2(sum.expected, total->view()), kGradientTolerance) << sum.name;
  }
}

TEST_F(GoldenCapture, TheNumberOfThreadsChangesNothing) {
  for (const CapturedNode& node : capture_->nodes()) {
    SCOPED_TRACE(node.name);
    const NodeResult one = Run(node, 1);
    for (const int threads : {2, 8}) {
      const NodeResult many = Run(node, threads);
      EXPECT_TRUE(BitwiseEqual(one.output->view(), many.output->view()));
      for (size_t i = 0; i < one.grad_inputs.size(); ++i) {
        if (one.grad_inputs[i] == nullptr) continue;
        EXPECT_TRUE(BitwiseEqual(one.grad_inputs[i]->view(), many.grad_inputs[i]->view()));
      }
      for (size_t i = 0; i < one.grad_parameters.size(); ++i)
        EXPECT_TRUE(BitwiseEqual(one.grad_parameters[i]->view(), many.grad_parameters[i]->view()));
    }
  }
}

}  // namespace
}  // namespace plumbline
