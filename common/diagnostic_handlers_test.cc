#include "common/diagnostic_handlers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include "absl/synchronization/mutex.h"
#include "common/http_server.h"
#include "common/metrics.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;

TEST(DiagnosticHandlersTest, MetricsHealthAndReadiness) {
  Metrics metrics;
  prometheus::BuildGauge()
      .Name("plumbline_queue_depth")
      .Register(metrics.registry())
      .Add({})
      .Set(4);
  absl::Mutex mutex;
  absl::Status ready = absl::UnavailableError("the store is opening");
  HttpServer server;
  AddDiagnosticHandlers(
      &metrics,
      [&] {
        absl::MutexLock lock(&mutex);
        return ready;
      },
      &server);
  ASSERT_TRUE(server.Start("localhost:0").ok());
  httplib::Client client("localhost", server.port());
  const auto text = client.Get("/metrics");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(text->body, HasSubstr("plumbline_queue_depth 4\n"));
  EXPECT_EQ(client.Get("/healthz")->status, 200);
  const auto opening = client.Get("/readyz");
  ASSERT_TRUE(opening);
  EXPECT_EQ(opening->status, 503);
  EXPECT_EQ(opening->body, "not ready: the store is opening\n");
  {
    absl::MutexLock lock(&mutex);
    ready = absl::OkStatus();
  }
  EXPECT_EQ(client.Get("/readyz")->status, 200);
}

}  // namespace
}  // namespace plumbline
