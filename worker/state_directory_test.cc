#include "worker/state_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "common/files.h"

namespace plumbline::worker {
namespace {

using ::testing::HasSubstr;

std::string NewFolder(const std::string& name) {
  const std::string path = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

TEST(StateDirectoryTest, WorkerIdSurvivesARestart) {
  const std::string path = NewFolder("survives");
  std::string id;
  {
    const auto state = StateDirectory::Open(path, RandomIds());
    ASSERT_TRUE(state.ok()) << state.status();
    id = (*state)->worker_id();
    EXPECT_FALSE(id.empty());
  }
  EXPECT_EQ((*StateDirectory::Open(path, RandomIds()))->worker_id(), id);
  EXPECT_NE((*StateDirectory::Open(NewFolder("other"), RandomIds()))->worker_id(), id);
}

TEST(StateDirectoryTest, OneProcessAtATime) {
  const std::string path = NewFolder("locked");
  const auto state = StateDirectory::Open(path, RandomIds());
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(StateDirectory::Open(path, RandomIds()).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(StateDirectoryTest, DamagedIdIsToldNotReplaced) {
  const std::string path = NewFolder("damaged");
  std::filesystem::create_directories(path);
  ASSERT_TRUE(WriteFileAtomically(path + "/worker-id", "No Id!").ok());
  const absl::Status status = StateDirectory::Open(path, RandomIds()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("worker-id"));
}

TEST(StateDirectoryTest, TaskFolderIsEmptyForEachTask) {
  const auto state = StateDirectory::Open(NewFolder("task"), RandomIds());
  ASSERT_TRUE(state.ok()) << state.status();
  const std::string folder = *(*state)->NewTaskFolder();
  ASSERT_TRUE(WriteFileAtomically(folder + "/left", "x").ok());
  EXPECT_EQ(*(*state)->NewTaskFolder(), folder);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace plumbline::worker
