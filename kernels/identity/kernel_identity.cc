#include "kernels/identity/kernel_identity.h"

#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline {
namespace {

constexpr size_t kHexDigits = 64;

absl::Status BadLine(absl::string_view what, absl::string_view line) {
  return absl::InvalidArgumentError(absl::StrCat("kernel identity: ", what, ": ", Quoted(line)));
}

}  // namespace

absl::StatusOr<KernelIdentity> MakeKernelIdentity(absl::string_view sources,
                                                  absl::string_view flags,
                                                  absl::string_view compiler,
                                                  absl::string_view architecture) {
  KernelIdentity identity;
  identity.compiler = std::string(compiler);
  identity.architecture = std::string(architecture);

  for (absl::string_view line : absl::StrSplit(sources, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits("  ", 1));
    if (parts.first.size() != kHexDigits || parts.second.empty()) {
      return BadLine("no line of a digest and a path", line);
    }
    if (!identity.sources.emplace(parts.second, parts.first).second) {
      return BadLine("a path twice", line);
    }
  }
  std::set<std::string> distinct;
  for (absl::string_view line : absl::StrSplit(flags, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 1));
    if (!absl::StartsWith(parts.first, "//")) {
      return BadLine("no line of a label and options", line);
    }
    if (!identity.target_flags.emplace(parts.first, parts.second).second) {
      return BadLine("a label twice", line);
    }
    distinct.emplace(parts.second);
  }
  identity.flags = absl::StrJoin(distinct, "; ");

  Sha256 lines;
  lines.Update(absl::StrCat("plumbline-kernel-identity-1\ncompiler ", compiler, "\narchitecture ",
                            architecture, "\n"));
  for (const auto& [label, options] : identity.target_flags) {
    lines.Update(absl::StrCat("flags ", label, " ", options, "\n"));
  }
  for (const auto& [path, digest] : identity.sources) {
    lines.Update(absl::StrCat("source ", path, " ", digest, "\n"));
  }
  identity.sha256 = lines.FinishHex();
  return identity;
}

}  // namespace plumbline
