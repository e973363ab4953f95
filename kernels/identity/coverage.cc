#include "kernels/identity/coverage.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline {
namespace {

constexpr absl::string_view kFolders[] = {"kernels", "worker/h3"};
constexpr absl::string_view kExtensions[] = {".h",  ".hpp", ".inc", ".c",   ".cc",   ".cpp",
                                             ".cu", ".cuh", ".ptx", ".s",   ".S",    ".cxx",
                                             ".hh", ".hxx", ".inl", ".tpp", ".cubin"};
constexpr size_t kMaxSourceBytes = 16 << 20;

// Options of GCC, Clang and nvcc. The values that an option takes are part of it.
constexpr absl::string_view kFastMath[] = {
    "-Ofast",
    "-ffast-math",
    "-funsafe-math-optimizations",
    "-fassociative-math",
    "-freciprocal-math",
    "-ffinite-math-only",
    "-fno-signed-zeros",
    "-fno-honor-nans",
    "-fno-honor-infinities",
    "-fapprox-func",
    "-fsingle-precision-constant",
    "-fcx-limited-range",
    "-fcx-fortran-rules",
    "-ffp-contract=fast",
    "-ffp-contract=on",
    "-ffp-model=fast",
    "-ffp-model=aggressive",
    "-fexcess-precision=fast",
    "-fdenormal-fp-math=preserve-sign",
    "-fdenormal-fp-math=positive-zero",
    "-mfpmath=387",
    "-mfpmath=both",
    "-mrecip",
    "-mdaz-ftz",
    "-mpc32",
    "-mpc64",
    "-use_fast_math",
    "--use_fast_math",
    "-ftz=true",
    "--ftz=true",
    "-prec-div=false",
    "--prec-div=false",
    "-prec-sqrt=false",
    "--prec-sqrt=false",
    "-cl-fast-relaxed-math",
};

// What a source may not say itself.
constexpr absl::string_view kArithmeticRequests[] = {
    "pragma GCC optimize",  "pragma STDC FP_CONTRACT", "pragma clang fp",
    "pragma float_control", "__attribute__((optimize", "[[gnu::optimize",
    "fesetround(",          "_MM_SET_FLUSH_ZERO_MODE", "_MM_SET_DENORMALS_ZERO_MODE",
};

bool IsSource(absl::string_view path) {
  return absl::c_any_of(kExtensions, [path](absl::string_view extension) {
    return absl::EndsWith(path, extension) &&
           !absl::EndsWith(path, absl::StrCat("_test", extension));
  });
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListSources(const std::string& root, CudaSources cuda) {
  std::error_code error;
  if (!std::filesystem::exists(root + "/WORKSPACE", error)) {
    return absl::NotFoundError(absl::StrCat(root, " is no workspace: it has no WORKSPACE file"));
  }
  std::vector<std::string> sources;
  for (absl::string_view folder : kFolders) {
    std::filesystem::recursive_directory_iterator entry(absl::StrCat(root, "/", folder), error);
    for (; !error && entry != std::filesystem::recursive_directory_iterator();
         entry.increment(error)) {
      if (entry->is_directory()) continue;
      const std::string path = entry->path().string().substr(root.size() + 1);
      const bool left_out = cuda == CudaSources::kLeftOut && absl::StrContains(path, "/cuda/");
      if (IsSource(path) && !left_out) sources.push_back(path);
    }
    if (error) {
      return absl::UnavailableError(absl::StrCat(root, "/", folder, ": ", error.message()));
    }
  }
  absl::c_sort(sources);
  return sources;
}

absl::StatusOr<std::vector<std::string>> FindGaps(const std::string& root, CudaSources cuda,
                                                  const std::map<std::string, std::string>& covered,
                                                  const std::set<std::string>& test_support) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<std::string> sources, ListSources(root, cuda));
  std::vector<std::string> gaps;
  for (const std::string& path : sources) {
    const auto found = covered.find(path);
    if (found == covered.end()) {
      if (test_support.count(path) == 0) gaps.push_back(absl::StrCat(path, ": is not covered"));
      continue;
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string text,
                               ReadFile(absl::StrCat(root, "/", path), kMaxSourceBytes));
    if (Sha256Hex(text) != found->second) {
      gaps.push_back(absl::StrCat(path, ": is not the file that was hashed"));
    }
    for (absl::string_view request : kArithmeticRequests) {
      if (absl::StrContains(text, request)) {
        gaps.push_back(absl::StrCat(path, ": says \"", request, "\""));
      }
    }
  }
  return gaps;
}

std::vector<std::string> FastMathOptions(absl::string_view options) {
  std::vector<std::string> found;
  for (absl::string_view option : absl::StrSplit(options, ' ', absl::SkipEmpty())) {
    const bool recip = absl::StartsWith(option, "-mrecip=") && option != "-mrecip=none";
    if (recip || absl::c_linear_search(kFastMath, option)) found.emplace_back(option);
  }
  return found;
}

}  // namespace plumbline
