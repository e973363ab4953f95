// The golden on a GPU against the golden on a CPU, whose sums are float64, against the captures of
// the real model code in float32, and against itself.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/candidate/cpu/random_case.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

const Operation& Golden(OpKind op, DeviceKind device) {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    RegisterGoldenCpu(*filled);
    RegisterGoldenCuda(*filled);
    return filled;
  }();
  return *registry->Find("golden", op, "", device).value()->operation;
}

// A case whose bfloat16 activations are widened; parameters keep their types.
struct WideCase {
  explicit WideCase(const RandomCase& random_case, Device& cpu) : node(random_case.node) {
    for (Tensor& input : node.inputs) input = Widen(input, cpu);
    node.grad_output = Widen(node.grad_output, cpu);
    if (node.output.dtype == DType::kBF16) node.output.dtype = DType::kF32;
  }

  CapturedNode node;

 private:
  Tensor Widen(const Tensor& tensor, Device& cpu) {
    if (tensor.dtype != DType::kBF16) return tensor;
    memory_.push_back(
        std::make_unique<HostTensor>(DType::kF32, tensor.batch, tensor.rows, tensor.width));
    EXPECT_TRUE(cpu.Convert(cpu.Context(), tensor, memory_.back()->view()).ok());
    return memory_.back()->view();
  }

  std::vector<std::unique_ptr<HostTensor>> memory_;
};

NodeResult RunOnGpu(const CapturedNode& node) {
  absl::StatusOr<NodeResult> result =
      RunNodeOnCuda(Golden(node.op, DeviceKind::kCuda), *CudaDeviceForTest(), node);
  EXPECT_TRUE(result.ok()) << node.name << ": " << result.status();
  return *std::move(result);
}

// Float32 sums of a few hundred to a few thousand terms, in blocks of 256.
constexpr ResultBounds kBounds = {2e-6, 4e-6, 2e-6};

CaseSizes Sizes(int64_t rows, std::vector<uint64_t> item_seeds, int64_t hidden, int64_t heads,
                int64_t head_width, int64_t frequencies) {
  CaseSizes sizes;
  sizes.rows = rows;
  sizes.item_seeds = std::move(item_seeds);
  sizes.hidden = hidden;
  sizes.heads = heads;
  sizes.head_width = head_width;
  sizes.frequencies = frequencies;
  return sizes;
}

void Compare(const CaseSizes& sizes) {
  const std::unique_ptr<Device> cpu = MakeCpuDevice(4, int64_t{16} << 30).value();
  for (const RandomCase& random_case : MakeRandomCases(sizes)) {
    const WideCase wide(random_case, *cpu);
    const NodeResult expected =
        RunCapturedNode(Golden(wide.node.op, DeviceKind::kCpu), *cpu, wide.node).value();
    ExpectClose(wide.node, expected, RunOnGpu(wide.node), kBounds);
  }
}

TEST(GoldenCuda, IsTheCpusAtOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(37, {1}, 40, 3, 22, 3));
  Compare(Sizes(293, {1, 2}, 131, 3, 106, 5));
}

TEST(GoldenCuda, IsTheCpusAtAlignedSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(1, {1}, 64, 1, 64, 8));
  Compare(Sizes(300, {1, 2}, 384, 4, 128, 16));
}

TEST(GoldenCuda, IsTheCaptured) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::unique_ptr<BlockCapture> capture = BlockCapture::Open("block0_fp32_cpu").value();
  for (const CapturedNode& node : capture->nodes()) {
    const NodeResult result = RunOnGpu(node);
    EXPECT_LE(RelativeL2(node.output, result.output->view()), 1e-5) << node.name;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.grad_inputs[i].IsNull()) continue;  // a part of a sum
      EXPECT_LE(RelativeL2(node.grad_inputs[i], result.grad_inputs[i]->view()), 1e-5)
          << node.name << ", gradient of input " << i;
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      EXPECT_LE(RelativeL2(node.grad_parameters[i], result.grad_parameters[i]->view()), 1e-5)
          << node.name << ", gradient of parameter " << i;
    }
  }
}

TEST(GoldenCuda, Repeats) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::unique_ptr<Device> cpu = MakeCpuDevice(4, int64_t{16} << 30).value();
  for (const RandomCase& random_case : MakeRandomCases(Sizes(925, {1}, 1344, 5, 128, 16))) {
    const WideCase wide(random_case, *cpu);
    const NodeResult expected = RunOnGpu(wide.node);
    for (int repeat = 0; repeat < 3; ++repeat) {
      ExpectClose(wide.node, expected, RunOnGpu(wide.node), {});
    }
  }
}

}  // namespace
}  // namespace plumbline
