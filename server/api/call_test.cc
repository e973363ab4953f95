#include "server/api/call.h"

#include "absl/synchronization/notification.h"
#include "common/clock.h"
#include "common/metrics.h"
#include "gtest/gtest.h"

namespace plumbline::server {
namespace {

TEST(CallTest, WorkWhoseCallerHasLeftIsNeverBegun) {
  Metrics metrics;
  ServerMetrics server_metrics(&metrics);
  Api api;
  api.clock = SystemClock();
  api.metrics = &server_metrics;
  grpc::ServerUnaryReactor* left = nullptr;
  grpc::ServerUnaryReactor* other = nullptr;
  bool left_ran = false;
  bool other_ran = false;
  {
    BlockingPool pool(1);
    api.pool = &pool;
    absl::Notification busy;
    pool.Post([&busy] { busy.WaitForNotification(); });
    // gRPC calls OnCancel when the caller cancels, its connection is gone or its deadline passes.
    left = RunOnPool(api, "Service/Left", [&left_ran] {
      left_ran = true;
      return absl::OkStatus();
    });
    left->OnCancel();
    other = RunOnPool(api, "Service/Other", [&other_ran] {
      other_ran = true;
      return absl::OkStatus();
    });
    busy.Notify();
  }
  // As gRPC does when a call is over: it deletes itself.
  left->OnDone();
  other->OnDone();
  EXPECT_FALSE(left_ran);
  EXPECT_TRUE(other_ran);
  const std::string text = metrics.Serialize();
  EXPECT_NE(text.find("plumbline_rpcs_total{code=\"CANCELLED\",method=\"Service/Left\"} 1"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace plumbline::server
