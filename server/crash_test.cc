// plumbline-server killed while clients and workers are at it, by SIGKILL and at every named point,
// again and again: whatever it acknowledged is there afterwards, once.
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/clock.h"
#include "common/crash_point.h"
#include "common/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/plumbline/v1/admin_service.grpc.pb.h"
#include "rocksdb/db.h"
#include "server/store/keys.h"
#include "server/store/store_check.h"
#include "server/store/testing/step_store_harness.h"
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

  // The coordinator comes to its end at `place`, at the latest by what is asked of it.
  void EndAt(const std::string& place,
             const std::function<void(const std::shared_ptr<grpc::Channel>&)>& ask) {
    ServerProcess server(OptionsOf(place));
    if (server.serves()) ask(server.Connect());
    AwaitEndAtPlace(&server, place);
  }

  static void AwaitEndAtPlace(ServerProcess* server, const std::string& place) {
    const absl::Time deadline = SystemClock()->Now() + absl::Minutes(1);
    while (!server->HasEnded() && SystemClock()->Now() < deadline) {
      absl::SleepFor(absl::Milliseconds(1));
    }
    EXPECT_EQ(server->exit_status(), kCrashPointExitStatus) << place;
  }

  std::vector<v1::Run> Runs() {
    ServerProcess server(OptionsOf(""));
    grpc::ClientContext context;
    v1::ListRunsRequest request;
    request.set_page_size(1000);
    v1::ListRunsResponse response;
    EXPECT_TRUE(
        v1::StoreService::NewStub(server.Connect())->ListRuns(&context, request, &response).ok());
    return {response.runs().begin(), response.runs().end()};
  }

  // Has a run deleted that no live job needs.
  void DeleteARun(const std::string& place) {
    const std::vector<v1::Run> runs = Runs();
    EndAt(place, [&](const std::shared_ptr<grpc::Channel>& channel) {
      const auto stub = v1::StoreService::NewStub(channel);
      for (const v1::Run& run : runs) {
        grpc::ClientContext context;
        v1::DeleteRunRequest request;
        request.set_name(run.name());
        google::protobuf::Empty response;
        book_.DeletesRun(run.seed());
        const grpc::Status status = stub->DeleteRun(&context, request, &response);
        if (status.error_code() == grpc::StatusCode::UNAVAILABLE) return;
        EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION)
            << status.error_message();
      }
    });
  }

  // Makes the store one of the version before: its number, and without what the newest brought.
  void MakeOlder() {
    const std::string path = folder_ + "/data/store";
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    for (int i = 0; i < kFamilyCount; ++i) {
      families.emplace_back(std::string(FamilyName(static_cast<Family>(i))), rocksdb::Options());
    }
    std::vector<rocksdb::ColumnFamilyHandle*> handles;
    rocksdb::DB* opened = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), path, families, &handles, &opened).ok());
    const std::unique_ptr<rocksdb::DB> db(opened);
    std::string bytes;
    ASSERT_TRUE(db->Get({}, handles[0], keys::Format(), &bytes).ok());
    store::StoreFormat format;
    ASSERT_TRUE(format.ParseFromString(bytes));
    format.set_version(2);
    ASSERT_TRUE(db->Put({}, handles[0], keys::Format(), format.SerializeAsString()).ok());
    const std::string finished = keys::FinishedJobs();
    ASSERT_TRUE(db->DeleteRange({}, handles[static_cast<int>(Family::kJobs)], finished,
                                keys::PrefixEnd(finished))
                    .ok());
    for (rocksdb::ColumnFamilyHandle* const handle : handles) {
      ASSERT_TRUE(db->DestroyColumnFamilyHandle(handle).ok());
    }
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
    EXPECT_THAT(check->problems, testing::ElementsAreArray(expected_problems_));
    EXPECT_TRUE(book_.problems().empty()) << absl::StrJoin(book_.problems(), "\n");
    std::printf("%s\n", book_.Summary().c_str());
  }

  const unsigned seed_;
  std::mt19937 random_;
  std::string folder_;
  AcknowledgedBook book_;
  std::vector<std::string> expected_problems_;  // Of --check.
  int round_ = 0;
};

TEST_F(CrashTest, KilledAnywhereItLosesNothingThatWasAcknowledged) {
  for (int i = 0; i < 8; ++i) Live("", 20 + static_cast<int64_t>(random_() % 150));
  CheckAll();
}

TEST_F(CrashTest, EndedAtEveryNamedPointItLosesNothingThatWasAcknowledged) {
  for (const std::string& place : CrashPlacesOf("store")) {
    if (place == CrashPlaceName(CrashPlace::kStoreBlobQuarantined)) continue;  // Below.
    if (place == CrashPlaceName(CrashPlace::kStoreBeforeFormat)) {
      MakeOlder();
      for (int i = 0; i < 2; ++i) EndAt(place, [](const auto&) {});
    } else if (place == CrashPlaceName(CrashPlace::kStoreRunDeleted)) {
      DeleteARun(place);
    } else {
      for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(Live(absl::StrCat(place, ":", 1 + random_() % 25), 1 << 20)) << place;
      }
    }
  }
  CheckAll();
}

TEST_F(CrashTest, EndedWhereABlobIsPutAsideItStaysThere) {
  while (book_.operations() < 200) Live("", 60);
  const std::string place(CrashPlaceName(CrashPlace::kStoreBlobQuarantined));
  book_.BytesMayRot();
  for (const v1::Run& run : Runs()) {
    const std::string blob = MakeTestStep(run.seed(), 0, "k", kLoadStepBytes).outputs[0];
    if (run.saved_steps() == 0 || !FlipBitInBlobFile(folder_ + "/data/store", blob)) continue;
    ServerProcess server(OptionsOf(place));
    ASSERT_TRUE(server.serves());
    grpc::ClientContext context;
    v1::VerifyRunRequest request;
    request.set_name(run.name());
    v1::VerifyRunResponse response;
    const grpc::Status status =
        v1::StoreService::NewStub(server.Connect())->VerifyRun(&context, request, &response);
    // Else it was a copy that a kill had left behind and nobody reads.
    if (status.ok()) continue;
    AwaitEndAtPlace(&server, place);
    expected_problems_ = {
        absl::StrCat("blob ", Sha256Hex(blob), " was found corrupt and is quarantined")};
    break;
  }
  EXPECT_FALSE(expected_problems_.empty()) << "no step was saved";
  CheckAll();
}

}  // namespace
}  // namespace plumbline::server
