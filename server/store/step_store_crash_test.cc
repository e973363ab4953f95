// The step store's process killed at every named point of its write path, and its machine without
// power at any write or sync: no step that was acknowledged is lost, and none is there in part.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/crash_point.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "server/store/testing/fault_file_system.h"
#include "server/store/testing/step_store_harness.h"

extern char** environ;

namespace plumbline::server {
namespace {

using StepKey = std::pair<uint64_t, int32_t>;

// All places but the one that only a store of an older version passes: server/crash_test.cc.
std::vector<std::string> Places() {
  std::vector<std::string> places = CrashPlacesOf("store");
  places.erase(
      std::remove(places.begin(), places.end(), CrashPlaceName(CrashPlace::kStoreBeforeFormat)),
      places.end());
  return places;
}

// What one folder must hold.
struct Expected {
  std::set<StepKey> saved;
  std::set<StepKey> spoilt;     // May be quarantined.
  std::set<uint64_t> deleting;  // May be gone.
};

std::string NewFolder(absl::string_view name) {
  const std::string folder = absl::StrCat(testing::TempDir(), "/", name);
  std::filesystem::remove_all(folder);
  return folder;
}

// Runs step_writer, to be ended at `point`, and notes what it said. Its exit status.
int RunWriter(const std::string& folder, const std::string& point, Expected* expected) {
  int pipe_ends[2];
  EXPECT_EQ(pipe(pipe_ends), 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, pipe_ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addclose(&actions, pipe_ends[0]);
  std::string program = "server/store/testing/step_writer";
  std::string argument = folder;
  char* const argv[] = {program.data(), argument.data(), nullptr};
  setenv(kCrashPointVariable, point.c_str(), 1);
  pid_t pid = 0;
  EXPECT_EQ(posix_spawn(&pid, argv[0], &actions, nullptr, argv, environ), 0);
  unsetenv(kCrashPointVariable);
  posix_spawn_file_actions_destroy(&actions);
  close(pipe_ends[1]);
  std::string said;
  char buffer[4096];
  for (ssize_t size = 0; (size = read(pipe_ends[0], buffer, sizeof(buffer))) > 0;) {
    said.append(buffer, static_cast<size_t>(size));
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  for (const absl::string_view line : absl::StrSplit(said, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    const uint64_t seed = std::stoull(words[1]);
    if (words[0] == "put") {
      const StepKey key{seed, std::stoi(words[2])};
      EXPECT_TRUE(expected->saved.count(key) == 0 || expected->spoilt.count(key) > 0 ||
                  expected->deleting.count(seed) > 0)
          << line << " although it was acknowledged before";
      expected->saved.insert(key);
      expected->spoilt.erase(key);
    } else if (words[0] == "spoil") {
      expected->spoilt.insert({seed, std::stoi(words[2])});
    } else {
      expected->deleting.insert(seed);
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Opens the store and holds every step in it, and every one that must be, to its bytes.
void Check(StepStoreHarness* harness, const Expected& expected) {
  for (const uint64_t seed : {1, 2, 3}) {
    for (int32_t index = 0; index < 8; ++index) {
      const absl::StatusOr<StepStore::SavedStep> step =
          harness->steps().ReadStep(RunIdOf(seed), index);
      const StepKey key{seed, index};
      if (step.ok()) {
        ASSERT_EQ(step->outputs, MakeTestStep(seed, index).outputs) << seed << " " << index;
      } else {
        ASSERT_TRUE(absl::IsNotFound(step.status())) << step.status();
        ASSERT_TRUE(expected.saved.count(key) == 0 || expected.spoilt.count(key) > 0 ||
                    expected.deleting.count(seed) > 0)
            << "step " << index << " of seed " << seed << " was acknowledged and is lost";
      }
    }
  }
  const absl::StatusOr<std::vector<std::string>> problems = harness->steps().FindInconsistencies();
  ASSERT_TRUE(problems.ok()) << problems.status();
  ASSERT_TRUE(problems->empty()) << problems->front();
}

void CheckFolder(const std::string& folder, const Expected& expected) {
  StoreOptions options;
  options.path = folder;
  StepStoreHarness harness;
  const absl::Status opened = harness.Open(options);
  ASSERT_TRUE(opened.ok()) << opened;
  Check(&harness, expected);
}

TEST(StepStoreCrashTest, EveryPointIsPassedAndLosesNothing) {
  for (const std::string& point : Places()) {
    for (const int count : {1, 2, 7}) {
      SCOPED_TRACE(absl::StrCat(point, ":", count));
      const std::string folder = NewFolder("crash-point");
      Expected expected;
      const int status = RunWriter(folder, absl::StrCat(point, ":", count), &expected);
      if (count == 1) {
        ASSERT_EQ(status, kCrashPointExitStatus) << "never passed";
      }
      CheckFolder(folder, expected);
      if (testing::Test::HasFatalFailure()) return;
      // What is left is made, and nothing that was acknowledged is made again.
      expected.deleting.clear();
      const bool deleted = status == 0 || point == CrashPlaceName(CrashPlace::kStoreRunDeleted);
      if (deleted) expected.deleting.insert(2);
      ASSERT_EQ(RunWriter(folder, "", &expected), 0);
      CheckFolder(folder, expected);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(StepStoreCrashTest, LosesNothingOver200Kills) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const std::vector<std::string> places = Places();
  int kills = 0;
  while (kills < 200) {
    const std::string folder = NewFolder("kills");
    Expected expected;
    int status = kCrashPointExitStatus;
    while (status == kCrashPointExitStatus && kills < 200) {
      const std::string& point = places[random() % places.size()];
      status = RunWriter(folder, absl::StrCat(point, ":", 1 + random() % 6), &expected);
      if (status == kCrashPointExitStatus) ++kills;
      if (testing::Test::HasFailure()) return;
    }
    CheckFolder(folder, expected);
    if (testing::Test::HasFailure()) return;
  }
}

// One life of a machine: steps are saved until the power goes, or all are.
void Live(StepStoreHarness* harness, Expected* expected, std::mt19937* random) {
  for (int i = 0; i < 24; ++i) {
    const StepKey key{1 + (*random)() % 3, static_cast<int32_t>((*random)() % 8)};
    if ((*random)() % 12 == 0) {
      expected->deleting.insert(key.first);
      const absl::Status deleted = harness->steps().DeleteRun(RunIdOf(key.first), v1::AuditEvent());
      if (!deleted.ok() && !absl::IsNotFound(deleted)) continue;
      for (int32_t index = 0; index < 8; ++index) expected->saved.erase({key.first, index});
      expected->deleting.erase(key.first);
    } else if (harness->Put(MakeTestStep(key.first, key.second)).ok()) {
      expected->saved.insert(key);
    }
  }
}

TEST(StepStoreCrashTest, LosesNothingWithThePower) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937 random(seed);
  const auto files = std::make_shared<FaultFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  const std::string folder = NewFolder("power");
  StoreOptions options;
  options.path = folder;
  options.env = env.get();
  Expected expected;
  int outages = 0;
  for (int life = 0; life < 40; ++life) {
    SCOPED_TRACE(absl::StrCat("life ", life));
    StepStoreHarness harness;
    const absl::Status opened = harness.Open(options);
    ASSERT_TRUE(opened.ok()) << opened;
    Check(&harness, expected);
    if (HasFatalFailure()) return;
    // Of a deletion that was not acknowledged, what came of it stands from here on.
    for (const uint64_t deleting : std::exchange(expected.deleting, {})) {
      for (int32_t index = 0; index < 8; ++index) {
        if (!harness.steps().ReadStep(RunIdOf(deleting), index).ok()) {
          expected.saved.erase({deleting, index});
        }
      }
    }
    files->FailAfter(static_cast<int>(random() % 250));
    Live(&harness, &expected, &random);
    outages += files->failed() ? 1 : 0;
    harness.Close();
    files->LosePower(&random);
  }
  EXPECT_GT(outages, 10);
}

TEST(StepStoreCrashTest, AFullDiskRefusesAStepAndLosesNone) {
  const auto files = std::make_shared<FaultFileSystem>();
  const std::unique_ptr<rocksdb::Env> env = rocksdb::NewCompositeEnv(files);
  StoreOptions options;
  options.path = NewFolder("full");
  options.env = env.get();
  StepStoreHarness harness;
  ASSERT_TRUE(harness.Open(options).ok());
  ASSERT_TRUE(harness.Put(MakeTestStep(1, 0)).ok());
  files->SetFull(true);
  EXPECT_FALSE(harness.Put(MakeTestStep(1, 1)).ok());
  EXPECT_EQ(harness.steps().ReadStep(RunIdOf(1), 0)->outputs, MakeTestStep(1, 0).outputs);
  harness.Close();
  files->SetFull(false);
  ASSERT_TRUE(harness.Open(options).ok());
  Check(&harness, {{{1, 0}}, {}, {}});
  EXPECT_TRUE(absl::IsNotFound(harness.steps().ReadStep(RunIdOf(1), 1).status()));
  EXPECT_TRUE(harness.Put(MakeTestStep(1, 1)).ok());
}

}  // namespace
}  // namespace plumbline::server
