#include "kernels/must_register.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/status/status.h"

namespace plumbline {
namespace {

void EndUnlessOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "plumbline: built-in kernels: %s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace

void MustRegister(Registry& registry, OperationRegistration registration) {
  EndUnlessOk(registry.Register(std::move(registration)));
}

void MustRegister(Registry& registry, FusedRegistration registration) {
  EndUnlessOk(registry.RegisterFused(std::move(registration)));
}

}  // namespace plumbline
