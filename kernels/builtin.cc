#include "kernels/builtin.h"

namespace plumbline {

Registry MakeBuiltinRegistry() {
  Registry registry;
  RegisterGoldenCpu(registry);
  RegisterProviderCpu(registry);
  RegisterCandidateCpu(registry);
#ifdef PLUMBLINE_WITH_CUDA
  RegisterGoldenCuda(registry);
  RegisterProviderCuda(registry);
  RegisterCandidateCuda(registry);
#endif
  return registry;
}

}  // namespace plumbline
