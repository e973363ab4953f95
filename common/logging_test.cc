#include "common/logging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"

namespace plumbline {
namespace {

using nlohmann::json;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using ::testing::SizeIs;

constexpr char kTimeRegex[] = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}Z";

class LoggingTest : public ::testing::Test {
 protected:
  ~LoggingTest() override {
    ConfigureLogging({});
    std::fclose(file_);
  }

  void Configure(LogFormat format, LogLevel level = LogLevel::kInfo) {
    LogOptions options;
    options.format = format;
    options.level = level;
    options.file = file_;
    ConfigureLogging(options);
  }

  std::vector<std::string> Lines() {
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      text.push_back(static_cast<char>(c));
    }
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }

  std::FILE* const file_ = std::tmpfile();
};

TEST_F(LoggingTest, TextHasTimeLevelMessageAndFields) {
  Configure(LogFormat::kText);
  Log(LogLevel::kInfo, "task finished",
      {{"task", "jobs/x/tasks/0"}, {"attempt", 2}, {"seconds", 1.5}, {"resumed", true}});
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines[0], MatchesRegex(absl::StrCat(kTimeRegex,
                                                  " info task finished task=jobs/x/tasks/0 "
                                                  "attempt=2 seconds=1.5 resumed=true")));
}

TEST_F(LoggingTest, TextValuesStayInTheirPlace) {
  Configure(LogFormat::kText);
  Log(LogLevel::kError, "two\nlines",
      {{"a", "x y"}, {"b", "line\nbreak"}, {"c", ""}, {"d", "q\"=\\"}, {"e", "\x1b[31m\xff"}});
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(1));
  EXPECT_EQ(lines[0].substr(25),
            R"(error two\nlines a="x y" b="line\nbreak" c="" d="q\"=\\" e="\x1b[31m\xff")");
}

TEST_F(LoggingTest, JsonLinesParseBackToWhatWasLogged) {
  Configure(LogFormat::kJson);
  const std::string odd("quote\" back\\ \n\x01 \xc3\xa9 {}%v", 24);
  Log(LogLevel::kWarning, odd,
      {{"job", odd},
       {"step", int64_t{-3}},
       {"bytes", std::numeric_limits<uint64_t>::max()},
       {"ratio", 0.25},
       {"nan", std::numeric_limits<double>::quiet_NaN()},
       {"ok", false}});
  const std::vector<std::string> lines = Lines();
  ASSERT_THAT(lines, SizeIs(1));
  const json line = json::parse(lines[0]);
  EXPECT_THAT(line["time"].get<std::string>(), MatchesRegex(kTimeRegex));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["message"], odd);
  EXPECT_EQ(line["job"], odd);
  EXPECT_EQ(line["step"], -3);
  EXPECT_EQ(line["bytes"], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(line["ratio"], 0.25);
  EXPECT_EQ(line["nan"], "nan");
  EXPECT_EQ(line["ok"], false);
}

TEST_F(LoggingTest, InvalidUtf8IsReplaced) {
  Configure(LogFormat::kJson);
  Log(LogLevel::kInfo, "m", {{"job", "\xff"}});
  EXPECT_EQ(json::parse(Lines().at(0))["job"], "\xef\xbf\xbd");
}

TEST_F(LoggingTest, LessSevereLinesAreDropped) {
  Configure(LogFormat::kText, LogLevel::kWarning);
  Log(LogLevel::kDebug, "a");
  Log(LogLevel::kInfo, "b");
  EXPECT_THAT(Lines(), IsEmpty());
  Log(LogLevel::kWarning, "c");
  Log(LogLevel::kError, "d");
  EXPECT_THAT(Lines(), SizeIs(2));
}

TEST_F(LoggingTest, LinesOfManyThreadsStayWhole) {
  Configure(LogFormat::kJson);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([thread] {
      for (int i = 0; i < 200; ++i) Log(LogLevel::kInfo, "m", {{"thread", thread}, {"i", i}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = Lines();
  EXPECT_THAT(lines, SizeIs(800));
  for (const std::string& line : lines) EXPECT_TRUE(json::accept(line)) << line;
}

TEST_F(LoggingTest, FormatsParse) {
  EXPECT_EQ(*ParseLogFormat("json"), LogFormat::kJson);
  EXPECT_EQ(*ParseLogFormat("text"), LogFormat::kText);
  EXPECT_EQ(ParseLogFormat("xml").status().message(),
            "log-format: \"xml\" is unknown; accepted: text, json");
}

}  // namespace
}  // namespace plumbline
