// Nodes that a gate demands to be bitwise the provider's: their operations, on random data.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kernels/builtin.h"
#include "kernels/candidate/cpu/random_case.h"
#include "kernels/device.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

bool MustBeBitwise(OpKind op) {
  return op == OpKind::kRmsNorm || op == OpKind::kModulatedRmsNorm || op == OpKind::kRope ||
         op == OpKind::kGatedResidual || op == OpKind::kResidual;
}

CaseSizes Sizes(int64_t rows, int64_t hidden, int64_t head_width, int64_t frequencies) {
  CaseSizes sizes;
  sizes.rows = rows;
  sizes.item_seeds = {1, 2};
  sizes.hidden = hidden;
  sizes.head_width = head_width;
  sizes.frequencies = frequencies;
  return sizes;
}

TEST(ProviderParity, NormsRopeAndResidualsAreBitwise) {
  Registry registry;
  RegisterProviderCpu(registry);
  const std::unique_ptr<Device> device = MakeCpuDevice(2, int64_t{1} << 30).value();
  int compared = 0;
  for (const CaseSizes& sizes : {Sizes(37, 40, 22, 3), Sizes(264, 128, 128, 16),
                                 Sizes(925, 131, 64, 8), Sizes(41, 5376, 96, 16)}) {
    for (const RandomCase& random_case : MakeRandomCases(sizes)) {
      const CapturedNode& node = random_case.node;
      if (!MustBeBitwise(node.op)) continue;
      const Operation& provider =
          *registry.Find("provider/default", node.op, "", DeviceKind::kCpu).value()->operation;
      const NodeResult expected = RunCapturedNode(provider, *device, node).value();
      const NodeResult actual = RunCapturedNode(CandidateOperation(node.op), *device, node).value();
      EXPECT_TRUE(BitwiseEqual(expected.output->view(), actual.output->view())) << node.name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4 * 6);
}

}  // namespace
}  // namespace plumbline
