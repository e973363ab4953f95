// The project's own exp, log, sin and cos. They use + - * /, fma, comparisons and bit operations
// alone, each of which IEEE 754 fixes, so that a value does not depend on the C library or on the
// processor. Nothing in kernels/ calls a transcendental of libm.
#ifndef PLUMBLINE_KERNELS_NUMERICS_ELEMENTARY_H_
#define PLUMBLINE_KERNELS_NUMERICS_ELEMENTARY_H_

#include <cstdint>
#include <cstring>

namespace plumbline {

// Within 1 unit in the last place of the true value (tested), over the whole range: infinities,
// NaN, zeros and subnormal results as C's functions give them. The arguments of Sin and Cos may be
// of any size.
double Exp(double x);
double Log(double x);
double Sin(double x);
double Cos(double x);

// The double results rounded once: correctly rounded but for arguments whose true value lies
// within 2^-52 of itself of a tie, about one in 2^28.
inline float Exp(float x) { return static_cast<float>(Exp(static_cast<double>(x))); }
inline float Log(float x) { return static_cast<float>(Log(static_cast<double>(x))); }
inline float Sin(float x) { return static_cast<float>(Sin(static_cast<double>(x))); }
inline float Cos(float x) { return static_cast<float>(Cos(static_cast<double>(x))); }

// exp in float arithmetic alone and without a branch, so that a loop over it vectorises: for
// softmax and SiLU, where Exp would be the largest cost. Within 1 unit in the last place; NaN gives
// NaN, above 88.73 infinity, below -103.98 zero.
inline float ExpF32(float x) {
  // Outside these the result is infinity and zero already. A NaN passes both comparisons.
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // exp(x) = 2^k exp(r) with k = round(x / ln 2): adding 1.5 * 2^23 rounds, and leaves k in the low
  // bits.
  constexpr float kRounder = 12582912.0f;
  constexpr int32_t kRounderBits = 0x4B400000;
  const float shifted = __builtin_fmaf(x, 0x1.715476p+0f, kRounder);
  int32_t shifted_bits;
  std::memcpy(&shifted_bits, &shifted, sizeof(shifted_bits));
  const int32_t k = shifted_bits - kRounderBits;
  const float k_float = shifted - kRounder;
  // ln 2 in two parts, the first of 15 bits, so that the first difference is exact; what rounding r
  // leaves is added back below.
  const float high = __builtin_fmaf(-k_float, 0x1.62e4p-1f, x);
  const float low = -k_float * 0x1.7f7d1cp-20f;
  const float r = high + low;
  const float r_rest = (high - r) + low;
  // Taylor to r^7 / 7!; the next term is below 0.1 units for |r| <= ln 2 / 2.
  float q = 1.0f / 5040;
  q = __builtin_fmaf(q, r, 1.0f / 720);
  q = __builtin_fmaf(q, r, 1.0f / 120);
  q = __builtin_fmaf(q, r, 1.0f / 24);
  q = __builtin_fmaf(q, r, 1.0f / 6);
  q = __builtin_fmaf(q, r, 0.5f);
  const float y = 1.0f + (r + __builtin_fmaf(r * r, q, r_rest));
  // 2^k in two factors: one alone would overflow, or underflow before a subnormal result.
  // Unsigned, since for a NaN k is anything, and its shift would overflow.
  const int32_t half = k >> 1;
  const uint32_t first_bits = static_cast<uint32_t>(half + 127) << 23;
  const uint32_t second_bits = static_cast<uint32_t>(k - half + 127) << 23;
  float first, second;
  std::memcpy(&first, &first_bits, sizeof(first));
  std::memcpy(&second, &second_bits, sizeof(second));
  return y * first * second;
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_NUMERICS_ELEMENTARY_H_
