// The whole coordinator on a machine that fails: the power goes at any write, the disk is full,
// reads fail, bits flip, the clock jumps. Whatever was acknowledged is there afterwards, once.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/status.h"
#include "gtest/gtest.h"
#include "rocksdb/env.h"
#include "server/store/store_check.h"
#include "server/store/testing/fault_file_system.h"
#include "server/testing/acknowledged_load.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

class FaultsTest : public CoordinatorTest {
 protected:
  FaultsTest()
      : seed_(std::random_device()()),
        random_(seed_),
        files_(std::make_shared<FaultFileSystem>()),
        env_(rocksdb::NewCompositeEnv(files_)) {
    options_.env = env_.get();
    options_.http = "";
    std::printf("seed %u\n", seed_);
  }

  std::shared_ptr<grpc::Channel> Connect() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(coordinator_->addresses()[0],
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  // Clients and workers at it until `over`.
  void Load(const std::function<bool()>& over) {
    ++round_;
    LoadClient client(Connect(), &book_, absl::StrCat("round", round_), random_());
    std::vector<std::unique_ptr<LoadWorker>> workers;
    for (int i = 0; i < 3; ++i) {
      workers.push_back(std::make_unique<LoadWorker>(Connect(), &book_, absl::StrCat("w", i),
                                                     absl::StrCat("round", round_), random_()));
    }
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
    while (!over() && SystemClock()->Now() < deadline) absl::SleepFor(absl::Milliseconds(1));
  }

  void LoadFor(int64_t acknowledgements) {
    const int64_t enough = book_.operations() + acknowledgements;
    Load([&] { return book_.operations() >= enough; });
    EXPECT_GE(book_.operations(), enough);
  }

  // Nothing fails any more: everything is there, over the API and in the folder. Where bytes came
  // back changed, blobs may have been put aside: they were noticed.
  void CheckAll(bool bytes_rotted = false) {
    coordinator_.reset();
    options_.env = nullptr;
    Start();
    ASSERT_NE(coordinator_, nullptr);
    book_.Check(Connect(), 0, &random_);
    coordinator_.reset();
    const absl::StatusOr<StoreCheck::Result> check = StoreCheck::Run(options_.data_dir);
    ASSERT_TRUE(check.ok()) << check.status();
    std::vector<std::string> problems = check->problems;
    if (bytes_rotted) {
      const auto quarantined = [](const std::string& problem) {
        return absl::EndsWith(problem, "was found corrupt and is quarantined");
      };
      problems.erase(std::remove_if(problems.begin(), problems.end(), quarantined), problems.end());
    }
    EXPECT_TRUE(problems.empty()) << absl::StrJoin(problems, "\n");
    if (!bytes_rotted) {
      EXPECT_EQ(check->problem_count, 0);
    }
    EXPECT_TRUE(book_.problems().empty()) << absl::StrJoin(book_.problems(), "\n");
    std::printf("%s\n", book_.Summary().c_str());
  }

  const unsigned seed_;
  std::mt19937 random_;
  const std::shared_ptr<FaultFileSystem> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  AcknowledgedBook book_;
  int round_ = 0;
};

TEST_F(FaultsTest, LosesNothingWithThePower) {
  int outages = 0;
  for (int life = 0; life < 12; ++life) {
    Start();
    ASSERT_NE(coordinator_, nullptr);
    book_.Check(Connect(), 10, &random_);
    files_->FailAfter(static_cast<int>(random_() % 400));
    const int64_t enough = book_.operations() + 2000;
    Load([&] { return files_->failed() || book_.operations() > enough; });
    outages += files_->failed() ? 1 : 0;
    coordinator_.reset();
    files_->LosePower(&random_);
  }
  EXPECT_GT(outages, 6);
  CheckAll();
}

TEST_F(FaultsTest, AFullDiskRefusesAndLosesNothing) {
  for (int life = 0; life < 3; ++life) {
    Start();
    ASSERT_NE(coordinator_, nullptr);
    LoadFor(100);
    files_->SetFull(true);
    // From the first write that finds no room on, nothing is acknowledged.
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
    while (Create(Replay({"tiny"})).ok() && SystemClock()->Now() < deadline) {
    }
    const absl::StatusOr<v1::Job> refused = Create(Replay({"tiny"}));
    EXPECT_TRUE(absl::IsUnavailable(refused.status()) ||
                absl::IsResourceExhausted(refused.status()))
        << refused.status();
    const auto channel = Connect();
    while (HealthOf(channel.get(), "readiness") != "NOT_SERVING" &&
           SystemClock()->Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(HealthOf(channel.get(), "readiness"), "NOT_SERVING");
    EXPECT_EQ(HealthOf(channel.get(), "liveness"), "SERVING");
    // It stays so, whatever is asked of it, through RocksDB's own attempts to recover.
    const absl::Time until = SystemClock()->Now() + absl::Seconds(1);
    do {
      EXPECT_FALSE(Create(Replay({"tiny"})).ok());
      const v1::CompactRequest compact;
      EXPECT_FALSE(Call(store_.get(), &v1::StoreService::Stub::Compact, compact).ok());
    } while (SystemClock()->Now() < until);
    EXPECT_EQ(HealthOf(channel.get(), "readiness"), "NOT_SERVING");
    // What is there can still be read.
    EXPECT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).ok());
    coordinator_.reset();
    files_->SetFull(false);
  }
  CheckAll();
}

TEST_F(FaultsTest, ReadsThatFailOrLieAreErrorsAndNothingElse) {
  Start();
  LoadFor(300);
  for (const bool flips : {false, true}) {
    if (flips) book_.BytesMayRot();
    for (int life = 0; life < 8; ++life) {
      // Into tables, which are then read through what fails. (That a flipped bit in the very end of
      // the log is told from a torn one, nobody can ask.)
      v1::CompactRequest compact;
      ASSERT_TRUE(Call(store_.get(), &v1::StoreService::Stub::Compact, compact).ok());
      coordinator_.reset();
      files_->SpoilReads(random_(), flips ? 0 : 40, flips ? 40 : 0);
      absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(options_);
      // A store that cannot be read does not open; it never opens with less in it.
      if (started.ok()) started->reset();
      files_->SpoilReads(0, 0, 0);
      Start();
      ASSERT_NE(coordinator_, nullptr);
      book_.Check(Connect(), 10, &random_);
      files_->SpoilReads(random_(), flips ? 0 : 15, flips ? 15 : 0);
      const absl::Time until = SystemClock()->Now() + absl::Milliseconds(300);
      Load([&] { return SystemClock()->Now() > until; });
      files_->SpoilReads(0, 0, 0);
      coordinator_.reset();
      Start();
      ASSERT_NE(coordinator_, nullptr);
    }
  }
  EXPECT_GT(files_->spoilt_reads(), 20);
  CheckAll(/*bytes_rotted=*/true);
}

TEST_F(FaultsTest, ABitFlippedInTheLogIsNoticedOrWasNeverAcknowledged) {
  options_.env = nullptr;
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back(Create(Replay({"tiny"}))->name());
  coordinator_.reset();
  const std::string data = options_.data_dir;
  std::string log;
  for (const auto& entry : std::filesystem::directory_iterator(data + "/store")) {
    if (entry.path().extension() == ".log" && std::filesystem::file_size(entry.path()) > 0) {
      log = entry.path().filename();
    }
  }
  ASSERT_FALSE(log.empty());
  const auto size = std::filesystem::file_size(data + "/store/" + log);
  int noticed = 0;
  for (int i = 0; i < 12; ++i) {
    const std::string copy = absl::StrCat(data, ".flipped");
    std::filesystem::remove_all(copy);
    std::filesystem::copy(data, copy, std::filesystem::copy_options::recursive);
    // Not in the last record, which may have been torn.
    const auto position = static_cast<std::streamoff>(random_() % (size * 9 / 10));
    {
      std::fstream file(copy + "/store/" + log, std::ios::in | std::ios::out | std::ios::binary);
      file.seekg(position);
      const char byte = static_cast<char>(file.get() ^ (1 << (random_() % 8)));
      file.seekp(position);
      file.put(byte);
    }
    options_.data_dir = copy;
    const absl::StatusOr<std::unique_ptr<Coordinator>> started = Coordinator::Start(options_);
    if (!started.ok()) {
      ++noticed;
      continue;
    }
    jobs_ = v1::JobService::NewStub(
        grpc::CreateChannel((*started)->addresses()[0], grpc::InsecureChannelCredentials()));
    for (const std::string& name : names) {
      EXPECT_TRUE(Get(name).ok()) << name << " is lost without a word, byte " << position;
    }
  }
  EXPECT_GT(noticed, 6);
}

TEST_F(FaultsTest, AClockThatJumpsLosesNothing) {
  options_.clock = &fake_clock_;
  Start();
  for (const absl::Duration jump :
       {absl::Hours(10), -absl::Hours(30), absl::Hours(1000), -absl::Hours(1)}) {
    const int64_t enough = book_.operations() + 60;
    bool jumped = false;
    Load([&] {
      if (!jumped && book_.operations() > enough - 30) {
        jumped = true;
        fake_clock_.Advance(jump);
      }
      // Long polls and leases go by this clock.
      fake_clock_.Advance(absl::Milliseconds(5));
      return book_.operations() >= enough;
    });
    EXPECT_GE(book_.operations(), enough);
    book_.Check(Connect(), 0, &random_);
  }
  CheckAll();
}

}  // namespace
}  // namespace plumbline::server
