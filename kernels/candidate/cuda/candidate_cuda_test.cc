// The candidate on a GPU against the candidate on a CPU: the same bytes where both compute in one
// order, otherwise within bounds that a wrong term would break; and against captures of the model.
#include <gtest/gtest.h>

#include <cstring>
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

const Operation& CudaOperation(OpKind op) {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    RegisterCandidateCuda(*filled);
    return filled;
  }();
  return *registry->Find("candidate", op, "", DeviceKind::kCuda).value()->operation;
}

// A bfloat16 value that a last bit of a float32 sum moves over a tie differs by 2^-8 of itself; few
// do, so that the relative error of a tensor stays far below one rounding of all of it, 1.7e-3.
constexpr double kFewRoundings = 3e-4;

ResultBounds BoundsOf(const CapturedNode& node) {
  switch (node.op) {
    case OpKind::kLinear:
    case OpKind::kAdalnProjection:
      // The matrix units add in an order of their own.
      return node.output.dtype == DType::kBF16
                 ? ResultBounds{kFewRoundings, kFewRoundings, kFewRoundings}
                 : ResultBounds{};
    case OpKind::kRmsNorm:
    case OpKind::kModulatedRmsNorm:
      // Statistics in PyTorch's order.
      return {kFewRoundings, kFewRoundings, kFewRoundings};
    case OpKind::kRope:
      // cosf and sinf.
      return {kFewRoundings, kFewRoundings, 0};
    case OpKind::kAttention:
      // p and ds rounded to bfloat16 between.
      return {4e-3, 1e-2, 0};
    default:
      return {};
  }
}

void Compare(const CaseSizes& sizes) {
  const std::unique_ptr<Device> cpu = MakeCpuDevice(4, int64_t{16} << 30).value();
  Device& gpu = *CudaDeviceForTest();
  for (const RandomCase& random_case : MakeRandomCases(sizes)) {
    const CapturedNode& node = random_case.node;
    const NodeResult expected = RunCapturedNode(CandidateOperation(node.op), *cpu, node).value();
    const absl::StatusOr<NodeResult> actual = RunNodeOnCuda(CudaOperation(node.op), gpu, node);
    ASSERT_TRUE(actual.ok()) << node.name << ": " << actual.status();
    ExpectClose(node, expected, *actual, BoundsOf(node));
  }
}

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

TEST(CandidateCuda, EqualsTheCpuAtOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(37, {1}, 40, 3, 22, 3));
  Compare(Sizes(293, {1, 2}, 131, 3, 106, 5));
}

TEST(CandidateCuda, EqualsTheCpuAtAlignedSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(5, {1}, 64, 1, 64, 8));
  Compare(Sizes(256, {1, 2}, 384, 4, 128, 16));
}

TEST(CandidateCuda, EqualsTheCpuAtReleasedWidths) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(264, {1}, 5376, 56, 128, 16));
}

TEST(CandidateCuda, ErrorOnCapturesIsWithinTheGates) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::unique_ptr<BlockCapture> bf16 = BlockCapture::Open("block0_bf16_cuda").value();
  const std::unique_ptr<BlockCapture> fp32 = BlockCapture::Open("block0_fp32_cpu").value();
  for (const CapturedNode& node : bf16->nodes()) {
    const CapturedNode& golden = fp32->node(node.name);
    const NodeResult result =
        RunNodeOnCuda(CudaOperation(node.op), *CudaDeviceForTest(), node).value();
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

// The nodes that the gates demand to be the provider's bit for bit, against PyTorch's own run on an
// H200.
TEST(CandidateCuda, NormsRopeAndResidualsAreTheCaptured) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::unique_ptr<BlockCapture> capture = BlockCapture::Open("block0_bf16_cuda").value();
  int compared = 0;
  for (const CapturedNode& node : capture->nodes()) {
    if (node.op == OpKind::kLinear || node.op == OpKind::kAdalnProjection ||
        node.op == OpKind::kAttention || node.op == OpKind::kSwiGlu) {
      continue;
    }
    const NodeResult result =
        RunNodeOnCuda(CudaOperation(node.op), *CudaDeviceForTest(), node).value();
    EXPECT_TRUE(BitwiseEqual(node.output, result.output->view())) << node.name;
    ++compared;
  }
  EXPECT_EQ(compared, 8);
}

// SiLU has a shorter way for all but extreme values, and where there are many rows it is looked up:
// over every gate that there is, the bytes are the CPU's.
void ExpectEveryGateEqualsTheCpu(int64_t copies) {
  constexpr int64_t kPatterns = 1 << 16;
  constexpr int64_t kWidth = 1024;
  const int64_t rows = copies * kPatterns / kWidth;
  const HostTensor gate_up(DType::kBF16, 1, rows, 2 * kWidth);
  for (int64_t i = 0; i < copies * kPatterns; ++i) {
    uint16_t* const row = gate_up.view().Row<uint16_t>(i / kWidth);
    const uint16_t bits = static_cast<uint16_t>(i % kPatterns);
    const bool is_finite = (bits & 0x7F80) != 0x7F80;
    row[i % kWidth] = 0x3F80;  // 1
    row[kWidth + i % kWidth] = is_finite ? bits : 0;
  }
  const HostTensor output(DType::kBF16, 1, rows, kWidth);
  CapturedNode node;
  node.name = "swiglu";
  node.op = OpKind::kSwiGlu;
  node.inputs = {gate_up.view()};
  node.output = output.view();
  node.grad_output = output.view();
  node.input_has_gradient = {false};
  node.grad_inputs = {Tensor()};
  std::memset(output.view().data, 0, output.view().NumBytes());
  const std::unique_ptr<Device> cpu = MakeCpuDevice(4, int64_t{1} << 30).value();
  const NodeResult expected = RunCapturedNode(CandidateOperation(node.op), *cpu, node).value();
  const NodeResult actual =
      RunNodeOnCuda(CudaOperation(node.op), *CudaDeviceForTest(), node).value();
  EXPECT_TRUE(BitwiseEqual(expected.output->view(), actual.output->view())) << copies;
}

TEST(CandidateCuda, SwiGluOfEveryGateEqualsTheCpu) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  ExpectEveryGateEqualsTheCpu(1);
  ExpectEveryGateEqualsTheCpu(129);
}

}  // namespace
}  // namespace plumbline
