// The provider on a GPU against the provider on a CPU, and against captures of PyTorch's own run on
// an H200, which it must meet bit for bit where PyTorch's arithmetic is fixed.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "kernels/builtin.h"
#include "kernels/candidate/cpu/random_case.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/device.h"
#include "kernels/registry.h"

namespace plumbline {
namespace {

constexpr const char* kVariants[] = {"provider/default", "provider/sdpa-flash",
                                     "provider/sdpa-efficient", "provider/sdpa-math",
                                     "provider/blas-cublaslt"};

const Operation& Provider(const std::string& implementation, OpKind op, DeviceKind device) {
  static const Registry* const registry = [] {
    auto* filled = new Registry;
    RegisterProviderCpu(*filled);
    RegisterProviderCuda(*filled);
    return filled;
  }();
  return *registry->Find(implementation, op, "", device).value()->operation;
}

NodeResult RunOnGpu(const std::string& implementation, const CapturedNode& node) {
  absl::StatusOr<NodeResult> result = RunNodeOnCuda(
      Provider(implementation, node.op, DeviceKind::kCuda), *CudaDeviceForTest(), node);
  EXPECT_TRUE(result.ok()) << implementation << ", " << node.name << ": " << result.status();
  return *std::move(result);
}

// Scale, shift and gate are read through an index.
bool IsTable(const CapturedNode& node, size_t input) {
  return (node.op == OpKind::kModulatedRmsNorm && (input == 1 || input == 2)) ||
         (node.op == OpKind::kGatedResidual && input == 2);
}

// A last bit of a float32 sum moves few values over a tie, so that the relative error of a tensor
// stays far below one rounding of all of it, 1.7e-3. The tables' sums are bfloat16 in another
// order.
//
// cublasLt cuts a small product's sum into slices and adds them in the result's type, bfloat16
// (REDUCTION_SCHEME_INPLACE with 3 slices, as its log has it for such shapes): about one more
// rounding of the whole tensor each.
ResultBounds BoundsOf(const CapturedNode& node, bool prefers_lt) {
  constexpr double kFewRoundings = 4e-4;
  constexpr double kSlicesInBf16 = 4e-3;
  switch (node.op) {
    case OpKind::kLinear:
    case OpKind::kAdalnProjection:
      if (prefers_lt) return {kSlicesInBf16, kSlicesInBf16, kSlicesInBf16};
      // With a bias cublasLt computes the output in either.
      return {node.parameters.size() > 1 ? kSlicesInBf16 : kFewRoundings, kFewRoundings,
              kFewRoundings};
    case OpKind::kModulatedRmsNorm:
    case OpKind::kGatedResidual:
      return {kFewRoundings, 2e-2, kFewRoundings};
    case OpKind::kAttention:
      return {4e-3, 1e-2, 0};
    case OpKind::kTimeEmbedder:
      return {2e-6, 2e-6, 2e-6};
    default:
      return {kFewRoundings, kFewRoundings, kFewRoundings};
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

void Compare(const CaseSizes& sizes) {
  const std::unique_ptr<Device> cpu = MakeCpuDevice(4, int64_t{16} << 30).value();
  for (const RandomCase& random_case : MakeRandomCases(sizes)) {
    const CapturedNode& node = random_case.node;
    const Operation* previous = nullptr;
    for (const char* variant : kVariants) {
      const Operation& operation = Provider(variant, node.op, DeviceKind::kCuda);
      if (&operation == previous) continue;
      previous = &operation;
      SCOPED_TRACE(variant);
      const NodeResult expected =
          RunCapturedNode(Provider(variant, node.op, DeviceKind::kCpu), *cpu, node).value();
      ExpectClose(node, expected, RunOnGpu(variant, node),
                  BoundsOf(node, std::string(variant) == "provider/blas-cublaslt"));
    }
  }
}

TEST(ProviderCuda, IsTheCpusAtOddSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(37, {1}, 40, 3, 22, 3));
  Compare(Sizes(293, {1, 2}, 136, 3, 106, 5));
}

TEST(ProviderCuda, IsTheCpusAtAlignedSizes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Compare(Sizes(1, {1}, 64, 1, 64, 8));
  Compare(Sizes(300, {1, 2}, 384, 4, 128, 16));
}

// Prints what share of each tensor's values is not PyTorch's, and demands the share that the CPU
// provider meets.
void ExpectShare(const Tensor& captured, const Tensor& computed, double least,
                 const std::string& what) {
  const double share = EqualFraction(captured, computed);
  EXPECT_GE(share, least) << what;
  if (share < 1) std::printf("%s: %.4f %% differ\n", what.c_str(), 100 * (1 - share));
}

TEST(ProviderCuda, IsTheCaptured) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::unique_ptr<BlockCapture> capture = BlockCapture::Open("block0_bf16_cuda").value();
  for (const CapturedNode& node : capture->nodes()) {
    const NodeResult result = RunOnGpu("provider/default", node);
    ExpectShare(node.output, result.output->view(), 0.999, node.name);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.grad_inputs[i].IsNull()) continue;  // a part of a sum
      const std::string what = node.name + ", gradient of input " + std::to_string(i);
      if (IsTable(node, i)) {
        EXPECT_LE(RelativeL2(node.grad_inputs[i], result.grad_inputs[i]->view()), 1.5e-2) << what;
      } else {
        ExpectShare(node.grad_inputs[i], result.grad_inputs[i]->view(), 0.99, what);
      }
    }
    for (size_t i = 0; i < node.parameters.size(); ++i) {
      ExpectShare(node.grad_parameters[i], result.grad_parameters[i]->view(), 0.99,
                  node.name + ", gradient of parameter " + std::to_string(i));
    }
  }
}

}  // namespace
}  // namespace plumbline
