#include "kernels/numerics/bfloat16.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace plumbline {
namespace {

float FloatFromBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Rounding written from its definition, in exact arithmetic: of the two neighbours in magnitude the
// nearer, of two equally near the one with an even last bit.
bfloat16 RoundByDefinition(long double value) {
  if (std::isnan(value)) return {0x7FC0};
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const long double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return {static_cast<uint16_t>(sign | 0x7F80)};
  // The largest finite magnitude not above it, by bisection over the bit patterns.
  uint16_t low = 0;
  uint16_t high = 0x7F7F;
  while (low < high) {
    const uint16_t middle = static_cast<uint16_t>((low + high + 1) / 2);
    if (static_cast<long double>(WidenBf16(bfloat16{middle})) <= magnitude)
      low = middle;
    else
      high = static_cast<uint16_t>(middle - 1);
  }
  const long double below = WidenBf16(bfloat16{low});
  // Above the largest finite value the next one would be 2^128.
  const long double above =
      low == 0x7F7F ? std::ldexp(1.0L, 128)
                    : static_cast<long double>(WidenBf16(bfloat16{static_cast<uint16_t>(low + 1)}));
  const long double to_below = magnitude - below;
  const long double to_above = above - magnitude;
  const bool up = to_above < to_below || (to_above == to_below && (low & 1) != 0);
  return {static_cast<uint16_t>(sign | (up ? low + 1 : low))};
}

TEST(Bfloat16, EveryPatternSurvivesWideningAndRounding) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bfloat16 value{static_cast<uint16_t>(bits)};
    const float wide = WidenBf16(value);
    if (std::isnan(wide)) {
      EXPECT_EQ(RoundToBf16(wide).bits, 0x7FC0);
    } else {
      EXPECT_EQ(RoundToBf16(wide).bits, value.bits);
      EXPECT_EQ(RoundToBf16(static_cast<double>(wide)).bits, value.bits);
    }
  }
}

TEST(Bfloat16, RoundsFloatsByDefinition) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const uint32_t lower :
         {0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu, static_cast<uint32_t>(random() & 0xFFFF)}) {
      const float value = FloatFromBits(upper << 16 | lower);
      ASSERT_EQ(RoundToBf16(value).bits, RoundByDefinition(value).bits) << std::hexfloat << value;
      ASSERT_EQ(RoundToBf16(static_cast<double>(value)).bits, RoundByDefinition(value).bits)
          << std::hexfloat << value;
    }
  }
}

TEST(Bfloat16, RoundsDoublesOnce) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  // Doubles next to a tie, on either side, at every exponent: where rounding twice goes wrong.
  for (uint32_t upper = 0; upper < 0x7F80; ++upper) {
    const double tie = FloatFromBits(upper << 16 | 0x8000);
    for (const double value : {tie, std::nextafter(tie, 0.0), std::nextafter(tie, 1e300)}) {
      ASSERT_EQ(RoundToBf16(value).bits, RoundByDefinition(value).bits) << std::hexfloat << value;
      ASSERT_EQ(RoundToBf16(-value).bits, RoundByDefinition(-value).bits) << std::hexfloat << value;
    }
  }
  for (int i = 0; i < 200000; ++i) {
    const uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    if (i % 2 == 0) value = std::ldexp(std::fmod(value, 1.0), static_cast<int>(bits % 300) - 160);
    ASSERT_EQ(RoundToBf16(value).bits, RoundByDefinition(value).bits) << std::hexfloat << value;
  }
  EXPECT_EQ(RoundToBf16(std::numeric_limits<double>::max()).bits, 0x7F80);
  EXPECT_EQ(RoundToBf16(-std::numeric_limits<double>::max()).bits, 0xFF80);
  EXPECT_EQ(RoundToBf16(std::numeric_limits<double>::denorm_min()).bits, 0x0000);
}

TEST(Bfloat16, SpansAreTheScalarsInALoop) {
  std::mt19937 random(7);
  std::vector<float> values(1003);
  for (float& value : values) value = FloatFromBits(static_cast<uint32_t>(random()));
  std::vector<bfloat16> rounded(values.size());
  RoundToBf16(values, rounded.data());
  std::vector<float> widened(values.size());
  WidenBf16(rounded, widened.data());
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(rounded[i].bits, RoundToBf16(values[i]).bits);
    EXPECT_EQ(RoundToBf16(widened[i]).bits, rounded[i].bits);
  }
}

}  // namespace
}  // namespace plumbline
