// The arithmetic of large draws is float32 throughout, one rounding an operation. Where std::fma
// stands, PyTorch's compiler contracted a product and a sum; of two products in one sum it fused
// the one that is computed first.
#include "worker/h3/noise_cpu.h"

#include <cmath>
#include <cstddef>
#include <cstring>

#include "kernels/numerics/elementary.h"

namespace plumbline::h3 {
namespace {

constexpr size_t kBlock = 16;
constexpr size_t kHalfBlock = kBlock / 2;

uint32_t Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof(bits));
  return bits;
}

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Cephes' logf for a positive, normal x.
float CephesLog(float x) {
  const uint32_t bits = Bits(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 0x7F) + 1.0f;
  const float mantissa = FromBits((bits & 0x007FFFFFu) | 0x3F000000u);  // [1/2, 1)
  const bool below_root_half = mantissa < 0.707106781186547524f;
  float r = mantissa - 1.0f;
  e -= below_root_half ? 1.0f : 0.0f;
  r += below_root_half ? mantissa : 0.0f;

  const float z = r * r;
  float y = 7.0376836292E-2f;
  y = std::fma(y, r, -1.1514610310E-1f);
  y = std::fma(y, r, 1.1676998740E-1f);
  y = std::fma(y, r, -1.2420140846E-1f);
  y = std::fma(y, r, 1.4249322787E-1f);
  y = std::fma(y, r, -1.6668057665E-1f);
  y = std::fma(y, r, 2.0000714765E-1f);
  y = std::fma(y, r, -2.4999993993E-1f);
  y = std::fma(y, r, 3.3333331174E-1f);
  y *= r;
  y = std::fma(y, z, e * -2.12194440e-4f);
  y = std::fma(-z, 0.5f, y);
  return std::fma(e, 0.693359375f, r + y);
}

struct SinCos {
  float sin;
  float cos;
};

// Cephes' sinf and cosf for 0 <= x < 8192.
SinCos CephesSinCos(float x) {
  // Eighths of a turn, rounded up to quarters.
  const int32_t octant = (static_cast<int32_t>(x * 1.27323954473516f) + 1) & ~1;
  const float k = static_cast<float>(octant);
  x = std::fma(k, -0.78515625f, x);
  x = std::fma(k, -2.4187564849853515625e-4f, x);
  x = std::fma(k, -3.77489497744594108e-8f, x);

  const float z = x * x;
  float even = 2.443315711809948E-005f;
  even = std::fma(even, z, -1.388731625493765E-003f);
  even = std::fma(even, z, 4.166664568298827E-002f);
  even *= z;
  even = std::fma(even, z, -(z * 0.5f));
  even += 1.0f;

  float odd = -1.9515295891E-4f;
  odd = std::fma(odd, z, 8.3321608736E-3f);
  odd = std::fma(odd, z, -1.6666654611E-1f);
  odd *= z;
  odd = std::fma(odd, x, x);

  const bool swapped = (octant & 2) != 0;
  const bool sin_negative = (octant & 4) != 0;
  const bool cos_negative = ((octant - 2) & 4) == 0;
  const float sin = swapped ? even : odd;
  const float cos = swapped ? odd : even;
  return {sin_negative ? -sin : sin, cos_negative ? -cos : cos};
}

// Box and Muller over 16 uniform values, in place.
void NormalFromUniform(float* values) {
  constexpr float kTwoPi = 6.283185307179586f;
  for (size_t j = 0; j < kHalfBlock; ++j) {
    const float u1 = 1.0f - values[j];  // (0, 1]
    const float u2 = values[j + kHalfBlock];
    const float radius = std::sqrt(-2.0f * CephesLog(u1));
    const SinCos angle = CephesSinCos(kTwoPi * u2);
    // Adding the mean makes a negative zero positive.
    values[j] = radius * angle.cos + 0.0f;
    values[j + kHalfBlock] = radius * angle.sin + 0.0f;
  }
}

}  // namespace

float TorchCpuGenerator::UniformFloat() {
  return static_cast<float>(engine_() & 0xFFFFFFu) * 0x1p-24f;
}

double TorchCpuGenerator::UniformDouble() {
  const uint64_t high = engine_();
  const uint64_t low = engine_();
  constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
  return static_cast<double>((high << 32 | low) & kMask) * 0x1p-53;
}

void TorchCpuGenerator::DrawLarge(absl::Span<float> to) {
  for (float& value : to) value = UniformFloat();
  const size_t whole = to.size() - to.size() % kBlock;
  for (size_t i = 0; i < whole; i += kBlock) NormalFromUniform(&to[i]);
  if (whole != to.size()) {
    float* const last = &to[to.size() - kBlock];
    for (size_t j = 0; j < kBlock; ++j) last[j] = UniformFloat();
    NormalFromUniform(last);
  }
}

float TorchCpuGenerator::DrawOne() {
  if (kept_.has_value()) {
    const double value = *kept_;
    kept_.reset();
    return static_cast<float>(value);
  }
  constexpr double kPi = 3.14159265358979323846;
  const double angle = 2.0 * kPi * UniformDouble();
  // log1p(-u) is log(1 - u): the difference of such a u from 1 is exact.
  const double radius = std::sqrt(-2.0 * Log(1.0 - UniformDouble()));
  kept_ = radius * Sin(angle);
  return static_cast<float>(radius * Cos(angle));
}

absl::Status TorchCpuGenerator::Draw(absl::Span<float> to) {
  if (to.size() >= kBlock) {
    DrawLarge(to);
  } else {
    for (float& value : to) value = DrawOne();
  }
  return absl::OkStatus();
}

}  // namespace plumbline::h3
