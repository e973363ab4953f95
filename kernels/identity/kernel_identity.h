#ifndef PLUMBLINE_KERNELS_IDENTITY_KERNEL_IDENTITY_H_
#define PLUMBLINE_KERNELS_IDENTITY_KERNEL_IDENTITY_H_

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Everything in a build that decides numbers: equal identities compute equal bytes on equal devices
// with equal libraries. It covers kernels/ and worker/h3; orchestration is not in it.
struct KernelIdentity {
  std::string sha256;    // Over all that follows, 64 hexadecimal digits.
  std::string compiler;  // E.g. "gcc 12.2.0".
  std::string flags;     // The distinct sets of number-deciding options, sorted, joined by "; ".
  std::string architecture;  // What the kernels are compiled for, e.g. "x86_64 avx2 fma".

  std::map<std::string, std::string> sources;       // SHA-256 by path from the workspace root.
  std::map<std::string, std::string> target_flags;  // Number-deciding options by Bazel label.
};

// Assembles an identity from what the build wrote (kernel_facts.bzl): `sources`, lines "SHA256
// PATH", and `flags`, lines "LABEL OPTION...". INVALID_ARGUMENT quotes a line that is not of that
// form or a path or label that is there twice.
//
// The digest is that of these lines, each ended by "\n": "plumbline-kernel-identity-1", "compiler
// C", "architecture A", "flags LABEL OPTION..." sorted by label, "source PATH SHA256" sorted by
// path.
absl::StatusOr<KernelIdentity> MakeKernelIdentity(absl::string_view sources,
                                                  absl::string_view flags,
                                                  absl::string_view compiler,
                                                  absl::string_view architecture);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_IDENTITY_KERNEL_IDENTITY_H_
