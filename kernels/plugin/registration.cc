#include "kernels/plugin/registration.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "kernels/plugin/guard_memory.h"
#include "kernels/plugin/operation.h"

namespace plumbline::plugin {
namespace {

const GuardMemory& GuardMemoryOf(DeviceKind kind) {
#ifdef PLUMBLINE_WITH_CUDA
  if (kind == DeviceKind::kCuda) return CudaGuardMemory();
#endif
  return CpuGuardMemory();
}

bool RunsOn(const Kernel& kernel, const DeviceAbility& device) {
  const DeviceKind kind =
      kernel.description->device == PLUMBLINE_CUDA ? DeviceKind::kCuda : DeviceKind::kCpu;
  return kind == device.kind &&
         (kind == DeviceKind::kCpu ||
          kernel.description->compute_capability <= device.compute_capability);
}

OperationRegistration Describe(const Library& library, const Kernel& kernel, const PluginNode& node,
                               DeviceKind device) {
  OperationRegistration registration;
  registration.implementation = library.implementation();
  registration.op = node.op;
  registration.device = device;
  registration.owner = library.owner();
  registration.status = kernel.description->status == PLUMBLINE_INTERIM ? BindingStatus::kInterim
                                                                        : BindingStatus::kBound;
  registration.nodes = {std::string(node.role)};
  registration.promises_repeatable = kernel.Promises(PLUMBLINE_REPEATABLE);
  registration.promises_row_invariant = kernel.Promises(PLUMBLINE_ROW_INVARIANT);
  return registration;
}

}  // namespace

DeviceAbility AbilityOf(Device& device) {
  DeviceAbility ability;
  ability.kind = device.kind();
#ifdef PLUMBLINE_WITH_CUDA
  if (ability.kind == DeviceKind::kCuda) {
    ability.compute_capability = CudaComputeCapability(device.Context());
  }
#endif
  return ability;
}

absl::Status CheckAbility(const Library& library, const DeviceAbility& device) {
  int least = -1;
  for (const Kernel& kernel : library.kernels()) {
    if (RunsOn(kernel, device)) return absl::OkStatus();
    const bool needs_cuda = kernel.description->device == PLUMBLINE_CUDA;
    if (needs_cuda && device.kind == DeviceKind::kCuda) {
      const int needed = kernel.description->compute_capability;
      least = least < 0 ? needed : std::min(least, needed);
    }
  }
  if (least >= 0) {
    return absl::FailedPreconditionError(absl::StrCat("needs compute capability ", least,
                                                      " (times ten); this device has ",
                                                      device.compute_capability));
  }
  return absl::FailedPreconditionError(
      device.kind == DeviceKind::kCuda
          ? "has kernels for a CPU alone; this worker has a CUDA device"
          : "has kernels for CUDA alone; this worker has a CPU");
}

absl::Status Register(std::shared_ptr<const Library> library, const DeviceAbility& device,
                      Registry* registry) {
  const std::vector<std::string> known = registry->Implementations(device.kind);
  if (std::find(known.begin(), known.end(), library->implementation()) != known.end()) {
    return absl::AlreadyExistsError(
        absl::StrCat("there is another plug-in of the name ", Quoted(library->name())));
  }
  PLUMBLINE_RETURN_IF_ERROR(CheckAbility(*library, device));
  const GuardMemory& memory = GuardMemoryOf(device.kind);
  std::vector<const PluginNode*> by_themselves;
  for (const Kernel& kernel : library->kernels()) {
    if (!RunsOn(kernel, device) || kernel.IsFused()) continue;
    OperationRegistration registration = Describe(*library, kernel, *kernel.nodes[0], device.kind);
    registration.operation = MakeOperation(library, kernel, memory);
    PLUMBLINE_RETURN_IF_ERROR(registry->Register(std::move(registration)));
    by_themselves.push_back(kernel.nodes[0]);
  }
  for (const Kernel& kernel : library->kernels()) {
    if (!RunsOn(kernel, device) || !kernel.IsFused()) continue;
    FusedRegistration fused;
    fused.implementation = library->implementation();
    fused.device = device.kind;
    fused.name =
        absl::StrCat(library->implementation(), "/",
                     absl::StrJoin(kernel.nodes, "+", [](std::string* out, const PluginNode* node) {
                       absl::StrAppend(out, node->role);
                     }));
    fused.operation = MakeFusedOperation(library, kernel, memory);
    for (const PluginNode* node : kernel.nodes) {
      fused.nodes.push_back({std::string(node->role), node->op});
      if (std::find(by_themselves.begin(), by_themselves.end(), node) != by_themselves.end()) {
        continue;
      }
      OperationRegistration registration = Describe(*library, kernel, *node, device.kind);
      registration.operation = MakeCoveredOperation(library, kernel);
      // Another kernel of several nodes may cover it too.
      registry->Register(std::move(registration)).IgnoreError();
      by_themselves.push_back(node);
    }
    PLUMBLINE_RETURN_IF_ERROR(registry->RegisterFused(std::move(fused)));
  }
  return absl::OkStatus();
}

}  // namespace plumbline::plugin
