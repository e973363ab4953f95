#include "kernels/numerics/float16.h"

#include <gtest/gtest.h>
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace plumbline {
namespace {

uint32_t BitsOf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

// Against the processor's own conversion, at every step of 997 through all float32.
TEST(Float16Test, RoundsAsTheProcessorDoes) {
  for (uint64_t i = 0; i < (uint64_t{1} << 32); i += 997) {
    const auto bits = static_cast<uint32_t>(i);
    float value;
    std::memcpy(&value, &bits, sizeof(value));
    const float expected = _cvtsh_ss(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
    const float rounded = RoundThroughF16(value);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(rounded)) << bits;
    } else {
      ASSERT_EQ(BitsOf(rounded), BitsOf(expected)) << value;
    }
  }
}

TEST(Float16Test, Ends) {
  EXPECT_EQ(RoundThroughF16(65519.0f), 65504.0f);
  EXPECT_EQ(RoundThroughF16(65520.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(RoundThroughF16(-1e30f), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(RoundThroughF16(0x1p-25f), 0.0f);        // A tie, to even.
  EXPECT_EQ(RoundThroughF16(0x1.8p-24f), 0x1p-23f);  // Likewise.
  EXPECT_EQ(RoundThroughF16(0x1.002p0f), 1.0f);      // Likewise, among normal numbers.
  EXPECT_EQ(BitsOf(RoundThroughF16(-0x1p-26f)), BitsOf(-0.0f));
}

}  // namespace
}  // namespace plumbline
