#include "kernels/numerics/elementary.h"

#include <cmath>
#include <limits>

namespace plumbline {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Adding and subtracting it rounds a double below 2^51 to an integer.
constexpr double kRounder = 0x1.8p+52;

// ln 2 = kLn2High + kLn2Low; the first has 41 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42fefa3p-1;
constexpr double kLn2Low = 0x1.3de6af278ece6p-42;

// pi / 2 = the sum of the three, each the nearest double to what the earlier ones leave.
constexpr double kHalfPi1 = 0x1.921fb54442d18p+0;
constexpr double kHalfPi2 = 0x1.1a62633145c07p-54;
constexpr double kHalfPi3 = -0x1.f1976b7ed8fbcp-110;

uint64_t Bits(double x) {
  uint64_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

double FromBits(uint64_t bits) {
  double x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// 2^k for -1022 <= k <= 1023.
double PowerOfTwo(int k) { return FromBits(static_cast<uint64_t>(k + 1023) << 52); }

// An angle as quarter turns (modulo 4) and a rest high + low in [-pi/4, pi/4], accurate to 2^-100
// of a quarter turn.
struct ReducedAngle {
  int quadrant;
  double high;
  double low;
};

// |x| < 2^30. Cody and Waite: x - k pi/2 with pi/2 in three parts.
ReducedAngle ReduceModerate(double x) {
  const double k = (x * 0x1.45f306dc9c883p-1 + kRounder) - kRounder;
  // Exact: both terms are multiples of 2^-53 (k = 0 aside) and the result is below 1.
  const double a = std::fma(-k, kHalfPi1, x);
  const double product = k * kHalfPi2;
  const double product_rest = std::fma(k, kHalfPi2, -product);
  // a - product without error (Knuth's two-sum): the terms may cancel.
  const double difference = a - product;
  const double subtracted = a - difference;
  const double rest = (a - (difference + subtracted)) + (subtracted - product);
  const double low = rest - product_rest - k * kHalfPi3;
  const double high = difference + low;
  return {static_cast<int>(static_cast<int64_t>(k) & 3), high, (difference - high) + low};
}

// 1280 bits of 2/pi after the binary point, and a word of zeros before it.
constexpr uint64_t kTwoOverPi[] = {
    0x0000000000000000, 0xA2F9836E4E441529, 0xFC2757D1F534DDC0, 0xDB6295993C439041,
    0xFE5163ABDEBBC561, 0xB7246E3A424DD2E0, 0x06492EEA09D1921C, 0xFE1DEB1CB129A73E,
    0xE88235F52EBB4484, 0xE99C7026B45F7E41, 0x3991D639835339F4, 0x9C845F8BBDF9283B,
    0x1FF897FFDE05980F, 0xEF2F118B5A0A6D1F, 0x6D367ECF27CB09B7, 0x4F463F669E5FEA2D,
    0x7527BAC7EBE5F17B, 0x3D0739F78A5292EA, 0x6BFB5FB11F8D5D08, 0x56033046FC7B6BAB,
    0xF0CFBC209AF4361D,
};

// The 64 bits that start `position` bits into kTwoOverPi.
uint64_t TwoOverPiBits(int position) {
  const int word = position / 64;
  const int shift = position % 64;
  if (shift == 0) return kTwoOverPi[word];
  return kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> (64 - shift);
}

// |x| >= 2^30, finite. Payne and Hanek: x = m 2^e, and of x 2/pi the bits that are multiples of 4
// quarter turns are never computed.
ReducedAngle ReduceLarge(double x) {
  using Wide = unsigned __int128;
  const uint64_t bits = Bits(x);
  const bool negative = (bits >> 63) != 0;
  const int e = static_cast<int>(bits >> 52 & 0x7FF) - 1075;
  const uint64_t m = (bits & 0xFFFFFFFFFFFFF) | uint64_t{1} << 52;
  // 192 bits g of 2/pi from bit e - 2 on; then x 2/pi = m g 2^-190 modulo 4.
  const int position = 64 + e - 2;
  const Wide low_product = Wide{m} * TwoOverPiBits(position + 128);
  const Wide middle_product = Wide{m} * TwoOverPiBits(position + 64) + (low_product >> 64);
  const uint64_t top = m * TwoOverPiBits(position) + static_cast<uint64_t>(middle_product >> 64);
  const uint64_t middle = static_cast<uint64_t>(middle_product);
  const uint64_t low = static_cast<uint64_t>(low_product);
  // Two bits of quadrant; below them the fraction, read as signed so that it lies in [-1/2, 1/2).
  int quadrant = static_cast<int>(top >> 62);
  uint64_t f1 = top << 2 | middle >> 62;
  uint64_t f2 = middle << 2 | low >> 62;
  const bool below_zero = (f1 >> 63) != 0;
  if (below_zero) {
    ++quadrant;
    f2 = ~f2 + 1;
    f1 = ~f1 + (f2 == 0 ? 1 : 0);
  }
  // No double is closer than 2^-62 to a multiple of pi/2, so f1 has at least a bit.
  const int zeros = __builtin_clzll(f1 | 1);
  if (zeros > 0) {
    f1 = f1 << zeros | f2 >> (64 - zeros);
    f2 <<= zeros;
  }
  const uint64_t leading = f1 >> 11;
  const uint64_t following = f1 << 53 | f2 >> 11;
  double fraction = static_cast<double>(leading) * PowerOfTwo(-53 - zeros);
  double fraction_rest = static_cast<double>(following) * PowerOfTwo(-117 - zeros);
  if (below_zero != negative) {
    fraction = -fraction;
    fraction_rest = -fraction_rest;
  }
  if (negative) quadrant = -quadrant;
  const double high = fraction * kHalfPi1;
  const double rest =
      std::fma(fraction, kHalfPi1, -high) + (fraction * kHalfPi2 + fraction_rest * kHalfPi1);
  const double sum = high + rest;
  return {quadrant & 3, sum, (high - sum) + rest};
}

ReducedAngle Reduce(double x) {
  return std::fabs(x) < 0x1p+30 ? ReduceModerate(x) : ReduceLarge(x);
}

// Taylor series to r^17 and r^18; the next terms are below 2^-60 for |r| <= pi/4.
double SinKernel(double high, double low) {
  const double z = high * high;
  double s = 1.0 / 355687428096000.0;
  s = std::fma(s, z, -1.0 / 1307674368000.0);
  s = std::fma(s, z, 1.0 / 6227020800.0);
  s = std::fma(s, z, -1.0 / 39916800.0);
  s = std::fma(s, z, 1.0 / 362880.0);
  s = std::fma(s, z, -1.0 / 5040.0);
  s = std::fma(s, z, 1.0 / 120.0);
  s = std::fma(s, z, -1.0 / 6.0);
  return high + std::fma(high * z, s, low * std::fma(-0.5, z, 1.0));
}

double CosKernel(double high, double low) {
  const double z = high * high;
  double c = -1.0 / 6402373705728000.0;
  c = std::fma(c, z, 1.0 / 20922789888000.0);
  c = std::fma(c, z, -1.0 / 87178291200.0);
  c = std::fma(c, z, 1.0 / 479001600.0);
  c = std::fma(c, z, -1.0 / 3628800.0);
  c = std::fma(c, z, 1.0 / 40320.0);
  c = std::fma(c, z, -1.0 / 720.0);
  c = std::fma(c, z, 1.0 / 24.0);
  const double half = 0.5 * z;
  const double leading = 1.0 - half;
  return leading + (((1.0 - leading) - half) + std::fma(z * z, c, -high * low));
}

}  // namespace

double Exp(double x) {
  if (!(x < 710.0)) return x != x ? x : kInfinity;
  if (x < -746.0) return 0.0;
  const double k = (x * 0x1.71547652b82fep+0 + kRounder) - kRounder;
  const double high = std::fma(-k, kLn2High, x);
  const double low = -k * kLn2Low;
  const double r = high + low;
  const double r_rest = (high - r) + low;
  // Taylor to r^13 / 13!; the next term is below 2^-57 for |r| <= ln 2 / 2.
  double q = 1.0 / 6227020800.0;
  q = std::fma(q, r, 1.0 / 479001600.0);
  q = std::fma(q, r, 1.0 / 39916800.0);
  q = std::fma(q, r, 1.0 / 3628800.0);
  q = std::fma(q, r, 1.0 / 362880.0);
  q = std::fma(q, r, 1.0 / 40320.0);
  q = std::fma(q, r, 1.0 / 5040.0);
  q = std::fma(q, r, 1.0 / 720.0);
  q = std::fma(q, r, 1.0 / 120.0);
  q = std::fma(q, r, 1.0 / 24.0);
  q = std::fma(q, r, 1.0 / 6.0);
  q = std::fma(q, r, 0.5);
  const double y = 1.0 + (r + std::fma(r * r, q, r_rest));
  // Two factors: one alone would overflow, or underflow before a subnormal result.
  const int exponent = static_cast<int>(k);
  const int half = exponent >> 1;
  return y * PowerOfTwo(half) * PowerOfTwo(exponent - half);
}

double Log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -kInfinity : kNan;
  if (x == kInfinity) return x;
  int k = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p+54;
    k = -54;
  }
  // x = 2^k m with m in [sqrt(1/2), sqrt(2)).
  constexpr uint64_t kSqrtHalfBits = 0x3FE6A09E667F3BCD;
  const uint64_t offset = Bits(x) - kSqrtHalfBits;
  k += static_cast<int>(static_cast<int64_t>(offset) >> 52);
  const double m = FromBits((offset & 0xFFFFFFFFFFFFF) + kSqrtHalfBits);
  // log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)), s = f / (2 + f): the series of atanh, arranged so
  // that the leading term is exact.
  const double f = m - 1.0;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double r = 2.0 / 25;
  r = std::fma(r, z, 2.0 / 23);
  r = std::fma(r, z, 2.0 / 21);
  r = std::fma(r, z, 2.0 / 19);
  r = std::fma(r, z, 2.0 / 17);
  r = std::fma(r, z, 2.0 / 15);
  r = std::fma(r, z, 2.0 / 13);
  r = std::fma(r, z, 2.0 / 11);
  r = std::fma(r, z, 2.0 / 9);
  r = std::fma(r, z, 2.0 / 7);
  r = std::fma(r, z, 2.0 / 5);
  r = std::fma(r, z, 2.0 / 3);
  r *= z;
  const double half_square = 0.5 * f * f;
  const double exponent = k;
  const double correction = std::fma(s, half_square + r, exponent * kLn2Low);
  return exponent * kLn2High - ((half_square - correction) - f);
}

double Sin(double x) {
  if (!(std::fabs(x) < kInfinity)) return kNan;
  if (std::fabs(x) < 0x1p-27) return x;  // keeps -0 and subnormals
  const ReducedAngle r = Reduce(x);
  const double value = (r.quadrant & 1) != 0 ? CosKernel(r.high, r.low) : SinKernel(r.high, r.low);
  return (r.quadrant & 2) != 0 ? -value : value;
}

double Cos(double x) {
  if (!(std::fabs(x) < kInfinity)) return kNan;
  const ReducedAngle r = Reduce(x);
  const double value = (r.quadrant & 1) != 0 ? SinKernel(r.high, r.low) : CosKernel(r.high, r.low);
  return ((r.quadrant + 1) & 2) != 0 ? -value : value;
}

}  // namespace plumbline
