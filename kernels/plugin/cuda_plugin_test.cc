// CUDA plug-ins through the loader's own path, linked in instead of loaded: the right one against
// the candidate's attention, and the guards on device memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "common/status.h"
#include "kernels/builtin.h"
#include "kernels/candidate/cpu/random_case.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/plugin/fault.h"
#include "kernels/plugin/library.h"
#include "kernels/plugin/registration.h"
#include "kernels/registry.h"
#include "kernels/testing/bitwise.h"

// Each is a plug-in of examples/plugin with its entry renamed.
extern "C" {
const plumbline_plugin* attention_plugin();
const plumbline_plugin* unwritten_plugin();
const plumbline_plugin* overrun_plugin();
const plumbline_plugin* changes_input_plugin();
const plumbline_plugin* scratch_overrun_plugin();
}

namespace plumbline::plugin {
namespace {

using ::testing::HasSubstr;

Registry RegistryWith(const plumbline_plugin* description) {
  Registry registry;
  RegisterCandidateCuda(registry);
  const auto library = Library::FromDescription(description, std::string(64, 'a'));
  EXPECT_TRUE(library.ok()) << library.status();
  const absl::Status registered = Register(*library, AbilityOf(*CudaDeviceForTest()), &registry);
  EXPECT_TRUE(registered.ok()) << registered;
  return registry;
}

const RandomCase& CaseOf(const std::vector<RandomCase>& cases, OpKind op) {
  for (const RandomCase& each : cases) {
    if (each.node.op == op) return each;
  }
  ADD_FAILURE() << "no case of " << OpName(op);
  return cases.front();
}

// The forward of one node with workspace of the size asked for, guarded or not.
absl::StatusOr<HostTensor> Forward(const Operation& operation, const CapturedNode& node,
                                   bool guarded) {
  Device& device = *CudaDeviceForTest();
  std::vector<CudaTensor> memory;
  std::vector<Tensor> inputs, parameters;
  for (const auto* from : {&node.inputs, &node.parameters}) {
    for (const Tensor& host : *from) {
      PLUMBLINE_ASSIGN_OR_RETURN(CudaTensor on_device, CudaTensor::Upload(device, host));
      (from == &node.inputs ? inputs : parameters).push_back(on_device.view());
      memory.push_back(std::move(on_device));
    }
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const CudaTensor output, CudaTensor::Poisoned(device, node.output));
  ForwardCall call{inputs, parameters, node.attributes, output.view(), nullptr};
  ExecutionContext context = device.Context();
  context.node = node.name;
  context.guarded = guarded;
  PLUMBLINE_RETURN_IF_ERROR(operation.Check(call));
  const size_t bytes = operation.ForwardWorkspaceBytes(call, context);
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer workspace, device.Allocate(bytes));
  context.workspace = absl::MakeSpan(static_cast<uint8_t*>(workspace.data()), bytes);
  PLUMBLINE_RETURN_IF_ERROR(operation.Forward(context, call));
  return output.Download(device);
}

TEST(CudaPluginTest, TheExamplesAttentionIsNearTheCandidates) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const Registry registry = RegistryWith(attention_plugin());
  CaseSizes sizes;
  sizes.rows = 264;
  sizes.item_seeds = {1, 2};
  sizes.head_width = 64;
  const std::vector<RandomCase> cases = MakeRandomCases(sizes);
  const CapturedNode& node = CaseOf(cases, OpKind::kAttention).node;
  const auto found =
      registry.Find("plugin/example_attention", node.op, "attention", DeviceKind::kCuda);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ((*found)->status, BindingStatus::kInterim);
  const auto expected = Forward(
      *registry.Find("candidate", node.op, "attention", DeviceKind::kCuda).value()->operation, node,
      true);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto guarded = Forward(*(*found)->operation, node, true);
  ASSERT_TRUE(guarded.ok()) << guarded.status();
  EXPECT_LT(RelativeL2(expected->view(), guarded->view()), 5e-3);
  const auto unguarded = Forward(*(*found)->operation, node, false);
  ASSERT_TRUE(unguarded.ok()) << unguarded.status();
  EXPECT_TRUE(BitwiseEqual(guarded->view(), unguarded->view()));
}

TEST(CudaPluginTest, GuardsCatchOnDeviceMemory) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::vector<RandomCase> cases = MakeRandomCases({});
  const CapturedNode& node = CaseOf(cases, OpKind::kSwiGlu).node;
  const struct {
    const plumbline_plugin* description;
    const char* message;
  } wrong[] = {
      {unwritten_plugin(), "did not write the output at (0, 36, "},
      {overrun_plugin(), "wrote outside the output, 4 bytes behind its end, at (0, 37, 2)"},
      {changes_input_plugin(), "changed its input gate_up at (0, 3, 5)"},
      {scratch_overrun_plugin(), "wrote outside the workspace, 0 bytes behind its end"},
  };
  for (const auto& each : wrong) {
    const Registry registry = RegistryWith(each.description);
    const std::string name = std::string("plugin/") + each.description->name;
    const auto found = registry.Find(name, node.op, "swiglu", DeviceKind::kCuda);
    ASSERT_TRUE(found.ok()) << found.status();
    const auto result = Forward(*(*found)->operation, node, true);
    ASSERT_FALSE(result.ok()) << name;
    EXPECT_THAT(result.status().message(), HasSubstr(each.message)) << name;
    EXPECT_EQ(GetReason(result.status()), kViolationReason) << name;
  }
}

TEST(CudaPluginTest, AnOlderGpuIsRefusedByName) {
  const auto library = Library::FromDescription(attention_plugin(), std::string(64, 'a'));
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_THAT(CheckAbility(**library, {DeviceKind::kCuda, 75}).message(),
              HasSubstr("needs compute capability 80 (times ten); this device has 75"));
  EXPECT_THAT(CheckAbility(**library, {DeviceKind::kCpu, 0}).message(),
              HasSubstr("has kernels for CUDA alone"));
}

}  // namespace
}  // namespace plumbline::plugin
