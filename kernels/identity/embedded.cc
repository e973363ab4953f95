#include "kernels/identity/embedded.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/string_view.h"
#include "kernels/identity/embedded_facts.h"

namespace plumbline {
namespace {

#if defined(__clang__)
constexpr char kCompiler[] = "clang " __clang_version__;
#elif defined(__GNUC__)
constexpr char kCompiler[] = "gcc " __VERSION__;
#else
#error "which compiler is this? Its name and version are part of the kernel identity."
#endif

// This file is compiled with the kernels' options, so these are the kernels' instruction sets.
constexpr absl::string_view kArchitecture =
#if defined(__x86_64__)
    "x86_64"
#elif defined(__aarch64__)
    "aarch64"
#else
#error "which architecture is this? It is part of the kernel identity."
#endif
#if defined(__AVX2__)
    " avx2"
#endif
#if defined(__FMA__)
    " fma"
#endif
#if defined(__AVX512F__)
    " avx512f"
#endif
    "";

KernelIdentity Assemble() {
  absl::StatusOr<KernelIdentity> identity =
      MakeKernelIdentity(kEmbeddedSources, kEmbeddedFlags, kCompiler, kArchitecture);
  if (!identity.ok()) {  // The build wrote what this program cannot read; its tests would fail.
    std::fprintf(stderr, "%s\n", identity.status().ToString().c_str());
    std::abort();
  }
  return *std::move(identity);
}

}  // namespace

const KernelIdentity& EmbeddedKernelIdentity() {
  static const KernelIdentity* const identity = new KernelIdentity(Assemble());
  return *identity;
}

}  // namespace plumbline
