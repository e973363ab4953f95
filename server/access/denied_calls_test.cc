#include "server/access/denied_calls.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock_fake.h"
#include "server/proto_util.h"

namespace plumbline::server {
namespace {

class DeniedCallsTest : public testing::Test {
 protected:
  void Try(const std::string& principal, const std::string& method) {
    Caller caller;
    caller.principal = principal;
    caller.role = "viewer";
    caller.method = method;
    denied_.Add(caller, absl::PermissionDeniedError(absl::StrCat(method, " needs role admin")));
  }

  FakeClock clock_;
  std::vector<v1::AuditEvent> events_;
  DeniedCalls denied_{&clock_, [this](v1::AuditEvent event) { events_.push_back(event); }};
};

TEST_F(DeniedCallsTest, TheFirstIsRecordedAtOnceAndThoseOfAnHourTogether) {
  const auto begin = ToTimestamp(clock_.Now());
  Try("eve", "A/Delete");
  ASSERT_EQ(events_.size(), 1u);
  EXPECT_EQ(events_[0].principal(), "eve");
  EXPECT_EQ(events_[0].role(), "viewer");
  EXPECT_EQ(events_[0].method(), "A/Delete");
  EXPECT_EQ(events_[0].code(), 7);
  EXPECT_EQ(events_[0].message(), "A/Delete needs role admin");
  EXPECT_EQ(events_[0].count(), 1);
  for (int i = 0; i < 100'000; ++i) Try("eve", "A/Delete");
  clock_.Advance(absl::Minutes(59));
  const auto last = ToTimestamp(clock_.Now());
  Try("eve", "A/Delete");
  denied_.Flush();
  EXPECT_EQ(events_.size(), 1u);
  clock_.Advance(absl::Minutes(1));
  denied_.Flush();
  ASSERT_EQ(events_.size(), 2u);
  EXPECT_EQ(events_[1].count(), 100'001);
  EXPECT_EQ(events_[1].first_time().seconds(), begin.seconds());
  EXPECT_EQ(events_[1].time().seconds(), last.seconds());
  // As long as they go on, one an hour.
  for (int i = 0; i < 3 * 3600; ++i) {
    Try("eve", "A/Delete");
    clock_.Advance(absl::Seconds(1));
    denied_.Flush();
  }
  EXPECT_EQ(events_.size(), 5u);
  // And after a quiet hour the next is a first one.
  clock_.Advance(absl::Hours(1));
  denied_.Flush();
  EXPECT_EQ(events_.size(), 5u);
  Try("eve", "A/Delete");
  ASSERT_EQ(events_.size(), 6u);
  EXPECT_EQ(events_[5].count(), 1);
}

TEST_F(DeniedCallsTest, OthersAndOtherMethodsAreCountedByThemselves) {
  for (int i = 0; i < 10; ++i) {
    Try("eve", "A/Delete");
    Try("eve", "A/Drain");
    Try("mallory", "A/Delete");
  }
  EXPECT_EQ(events_.size(), 3u);
  denied_.FlushAll();
  ASSERT_EQ(events_.size(), 6u);
  for (int i = 3; i < 6; ++i) EXPECT_EQ(events_[i].count(), 9);
  denied_.FlushAll();
  EXPECT_EQ(events_.size(), 6u);
}

}  // namespace
}  // namespace plumbline::server
