#include "common/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>
#include <prometheus/registry.h>

namespace plumbline {
namespace {

using ::testing::HasSubstr;

TEST(MetricsTest, SerializesWhatWasRegistered) {
  Metrics metrics;
  EXPECT_EQ(metrics.Serialize(), "");
  auto& family = prometheus::BuildCounter()
                     .Name("plumbline_steps_total")
                     .Help("Steps computed.")
                     .Register(metrics.registry());
  family.Add({{"kind", "replayed"}}).Increment(3);
  const std::string text = metrics.Serialize();
  EXPECT_THAT(text, HasSubstr("# HELP plumbline_steps_total Steps computed.\n"));
  EXPECT_THAT(text, HasSubstr("# TYPE plumbline_steps_total counter\n"));
  EXPECT_THAT(text, HasSubstr("plumbline_steps_total{kind=\"replayed\"} 3"));
}

}  // namespace
}  // namespace plumbline
