// Paths of requests: nothing that a path opens lies outside the root, whatever links are there.
#include <unistd.h>

#include <climits>
#include <filesystem>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/temporary_folder.h"

namespace plumbline {
namespace {

namespace fs = std::filesystem;

// FOLDER/secret is outside; FOLDER/root holds files and links of every kind.
class Tree {
 public:
  Tree() : root_(folder_.path() + "/root") {
    fs::create_directories(root_ + "/d/e");
    for (const char* const file : {"/secret", "/root/f", "/root/d/f", "/rootless"}) {
      if (!WriteFileAtomically(folder_.path() + file, "x").ok()) std::abort();
    }
    fs::create_symlink("../secret", root_ + "/o");
    fs::create_symlink(folder_.path() + "/secret", root_ + "/a");
    fs::create_symlink("..", root_ + "/u");
    fs::create_symlink("../../..", root_ + "/d/e/u");
    fs::create_symlink("d/f", root_ + "/i");
    fs::create_symlink("l", root_ + "/l");
    fs::create_symlink("/proc/self/root", root_ + "/p");
    GuardFolders({root_});
  }
  const std::string& root() const { return root_; }

  bool Holds(absl::string_view path) const {
    return path == root_ || absl::StartsWith(path, root_ + "/");
  }

 private:
  const fuzz::TemporaryFolder folder_;
  const std::string root_;
};

// Whether what lies at `path`, if it opens, lies in the tree.
void RequireWithin(const Tree& tree, const std::string& path) {
  const absl::StatusOr<int> opened = OpenForReading(path);
  if (!opened.ok()) return;
  char real[PATH_MAX];
  const ssize_t size =
      readlink(absl::StrCat("/proc/self/fd/", *opened).c_str(), real, sizeof(real));
  FUZZ_REQUIRE(size > 0 && tree.Holds(absl::string_view(real, static_cast<size_t>(size))));
  close(*opened);
}

}  // namespace
}  // namespace plumbline

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace plumbline;  // NOLINT
  static const Tree tree;
  const absl::string_view text = fuzz::Input(data, size).Rest();
  for (const std::string& path : {std::string(text), absl::StrCat(tree.root(), "/", text)}) {
    const absl::StatusOr<std::string> resolved = ResolveUnderRoots(path, {tree.root()});
    if (!resolved.ok()) {
      FUZZ_REQUIRE(absl::IsInvalidArgument(resolved.status()));
      continue;
    }
    FUZZ_REQUIRE(tree.Holds(*resolved));
    RequireWithin(tree, *resolved);
  }
  // As if the check had seen another tree.
  RequireWithin(tree, absl::StrCat(tree.root(), "/", text));
  return 0;
}
