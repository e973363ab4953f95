#include "common/proto_json.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline {
namespace {

using google::protobuf::util::JsonPrintOptions;

constexpr int kLabels = 40;

TEST(ProtoJsonTest, EqualMessagesHaveEqualBytesHoweverTheyWereMade) {
  v1::Attempt forth;
  v1::Attempt back;
  for (int i = 0; i < kLabels; ++i) {
    (*forth.mutable_labels())[absl::StrCat("label", i)] = absl::StrCat(i);
    const int j = kLabels - 1 - i;
    (*back.mutable_labels())[absl::StrCat("label", j)] = absl::StrCat(j);
  }
  const std::string text = ProtoJson(forth, {}).value();
  EXPECT_EQ(ProtoJson(back, {}).value(), text);
  const v1::Attempt copy = back;
  EXPECT_EQ(ProtoJson(copy, {}).value(), text);
  size_t place = 0;
  std::vector<std::string> keys;
  for (int i = 0; i < kLabels; ++i) keys.push_back(absl::StrCat("\"label", i, "\""));
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    const size_t next = text.find(key, place);
    ASSERT_NE(next, std::string::npos) << key;
    place = next;
  }
}

TEST(ProtoJsonTest, SaysWhatProtocolBuffersOwnWriterSays) {
  v1::Job job;
  job.set_name("jobs/\"1\"\n");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_create_time()->set_seconds(1'700'000'000);
  job.mutable_error()->set_message("it broke");
  (*job.mutable_spec()->mutable_labels())["team"] = "red";
  for (const bool full : {false, true}) {
    JsonPrintOptions options;
    options.add_whitespace = full;
    options.preserve_proto_field_names = full;
    options.always_print_primitive_fields = full;
    std::string expected;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(job, &expected, options).ok());
    EXPECT_EQ(ProtoJson(job, options).value(), expected);
  }
}

TEST(ProtoJsonTest, AMessageWithoutJsonIsAnError) {
  v1::Job job;
  google::protobuf::Any& detail = *job.mutable_error()->add_details();
  detail.set_type_url("type.googleapis.com/of.Nobody");
  detail.set_value("\x08\x01");
  EXPECT_TRUE(absl::IsInvalidArgument(ProtoJson(job, {}).status()));
}

}  // namespace
}  // namespace plumbline
