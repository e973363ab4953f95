// A plug-in's kernels as operations of the graph. Internal to the plug-ins.
#ifndef PLUMBLINE_KERNELS_PLUGIN_OPERATION_H_
#define PLUMBLINE_KERNELS_PLUGIN_OPERATION_H_

#include <memory>

#include "kernels/ops.h"
#include "kernels/plugin/guard_memory.h"
#include "kernels/plugin/library.h"

namespace plumbline::plugin {

// A kernel of one node. `kernel` is one of the library's.
std::shared_ptr<const Operation> MakeOperation(std::shared_ptr<const Library> library,
                                               const Kernel& kernel, const GuardMemory& memory);

// A kernel of several nodes.
std::shared_ptr<const FusedOperation> MakeFusedOperation(std::shared_ptr<const Library> library,
                                                         const Kernel& kernel,
                                                         const GuardMemory& memory);

// What stands for a node that only a kernel of several nodes covers: it never runs by itself.
std::shared_ptr<const Operation> MakeCoveredOperation(std::shared_ptr<const Library> library,
                                                      const Kernel& kernel);

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_OPERATION_H_
