#ifndef PLUMBLINE_KERNELS_NUMERICS_BFLOAT16_H_
#define PLUMBLINE_KERNELS_NUMERICS_BFLOAT16_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "absl/types/span.h"

namespace plumbline {

// The upper half of an IEEE binary32: 8 exponent bits, 7 stored mantissa bits. Only storage;
// arithmetic is done in float or double and rounded back with the functions below.
struct bfloat16 {
  uint16_t bits = 0;

  // Same bytes. So 0 != -0, and a NaN equals itself.
  friend bool operator==(bfloat16 a, bfloat16 b) { return a.bits == b.bits; }
  friend bool operator!=(bfloat16 a, bfloat16 b) { return a.bits != b.bits; }
};
static_assert(sizeof(bfloat16) == 2, "a storage type");

// Exact.
inline float WidenBf16(bfloat16 value) {
  const uint32_t bits = static_cast<uint32_t>(value.bits) << 16;
  float result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// Round to nearest, ties to even; subnormals are kept, overflow gives infinity, and every NaN
// becomes 0x7FC0 as in PyTorch on a CPU. Branch-free, so that loops over it vectorise.
inline bfloat16 RoundToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  return {static_cast<uint16_t>(is_nan ? 0x7FC0u : rounded)};
}

// As above, from a double in one rounding: rounding to float first could make a tie of what is
// none. The float between is therefore rounded to odd, which keeps which side of a tie it was on.
inline bfloat16 RoundToBf16(double value) {
  float nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value || value != value) return RoundToBf16(nearest);
  uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  const bool away_from_zero = value < 0 ? back < value : back > value;
  if (away_from_zero) --bits;
  bits |= 1u;
  std::memcpy(&nearest, &bits, sizeof(bits));
  return RoundToBf16(nearest);
}

// `value` rounded to bfloat16 and widened: a rounding point in float arithmetic.
inline float RoundThroughBf16(float value) { return WidenBf16(RoundToBf16(value)); }

// `to` must hold as many values as `from`; the two must not overlap.
inline void WidenBf16(absl::Span<const bfloat16> from, float* to) {
  const bfloat16* source = from.data();
  const size_t size = from.size();
  for (size_t i = 0; i < size; ++i) to[i] = WidenBf16(source[i]);
}
inline void RoundToBf16(absl::Span<const float> from, bfloat16* to) {
  const float* source = from.data();
  const size_t size = from.size();
  for (size_t i = 0; i < size; ++i) to[i] = RoundToBf16(source[i]);
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_NUMERICS_BFLOAT16_H_
