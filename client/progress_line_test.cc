#include "client/progress_line.h"

#include <cstdio>
#include <string>

#include "common/clock_fake.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

v1::JobEvent Event(const std::string& text) {
  v1::JobEvent event;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &event));
  return event;
}

v1::JobEvent Running(const std::string& task, const std::string& title) {
  return Event("task: '" + task + "' task_state { state: JOB_STATE_RUNNING title: '" + title +
               "' }");
}

TEST(JobProgressTest, ShowsTheRunningTask) {
  JobProgress progress;
  EXPECT_EQ(progress.Line(Style(), absl::Seconds(1)), "waiting for the service  1 s");
  progress.Take(Running("jobs/a/tasks/0", "layout tiny"));
  progress.Take(Event(R"pb(
    task: "jobs/a/tasks/0"
    progress { done: 12 total: 48 unit: "nodes" activity: "backward, candidate" }
  )pb"));
  EXPECT_EQ(progress.Line(Style(), absl::Seconds(7)),
            "layout tiny  ######------------------  12/48 nodes  backward, candidate  7 s");
}

TEST(JobProgressTest, CountsTasksAndSaysWhyOneWaits) {
  JobProgress progress;
  progress.Take(Event(R"pb(
    task: "jobs/a/tasks/0"
    task_state { state: JOB_STATE_SUCCEEDED title: "layout tiny" }
  )pb"));
  progress.Take(Event(R"pb(
    task: "jobs/a/tasks/1"
    task_state {
      state: JOB_STATE_QUEUED
      title: "layout small"
      waiting_reason { code: CODE_NO_WORKER message: "no worker is registered" }
    }
  )pb"));
  EXPECT_EQ(progress.Line(Style(), absl::Seconds(2)),
            "1/2 done  layout small  queued: no worker is registered  2 s");
}

TEST(JobProgressTest, ForgetsASupersededAttempt) {
  JobProgress progress;
  progress.Take(Running("jobs/a/tasks/0", "layout tiny"));
  progress.Take(Event(R"pb(task: "jobs/a/tasks/0"
                           node { failed_gates: "batch" })pb"));
  progress.Take(Event(R"pb(task: "jobs/a/tasks/0"
                           progress { done: 3 total: 4 })pb"));
  EXPECT_THAT(progress.Line(Style(), absl::Seconds(1)), HasSubstr("1 failing"));
  progress.Take(Event(R"pb(task: "jobs/a/tasks/0"
                           attempt_superseded { superseded_attempt: 1 })pb"));
  progress.Take(Event(R"pb(task: "jobs/a/tasks/0"
                           attempt_change { number: 2 })pb"));
  const std::string line = progress.Line(Style(), absl::Seconds(1));
  EXPECT_THAT(line, Not(HasSubstr("failing")));
  EXPECT_THAT(line, Not(HasSubstr("3/4")));
  EXPECT_THAT(line, HasSubstr("attempt 2"));
}

TEST(JobProgressTest, StaysWithinTheTerminal) {
  JobProgress progress;
  progress.Take(Running("jobs/a/tasks/0", std::string(300, 'x')));
  Style style;
  style.columns = 40;
  EXPECT_EQ(DisplayWidth(progress.Line(style, absl::Seconds(1))), 39);
}

TEST(ProgressLineTest, WritesNothingToAPipeAndErasesOnATerminal) {
  FakeClock clock(absl::UnixEpoch());
  for (const bool is_terminal : {false, true}) {
    std::FILE* file = std::tmpfile();
    ASSERT_NE(file, nullptr);
    {
      ProgressLine line(file, is_terminal, Style(), &clock);
      line.Take(Running("jobs/a/tasks/0", "layout tiny"));
    }
    std::rewind(file);
    char buffer[200] = {};
    const size_t size = std::fread(buffer, 1, sizeof(buffer), file);
    std::fclose(file);
    const std::string written(buffer, size);
    if (is_terminal) {
      EXPECT_EQ(written, "\r\033[Klayout tiny  0 s\r\033[K");
    } else {
      EXPECT_THAT(written, IsEmpty());
    }
  }
}

}  // namespace
}  // namespace plumbline::client
