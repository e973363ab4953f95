// plumbline-server killed while clients and workers are at it, by SIGKILL and at every named point,
// again and again: whatever it acknowledged is there afterwards, once.
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/crash_point.h"
#include "gtest/gtest.h"
#include "server/store/store_check.h"
#include "server/testing/acknowledged_load.h"
#include "server/testing/server_process.h"

namespace plumbline::server {
namespace {

constexpr int kWorkers = 3;

class CrashTest : public testing::Test {
 protected:
  CrashTest() : seed_(std::random_device()()), random_(seed_) {
    folder_ = absl::StrCat(testing::TempDir(), "/crash");
    std::filesystem::remove_all(folder_);
    std::printf("seed %u\n", seed_);
  }

  // One life of the coordinator: it is killed after some acknowledgements, or ends itself at
  // `crash_point`. Whether it did.
  bool Live(const std::string& crash_point, int64_t acknowledgements) {
    ++round_;
    ServerProcess server(OptionsOf(crash_point));
    // It may end while it starts.
    if (!server.serves()) return server.exit_status() == kCrashPointExitStatus;
    book_.Check(server.Connect(), 15, &random_, /*may_end=*/true);
    const int64_t enough = book_.operations() + acknowledgements;
    {
      LoadClient client(server.Connect(), &book_, absl::StrCat("round", round_), random_());
      std::vector<std::unique_ptr<LoadWorker>> workers;
      for (int i = 0; i < kWorkers; ++i) {
        workers.push_back(std::make_unique<LoadWorker>(server.Connect(), &book_,
                                                       absl::StrCat("w", i),
                                                       absl::StrCat("round", round_), random_()));
      }
      const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
      while (book_.operations() < enough && !server.HasEnded() && SystemClock()->Now() < deadline) {
        absl::SleepFor(absl::Milliseconds(1));
      }
      if (!server.HasEnded() && crash_point.empty()) {
        EXPECT_GE(book_.operations(), enough) << "it acknowledged too little in a minute";
      }
      server.Kill();
    }
    return server.exit_status() == kCrashPointExitStatus;
  }

  ServerProcess::Options OptionsOf(const std::string& crash_point) const {
    ServerProcess::Options options;
    options.folder = folder_;
    options.crash_point = crash_point;
    return options;
  }

  // Everything, over the API and in the folder.
  void CheckAll() {
    {
      ServerProcess server(OptionsOf(""));
      ASSERT_TRUE(server.serves());
      book_.Check(server.Connect(), 0, &random_);
      EXPECT_EQ(server.Terminate(), 0);
    }
    const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(folder_ + "/data");
    ASSERT_TRUE(check.ok()) << check.status();
    EXPECT_EQ(check->problem_count, 0) << absl::StrJoin(check->problems, "\n");
    EXPECT_TRUE(book_.problems().empty()) << absl::StrJoin(book_.problems(), "\n");
    std::printf("%s\n", book_.Summary().c_str());
  }

  const unsigned seed_;
  std::mt19937 random_;
  std::string folder_;
  AcknowledgedBook book_;
  int round_ = 0;
};

TEST_F(CrashTest, KilledAnywhereItLosesNothingThatWasAcknowledged) {
  for (int i = 0; i < 8; ++i) Live("", 20 + static_cast<int64_t>(random_() % 150));
  CheckAll();
}

TEST_F(CrashTest, EndedAtEveryNamedPointItLosesNothingThatWasAcknowledged) {
  // Those of docs/crash_points.md that work of this kind passes.
  const char* const points[] = {"store.before_commit", "store.after_commit",
                                "store.step_received", "store.blobs_written",
                                "store.blobs_flushed", "store.step_recorded"};
  for (const char* const point : points) {
    for (int i = 0; i < 2; ++i) {
      EXPECT_TRUE(Live(absl::StrCat(point, ":", 1 + random_() % 25), 1 << 20)) << point;
    }
  }
  CheckAll();
}

}  // namespace
}  // namespace plumbline::server
