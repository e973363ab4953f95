// The candidate against captures of the real model code: fed the captured bfloat16 run node by
// node, its error against the captured float32 run may exceed the captured run's own by no more
// than the block gates allow.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernels/candidate/cpu/random_case.h"
#include "kernels/device.h"

namespace plumbline {
namespace {

TEST(Capture, ErrorIsWithinTheGates) {
  const std::unique_ptr<BlockCapture> bf16 = BlockCapture::Open("block0_bf16_cuda").value();
  const std::unique_ptr<BlockCapture> fp32 = BlockCapture::Open("block0_fp32_cpu").value();
  const std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 30).value();
  for (const CapturedNode& node : bf16->nodes()) {
    const CapturedNode& golden = fp32->node(node.name);
    const NodeResult result = RunCapturedNode(CandidateOperation(node.op), *device, node).value();
    EXPECT_LE(RelativeL2(golden.output, result.output->view()),
              1.25 * RelativeL2(golden.output, node.output) + 1e-3)
        << node.name;
    const auto check_gradient = [&](const Tensor& golden_gradient, const Tensor& captured,
                                    const Tensor& computed, const std::string& of) {
      EXPECT_LE(RelativeL2(golden_gradient, computed),
                1.5 * RelativeL2(golden_gradient, captured) + 5e-3)
          << node.name << ", gradient of " << of;
    };
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.grad_inputs[i].IsNull()) continue;  // a part of a sum
      check_gradient(golden.grad_inputs[i], node.grad_inputs[i], result.grad_inputs[i]->view(),
                     "input " + std::to_string(i));
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      check_gradient(golden.grad_parameters[i], node.grad_parameters[i],
                     result.grad_parameters[i]->view(), "parameter " + std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace plumbline
