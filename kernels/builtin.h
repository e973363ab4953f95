#ifndef PLUMBLINE_KERNELS_BUILTIN_H_
#define PLUMBLINE_KERNELS_BUILTIN_H_

#include "kernels/registry.h"

namespace plumbline {

// Each adds one family's operations for one device, under the names of docs/numerics.md.
void RegisterGoldenCpu(Registry& registry);     // "golden"
void RegisterProviderCpu(Registry& registry);   // "provider/default" and its variants
void RegisterCandidateCpu(Registry& registry);  // "candidate" and its fused operations

// The same for CUDA. They are there where the build has CUDA, whether or not the machine has a GPU.
void RegisterGoldenCuda(Registry& registry);
void RegisterProviderCuda(Registry& registry);
void RegisterCandidateCuda(Registry& registry);

// The registry of everything that is built in.
Registry MakeBuiltinRegistry();

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_BUILTIN_H_
