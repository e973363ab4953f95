#include "common/evidence/canonical_json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "common/json.h"

namespace plumbline {
namespace {

// Written by Python 3.11: json.dumps(value, sort_keys=True, separators=(",", ":")).
TEST(CanonicalJsonTest, IsWhatPythonWrites) {
  const auto value = ParseJson(
      R"({"b": [1, 1.0, -0.0, 1e-5, 0.0001, 1e15, 1e16, 123456789012345678, 5e-324],
          "a": {"z": 0.1, "y": 1.7976931348623157e308, "x": 0.30000000000000004},
          "ü\n\"\\": "é\u0001\u007f", "n": null, "t": true, "e": {}, "l": []})",
      "value");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(CanonicalJson(*value),
            R"({"a":{"x":0.30000000000000004,"y":1.7976931348623157e+308,"z":0.1},)"
            R"("b":[1,1.0,-0.0,1e-05,0.0001,1000000000000000.0,1e+16,123456789012345678,5e-324],)"
            R"("e":{},"l":[],"n":null,"t":true,"\u00fc\n\"\\":"\u00e9\u0001\u007f"})");
}

TEST(CanonicalJsonTest, ReadableTextIsTheSameValue) {
  const nlohmann::json value = {{"a", {{"b", {1.5, 2}}, {"c", {{"d", 1}}}}}, {"e", 1.0}};
  const std::string text = ReadableJson(value, 2);
  EXPECT_EQ(text,
            "{\n  \"a\": {\n    \"b\": [1.5, 2],\n    \"c\": {\"d\": 1}\n  },\n  \"e\": 1.0\n}\n");
  const auto again = ParseJson(text, "text");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(CanonicalJson(*again), CanonicalJson(value));
}

TEST(CanonicalJsonTest, DoublesReadBackTheSame) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 100000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (!std::isfinite(value)) continue;
    const std::string text = CanonicalDouble(value);
    const double again = std::strtod(text.c_str(), nullptr);
    ASSERT_EQ(std::memcmp(&again, &value, sizeof(value)), 0) << text;
  }
}

}  // namespace
}  // namespace plumbline
