#include "worker/artifacts/input_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <thread>

#include "common/clock_fake.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/lease/fake_coordinator.h"

namespace plumbline::worker {
namespace {

using ::testing::HasSubstr;

class InputFilesTest : public testing::Test {
 protected:
  InputFilesTest() {
    // Another folder for each test.
    folder_ =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_ + "/cache");
    std::filesystem::create_directories(folder_ + "/root");
    options_.cache_folder = folder_ + "/cache";
    options_.roots = {folder_ + "/root"};
  }

  static v1::InputFile Artifact(const std::string& name) {
    v1::InputFile file;
    file.set_artifact(name);
    return file;
  }

  static v1::InputFile WorkerPath(const std::string& path) {
    v1::InputFile file;
    file.set_worker_path(path);
    return file;
  }

  absl::StatusOr<std::string> Fetch(const v1::InputFile& file) {
    return InputFiles(&coordinator_, &clock_, options_).Fetch(file, "inputs", &cancellation_);
  }

  std::string folder_;
  InputFilesOptions options_;
  FakeClock clock_;
  FakeCoordinator coordinator_;
  Cancellation cancellation_;
};

TEST_F(InputFilesTest, ArtifactIsFetchedOnceAndKept) {
  // More than one range, and no multiple of anything.
  std::string bytes(17'000'003, 0);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i >> 7);
  coordinator_.AddArtifact("artifacts/a", bytes);
  coordinator_.AddArtifact("artifacts/empty", "");
  const auto path = Fetch(Artifact("artifacts/a"));
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*ReadFile(*path, bytes.size()), bytes);
  EXPECT_EQ(coordinator_.get_artifact_calls(), 4);
  EXPECT_EQ(*Fetch(Artifact("artifacts/a")), *path);
  EXPECT_EQ(coordinator_.get_artifact_calls(), 5);  // Only asked what it is.
  EXPECT_EQ(*ReadFile(*Fetch(Artifact("artifacts/empty")), 1), "");
}

TEST_F(InputFilesTest, DamagedCopyIsFetchedAgain) {
  coordinator_.AddArtifact("artifacts/a", "0123456789");
  const std::string path = *Fetch(Artifact("artifacts/a"));
  ASSERT_TRUE(WriteFileAtomically(path, "0123456780").ok());
  EXPECT_EQ(*Fetch(Artifact("artifacts/a")), path);
  EXPECT_EQ(*ReadFile(path, 100), "0123456789");
}

TEST_F(InputFilesTest, WaitsForACoordinatorThatIsAway) {
  coordinator_.AddArtifact("artifacts/a", "0123456789");
  coordinator_.SetAway(true);
  absl::StatusOr<std::string> path;
  std::thread fetcher([&] { path = Fetch(Artifact("artifacts/a")); });
  EXPECT_TRUE(clock_.WaitForWaiters(1));
  coordinator_.SetAway(false);
  clock_.Advance(absl::Minutes(1));
  fetcher.join();
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(*ReadFile(*path, 100), "0123456789");
}

TEST_F(InputFilesTest, CancellationEndsTheWait) {
  coordinator_.SetAway(true);
  absl::StatusOr<std::string> path;
  std::thread fetcher([&] { path = Fetch(Artifact("artifacts/a")); });
  EXPECT_TRUE(clock_.WaitForWaiters(1));
  cancellation_.Raise();
  fetcher.join();
  EXPECT_EQ(path.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(InputFilesTest, MissingArtifactIsNotFound) {
  EXPECT_EQ(Fetch(Artifact("artifacts/none")).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(InputFilesTest, WorkerPathsStayUnderTheRoots) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/root/in", "x").ok());
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/out", "x").ok());
  EXPECT_EQ(*ReadFile(*Fetch(WorkerPath("in")), 1), "x");
  for (const std::string path : {"../out", "none", "/etc/passwd"}) {
    const absl::Status status = Fetch(WorkerPath(path)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    ASSERT_EQ(GetFieldViolations(status).size(), 1u);
    EXPECT_EQ(GetFieldViolations(status)[0].field, "inputs");
  }
  EXPECT_THAT(Fetch(v1::InputFile()).status().message(), HasSubstr("worker_path"));
}

TEST_F(InputFilesTest, TrimRemovesWhatWasUsedLeastRecently) {
  coordinator_.AddArtifact("artifacts/a", std::string(1000, 'a'));
  coordinator_.AddArtifact("artifacts/b", std::string(1000, 'b'));
  const std::string a = *Fetch(Artifact("artifacts/a"));
  const std::string b = *Fetch(Artifact("artifacts/b"));
  std::filesystem::last_write_time(a,
                                   std::filesystem::last_write_time(b) - std::chrono::seconds(5));
  options_.max_cache_bytes = 1500;
  InputFiles(&coordinator_, &clock_, options_).Trim();
  EXPECT_FALSE(std::filesystem::exists(a));
  EXPECT_TRUE(std::filesystem::exists(b));
}

}  // namespace
}  // namespace plumbline::worker
