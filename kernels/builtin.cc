#include "kernels/builtin.h"

namespace plumbline {

Registry MakeBuiltinRegistry() {
  Registry registry;
  RegisterGoldenCpu(registry);
  RegisterProviderCpu(registry);
  RegisterCandidateCpu(registry);
  return registry;
}

}  // namespace plumbline
