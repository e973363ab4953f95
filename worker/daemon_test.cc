#include "worker/daemon.h"

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/random_id.h"
#include "common/status.h"
#include "worker/in_use.h"

namespace plumbline::worker {
namespace {

std::string FieldOf(const absl::Status& status) {
  const auto violations = GetFieldViolations(status);
  return violations.size() == 1 ? violations[0].field : status.ToString();
}

class DaemonTest : public testing::Test {
 protected:
  DaemonTest() {
    options_.server = absl::StrCat("unix:", folder_, "/nobody.sock");
    options_.state_directory = folder_ + "/state";
    options_.device = {"cpu", 1, 1 << 20};
    options_.metrics_address = "127.0.0.1:0";
    options_.grpc_address = "127.0.0.1:0";
  }

  const std::string folder_ =
      testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  WorkerOptions options_;
};

TEST_F(DaemonTest, WrongOptionsNameTheirFlag) {
  WorkerOptions options = options_;
  options.server.clear();
  EXPECT_EQ(FieldOf(Worker::Start(options).status()), "server");
  options = options_;
  options.state_directory.clear();
  EXPECT_EQ(FieldOf(Worker::Start(options).status()), "state-dir");
  options = options_;
  options.checkpoint_roots = {"/no/such/folder"};
  EXPECT_EQ(FieldOf(Worker::Start(options).status()), "checkpoint-root");
  options = options_;
  options.device.device = "cuda:0";
  EXPECT_EQ(FieldOf(Worker::Start(options).status()), "device");
}

TEST_F(DaemonTest, LivesWithoutACoordinatorAndIsNotReady) {
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  httplib::Client client("127.0.0.1", (*worker)->metrics_port());
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  EXPECT_EQ(client.Get("/readyz")->status, 503);
  EXPECT_NE(client.Get("/metrics")->body.find("plumbline_worker_device_memory_limit_bytes 1048576"),
            std::string::npos);
  const auto channel = grpc::CreateChannel(absl::StrCat("127.0.0.1:", (*worker)->grpc_port()),
                                           grpc::InsecureChannelCredentials());
  EXPECT_TRUE(channel->WaitForConnected(gpr_time_from_seconds(60, GPR_TIMESPAN)));
}

TEST_F(DaemonTest, EndsWhenToldWithoutACoordinator) {
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  (*worker)->RequestDrain();
  EXPECT_TRUE((*worker)->Wait().ok());
}

TEST_F(DaemonTest, TwoWorkersNeedTwoStateFolders) {
  const auto worker = Worker::Start(options_);
  ASSERT_TRUE(worker.ok()) << worker.status();
  const absl::Status second = Worker::Start(options_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GetReason(second), kInUseReason);
}

TEST_F(DaemonTest, TwoWorkersNeedTwoDevices) {
  options_.claimed_devices = {absl::StrCat("GPU-", RandomIds()->NewId())};
  WorkerOptions other = options_;
  other.state_directory = folder_ + "/other-state";
  {
    const auto worker = Worker::Start(options_);
    ASSERT_TRUE(worker.ok()) << worker.status();
    const absl::Status second = Worker::Start(other).status();
    EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_EQ(GetReason(second), kInUseReason);
    EXPECT_NE(second.message().find(options_.claimed_devices[0]), std::string::npos);
    WorkerOptions sharing = other;
    sharing.shares_device = true;
    EXPECT_TRUE(Worker::Start(sharing).ok());
  }
  EXPECT_TRUE(Worker::Start(other).ok());
}

}  // namespace
}  // namespace plumbline::worker
