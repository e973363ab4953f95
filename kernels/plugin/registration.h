#ifndef PLUMBLINE_KERNELS_PLUGIN_REGISTRATION_H_
#define PLUMBLINE_KERNELS_PLUGIN_REGISTRATION_H_

#include <memory>

#include "absl/status/status.h"
#include "kernels/plugin/library.h"
#include "kernels/registry.h"

namespace plumbline::plugin {

// What the kernels of a plug-in may run on.
struct DeviceAbility {
  DeviceKind kind = DeviceKind::kCpu;
  int compute_capability = 0;  // CUDA: times ten
};

DeviceAbility AbilityOf(Device& device);

// FAILED_PRECONDITION says why none of the plug-in's kernels runs there.
absl::Status CheckAbility(const Library& library, const DeviceAbility& device);

// Registers as "plugin/NAME" the kernels that run on the device, with guards around every call. A
// kernel of several nodes is a fused operation, which is all there is for a node that has no kernel
// of its own. ALREADY_EXISTS if there is a plug-in of this name.
absl::Status Register(std::shared_ptr<const Library> library, const DeviceAbility& device,
                      Registry* registry);

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_REGISTRATION_H_
