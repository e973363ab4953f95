#include "common/grpc_log.h"

#include <grpc/support/log.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock_fake.h"

namespace plumbline {
namespace {

class GrpcLogTest : public ::testing::Test {
 protected:
  GrpcLogTest() {
    LogOptions options;
    options.format = LogFormat::kJson;
    options.file = file_;
    ConfigureLogging(options);
  }
  ~GrpcLogTest() override {
    ConfigureLogging({});
    std::fclose(file_);
  }

  std::vector<nlohmann::json> Lines() {
    std::rewind(file_);
    std::string text;
    for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) {
      text.push_back(static_cast<char>(c));
    }
    std::vector<nlohmann::json> lines;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      lines.push_back(nlohmann::json::parse(std::string(line)));
    }
    return lines;
  }

  std::FILE* const file_ = std::tmpfile();
  FakeClock clock_;
  GrpcLog log_{&clock_};
};

TEST_F(GrpcLogTest, WhatGrpcSaysIsALineOfOurLog) {
  RouteGrpcLog();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_DEBUG);
  gpr_log("./src/core/tsi/ssl_transport_security.cc", 1501, GPR_LOG_SEVERITY_ERROR,
          "Handshake failed with \"%s\".", "alert\nunknown ca");
  gpr_log("./src/core/lib/surface/call.cc", 7, GPR_LOG_SEVERITY_ERROR, "assertion");
  gpr_log("./src/core/lib/surface/call.cc", 8, GPR_LOG_SEVERITY_DEBUG, "detail");
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);
  gpr_set_log_function(nullptr);
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["level"], "info");
  EXPECT_EQ(lines[0]["message"], "gRPC");
  EXPECT_EQ(lines[0]["text"], "Handshake failed with \"alert\nunknown ca\".");
  EXPECT_EQ(lines[0]["at"], "ssl_transport_security.cc:1501");
  EXPECT_EQ(lines[1]["level"], "warning");
}

TEST_F(GrpcLogTest, OnePlaceSaysFiveThingsAMinuteAndHowManyWereLeftOut) {
  for (int i = 0; i < 1000; ++i) {
    log_.Take("a/handshaker.cc", 1, LogLevel::kError, absl::StrCat("peer ", i));
  }
  log_.Take("a/handshaker.cc", 2, LogLevel::kError, "another place");
  ASSERT_EQ(Lines().size(), 6u);
  clock_.Advance(absl::Minutes(1));
  log_.Take("a/handshaker.cc", 1, LogLevel::kError, "later");
  log_.Take("a/handshaker.cc", 1, LogLevel::kError, "still later");
  const auto lines = Lines();
  ASSERT_EQ(lines.size(), 8u);
  EXPECT_EQ(lines[4]["text"], "peer 4");
  EXPECT_EQ(lines[6]["left_out_before"], 995);
  EXPECT_FALSE(lines[7].contains("left_out_before"));
}

}  // namespace
}  // namespace plumbline
