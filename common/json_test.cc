#include "common/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "common/status.h"

namespace plumbline {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(absl::string_view text, const JsonLimits& limits = {}) {
  const absl::StatusOr<json> parsed = ParseJson(text, "f.json", limits);
  if (parsed.ok()) return "parsed " + parsed->dump();
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

TEST(ParseJsonTest, BuildsWhatTheLibraryBuilds) {
  const std::string text =
      R"({"a": [1, -2, 3.5, true, null, "x\u00e9", {"b": {}, "c": []}], "d": {"a": [[1], [2]]},)"
      R"( "e": 18446744073709551615})";
  const absl::StatusOr<json> parsed = ParseJson(text, "f.json");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, json::parse(text));
  EXPECT_EQ(*ParseJson(" 7 ", "f.json"), json(7));
}

TEST(ParseJsonTest, SyntaxErrorsHaveLineAndColumn) {
  EXPECT_THAT(ErrorOf("{\n  \"a\": 1,\n  b\n}"), HasSubstr("f.json: not valid JSON"));
  EXPECT_THAT(ErrorOf("{\n  \"a\": 1,\n  b\n}"), HasSubstr("line 3, column 3"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("line 1, column 1"));
  EXPECT_THAT(ErrorOf("[1] x"), HasSubstr("line 1, column 5"));
  EXPECT_THAT(ErrorOf("[1,]"), HasSubstr("line 1, column 4"));
}

TEST(ParseJsonTest, RefusesWhatRFC8259Refuses) {
  for (const char* text :
       {"{", "[", "\"a", "nul", "NaN", "Infinity", "01", "+1", ".5", "1.", "'a'", "{a: 1}", "[1 2]",
        "// c\n1", "{\"a\" 1}", "\"\\x\"", "\"\\ud800\"", "\"a\nb\""}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("not valid JSON")) << text;
  }
}

TEST(ParseJsonTest, RefusesDuplicateKeysAtAnyDepth) {
  EXPECT_EQ(ErrorOf(R"({"a": 1, "a": 1})"), "f.json: key \"a\" appears twice");
  EXPECT_EQ(ErrorOf(R"([{"x": {"a": 1, "\u0061": 2}}])"), "f.json: key \"a\" appears twice");
}

TEST(ParseJsonTest, RefusesInvalidUtf8NulAndHugeNumbers) {
  EXPECT_THAT(ErrorOf("\"\xff\""), HasSubstr("not valid JSON"));
  EXPECT_THAT(ErrorOf("\"\xc0\xaf\""), HasSubstr("not valid JSON"));
  EXPECT_EQ(ErrorOf(absl::string_view("{}\0{}", 5)), "f.json: NUL byte at line 1, column 3");
  EXPECT_THAT(ErrorOf("[1e999]"), HasSubstr("number out of range"));
}

TEST(ParseJsonTest, HoldsItsLimits) {
  EXPECT_THAT(ErrorOf("[1, 2]", {.max_bytes = 5}), HasSubstr("accepted: at most 5 bytes"));
  EXPECT_THAT(ErrorOf("[1, 2]", {.max_bytes = 6, .max_values = 2}),
              HasSubstr("more than 2 values"));
  EXPECT_THAT(ErrorOf("[1, 2]", {.max_bytes = 6, .max_values = 3}), HasSubstr("parsed"));
  EXPECT_THAT(ErrorOf("[[[]]]", {.max_depth = 2}), HasSubstr("nested deeper than 2"));
  EXPECT_THAT(ErrorOf("[[]]", {.max_depth = 2}), HasSubstr("parsed"));
  EXPECT_THAT(ErrorOf(std::string(1 << 20, '[')), HasSubstr("nested deeper than 32"));
}

class GettersTest : public ::testing::Test {
 protected:
  const json object_ = json::parse(
      R"({"i": 7, "neg": -1, "big": 18446744073709551615, "f": 8.0, "s": "x", "b": true,
          "list": [1, 2, 3], "mixed": [1, "2"], "o": {}})");
};

TEST_F(GettersTest, ReturnValuesOfTheRightType) {
  EXPECT_EQ(*GetInt(object_, "c", "i", 7, 7), 7);
  EXPECT_EQ(*GetInt(object_, "c", "neg"), -1);
  EXPECT_EQ(*GetDouble(object_, "c", "f"), 8.0);
  EXPECT_EQ(*GetDouble(object_, "c", "i", 0, 10), 7.0);
  EXPECT_EQ(*GetString(object_, "c", "s"), "x");
  EXPECT_TRUE(*GetBool(object_, "c", "b"));
  EXPECT_THAT(*GetIntArray(object_, "c", "list", 1, 3, 1, 3), ElementsAre(1, 2, 3));
}

TEST_F(GettersTest, ErrorsNameSourceFieldAndAcceptedValues) {
  EXPECT_EQ(GetInt(object_, "c.json", "layers", 1, 64).status().message(),
            "c.json: layers: is missing; accepted: an integer from 1 to 64");
  EXPECT_EQ(GetInt(object_, "c.json", "i", 8, 64).status().message(),
            "c.json: i: is 7; accepted: an integer from 8 to 64");
  EXPECT_EQ(GetInt(object_, "c.json", "neg", 0).status().message(),
            "c.json: neg: is -1; accepted: an integer of at least 0");
  EXPECT_THAT(GetFieldViolations(GetInt(object_, "c.json", "i", 8, 64).status()),
              ElementsAre(FieldViolation{"c.json: i", "is 7; accepted: an integer from 8 to 64"}));
  EXPECT_EQ(GetBool(object_, "c.json", "i").status().message(),
            "c.json: i: is 7; accepted: true, false");
  EXPECT_EQ(GetString(object_, "c.json", "o").status().message(),
            "c.json: o: is an object; accepted: a string");
}

TEST_F(GettersTest, RefuseOtherTypesAndRanges) {
  for (const char* field : {"big", "f", "s", "b", "list", "o"}) {
    EXPECT_FALSE(GetInt(object_, "c", field).ok()) << field;
  }
  EXPECT_FALSE(GetDouble(object_, "c", "s").ok());
  EXPECT_FALSE(GetDouble(object_, "c", "f", 9, 10).ok());
  EXPECT_FALSE(GetInt(json::array(), "c", "i").ok());
  EXPECT_THAT(GetIntArray(object_, "c", "list", 4, 4, 1, 3).status().message(),
              HasSubstr("has 3 values; accepted: an array of 4 values"));
  EXPECT_THAT(GetIntArray(object_, "c", "list", 3, 3, 1, 2).status().message(),
              HasSubstr("c: list[2]: is 3; accepted: an integer from 1 to 2"));
  EXPECT_THAT(GetIntArray(object_, "c", "mixed", 2, 2, 1, 2).status().message(),
              HasSubstr("mixed[1]"));
}

}  // namespace
}  // namespace plumbline
