#include "common/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/mapped_file.h"
#include "common/private_file.h"

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

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

TEST_F(FilesTest, AnEntryIsARegularFileOfTheFolder) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "one").ok());
  EXPECT_EQ(*ReadEntry(Path("f"), 3), "one");
  EXPECT_EQ(ReadEntry(Path("f"), 2).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ReadEntry(Path("none"), 1).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  fs::create_directory(Path("sub"));
  fs::create_symlink("f", Path("link"));
  fs::create_symlink("nowhere", Path("dangling"));
  for (const char* name : {"fifo", "sub", "link", "dangling"}) {
    const absl::Status status = ReadEntry(Path(name), 3).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr(Path(name) + ": is ")) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("accepted: a regular file")) << name;
  }
  EXPECT_EQ(*ReadFile(Path("link"), 3), "one");
}

TEST_F(FilesTest, WhatOthersMayWriteIsNotPrivate) {
  ASSERT_TRUE(WriteFileAtomically(Path("f"), "one").ok());
  fs::create_symlink("f", Path("link"));  // As mounted secrets are.
  for (const mode_t mode : {0400, 0600, 0440, 0640, 0444, 0644}) {
    ASSERT_EQ(chmod(Path("f").c_str(), mode), 0);
    const absl::StatusOr<PrivateFile> file = ReadPrivateFile(Path("link"), 3);
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->text, "one");
    EXPECT_EQ(file->others_may_read, (mode & 04) != 0) << mode;
  }
  for (const mode_t mode : {0620, 0660, 0602, 0646, 0666}) {
    ASSERT_EQ(chmod(Path("f").c_str(), mode), 0);
    const absl::Status status = ReadPrivateFile(Path("f"), 3).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << mode;
    EXPECT_THAT(std::string(status.message()), HasSubstr("chmod 600 " + Path("f"))) << mode;
  }
  EXPECT_THAT(std::string(ReadPrivateFile(Path("f"), 3).status().message()), HasSubstr("0666"));
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(ReadPrivateFile(Path("fifo"), 3).ok());
  EXPECT_EQ(ReadPrivateFile(Path("none"), 3).status().code(), absl::StatusCode::kNotFound);
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

TEST_F(FilesTest, GuardedFoldersAreNotLeftThroughLinksThatWerePutThereAfterTheCheck) {
  // What a path named when it was checked, and what it names when it is opened.
  const std::string root = Path("guarded");
  const std::string outside = Path("outside");
  fs::create_directories(root + "/real/sub");
  fs::create_directories(outside + "/sub");
  ASSERT_TRUE(WriteFileAtomically(root + "/real/sub/f", "inside").ok());
  ASSERT_TRUE(WriteFileAtomically(outside + "/sub/f", "secret").ok());
  fs::create_symlink("real/sub/f", root + "/relative");
  GuardFolders({root, root + ".none", "/"});
  const absl::StatusOr<std::string> checked = ResolveUnderRoots("real/sub/f", {root});
  ASSERT_TRUE(checked.ok()) << checked.status();
  EXPECT_EQ(ReadFile(*checked, 100).value(), "inside");
  EXPECT_EQ(ReadFile(root + "/relative", 100).value(), "inside");
  const auto expect_refused = [](const std::string& path) {
    const absl::Status status = ReadFile(path, 100).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(status.message(), HasSubstr("out of"));
    EXPECT_FALSE(MappedFile::Open(path).ok());
  };
  // A folder in the middle, absolute and relative.
  fs::rename(root + "/real", root + "/moved");
  for (const std::string& target : {outside, std::string("../outside")}) {
    fs::create_symlink(target, root + "/real");
    expect_refused(*checked);
    fs::remove(root + "/real");
  }
  // The file itself.
  fs::rename(root + "/moved", root + "/real");
  fs::rename(*checked, *checked + ".moved");
  fs::create_symlink(outside + "/sub/f", *checked);
  expect_refused(*checked);
  // "..", and the links of /proc.
  expect_refused(root + "/real/../../outside/sub/f");
  fs::create_symlink("/proc/self/cwd", root + "/cwd");
  expect_refused(root + "/cwd/x");
}

TEST_F(FilesTest, LinksSwappedWhileFilesAreReadNeverLeadOut) {
  const std::string root = Path("swapped");
  fs::create_directories(root + "/a");
  fs::create_directories(Path("elsewhere"));
  ASSERT_TRUE(WriteFileAtomically(root + "/a/f", "inside").ok());
  ASSERT_TRUE(WriteFileAtomically(Path("elsewhere/f"), "secret").ok());
  fs::create_symlink(Path("elsewhere"), root + "/link");
  GuardFolders({root});
  std::atomic<bool> ending{false};
  std::thread swapper([&] {
    while (!ending) {
      // The folder and the link change places at once.
      syscall(SYS_renameat2, AT_FDCWD, (root + "/a").c_str(), AT_FDCWD, (root + "/link").c_str(),
              RENAME_EXCHANGE);
    }
  });
  int inside = 0, refused = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while ((inside < 500 || refused < 500) && std::chrono::steady_clock::now() < end) {
    const absl::StatusOr<std::string> path = ResolveUnderRoots("a/f", {root});
    const absl::StatusOr<std::string> text =
        path.ok() ? ReadFile(*path, 100) : absl::StatusOr<std::string>(path.status());
    if (text.ok()) {
      ASSERT_EQ(*text, "inside");
      ++inside;
    } else {
      ++refused;
    }
  }
  ending = true;
  swapper.join();
  EXPECT_GT(inside, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace plumbline
