#include "common/files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// An empty folder of the test's own, with no links in its path.
class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    std::string pattern = ::testing::TempDir() + "/files_XXXXXX";
    folder_ = std::filesystem::canonical(mkdtemp(pattern.data()));
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  void Write(const std::string& name, const std::string& contents) const {
    std::ofstream(Path(name), std::ios::binary) << contents;
  }

  std::vector<std::string> Entries() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      names.push_back(entry.path().filename());
    }
    return names;
  }

  std::string folder_;
};

TEST_F(FilesTest, ReadsUpToTheLimit) {
  const std::string contents(200'000, 'x');
  Write("f", contents);
  EXPECT_EQ(*ReadFile(Path("f"), 200'000), contents);
  const absl::Status status = ReadFile(Path("f"), 199'999).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("larger than the accepted 199999 bytes"));
  EXPECT_THAT(status.message(), HasSubstr(Path("f")));
}

TEST_F(FilesTest, ReadsNothingButRegularFiles) {
  EXPECT_EQ(ReadFile(Path("none"), 1).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadFile(folder_, 1).status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(Path("fifo"), 1).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(FilesTest, WritesAtomically) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "one").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "two").ok());
  EXPECT_EQ(*ReadFile(Path("f"), 100), "two");
  EXPECT_THAT(Entries(), ElementsAre("f"));
  EXPECT_EQ(WriteFileAtomically(Path("none/f"), "x").code(), absl::StatusCode::kNotFound);
}

TEST_F(FilesTest, WithoutCommitTheOldFileStaysAndNothingIsLeft) {
  Write("f", "old");
  {
    absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path("f"));
    ASSERT_TRUE(file.ok());
    const uint8_t bytes[] = {'n', 'e', 'w'};
    ASSERT_TRUE(file->WriteAt(0, bytes).ok());
    EXPECT_EQ(*ReadFile(Path("f"), 100), "old");
  }
  EXPECT_EQ(*ReadFile(Path("f"), 100), "old");
  EXPECT_THAT(Entries(), ElementsAre("f"));
}

TEST_F(FilesTest, ResolvesPathsInsideTheRoots) {
  std::filesystem::create_directories(Path("a/sub"));
  std::filesystem::create_directories(Path("b"));
  Write("a/sub/f", "");
  Write("b/g", "");
  std::filesystem::create_symlink(Path("b/g"), Path("a/to_b"));
  const std::vector<std::string> roots = {Path("a"), Path("b")};
  EXPECT_EQ(*ResolveUnderRoots(Path("a/sub/f"), roots), Path("a/sub/f"));
  EXPECT_EQ(*ResolveUnderRoots("sub/f", roots), Path("a/sub/f"));
  EXPECT_EQ(*ResolveUnderRoots("./sub//f", roots), Path("a/sub/f"));
  EXPECT_EQ(*ResolveUnderRoots("g", roots), Path("b/g"));
  EXPECT_EQ(*ResolveUnderRoots(Path("a"), roots), Path("a"));
  // A link from one root into another stays under the roots.
  EXPECT_EQ(*ResolveUnderRoots("to_b", roots), Path("b/g"));
}

TEST_F(FilesTest, ARootMayItselfBeALink) {
  std::filesystem::create_directories(Path("real"));
  Write("real/f", "");
  std::filesystem::create_symlink(Path("real"), Path("link"));
  EXPECT_EQ(*ResolveUnderRoots("f", {Path("link")}), Path("real/f"));
  EXPECT_EQ(*ResolveUnderRoots(Path("link/f"), {Path("link")}), Path("real/f"));
  EXPECT_EQ(*ResolveUnderRoots(Path("real/f"), {Path("link")}), Path("real/f"));
}

TEST_F(FilesTest, RefusesWhateverLeavesTheRoots) {
  std::filesystem::create_directories(Path("a/sub"));
  std::filesystem::create_directories(Path("ab"));
  Write("secret", "");
  Write("ab/f", "");
  Write("a/f", "");
  std::filesystem::create_symlink(Path("secret"), Path("a/link"));
  std::filesystem::create_symlink(folder_, Path("a/up"));
  std::filesystem::create_symlink(Path("a/loop"), Path("a/loop"));
  const std::vector<std::string> roots = {Path("a")};
  const struct {
    std::string path;
    const char* why;
  } cases[] = {
      {"", "is empty"},
      {std::string("f\0", 2), "NUL"},
      {"../secret", "component \"..\""},
      {"sub/../f", "component \"..\""},
      {Path("a/../secret"), "component \"..\""},
      {Path("secret"), "outside the configured roots"},
      {Path("ab/f"), "outside the configured roots"},
      {"/etc/passwd", "outside the configured roots"},
      {"/no/such/file", "outside the configured roots"},
      {"/", "outside the configured roots"},
      {"link", "leads through a link out of"},
      {Path("a/up/secret"), "leads through a link out of"},
      {"up/ab/f", "leads through a link out of"},
      {"loop", "does not exist"},
      {"none", "does not exist"},
  };
  for (const auto& c : cases) {
    const absl::Status status = ResolveUnderRoots(c.path, roots).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.path;
    EXPECT_THAT(status.message(), HasSubstr(c.why)) << c.path;
    EXPECT_THAT(status.message(), HasSubstr("accepted: an existing path under " + Path("a")));
  }
  EXPECT_THAT(ResolveUnderRoots("f", {}).status().message(), HasSubstr("of which there is none"));
}

}  // namespace
}  // namespace plumbline
