// exp as kernels/numerics/elementary.h has it, operation for operation, and what is made of it: the
// same bits on a GPU and on a CPU.
#ifndef PLUMBLINE_KERNELS_CUDA_ELEMENTARY_CUH_
#define PLUMBLINE_KERNELS_CUDA_ELEMENTARY_CUH_

#include <cstdint>

namespace plumbline::cuda {

// ExpF32 of kernels/numerics/elementary.h.
__device__ inline float ExpF32(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  constexpr float kRounder = 12582912.0f;
  constexpr int32_t kRounderBits = 0x4B400000;
  const float shifted = __fmaf_rn(x, 0x1.715476p+0f, kRounder);
  const int32_t k = __float_as_int(shifted) - kRounderBits;
  const float k_float = shifted - kRounder;
  const float high = __fmaf_rn(-k_float, 0x1.62e4p-1f, x);
  const float low = -k_float * 0x1.7f7d1cp-20f;
  const float r = high + low;
  const float r_rest = (high - r) + low;
  float q = 1.0f / 5040;
  q = __fmaf_rn(q, r, 1.0f / 720);
  q = __fmaf_rn(q, r, 1.0f / 120);
  q = __fmaf_rn(q, r, 1.0f / 24);
  q = __fmaf_rn(q, r, 1.0f / 6);
  q = __fmaf_rn(q, r, 0.5f);
  const float y = 1.0f + (r + __fmaf_rn(r * r, q, r_rest));
  const int32_t half = k >> 1;
  const float first = __uint_as_float(static_cast<uint32_t>(half + 127) << 23);
  const float second = __uint_as_float(static_cast<uint32_t>(k - half + 127) << 23);
  return y * first * second;
}

// x / (1 + exp(-x)).
__device__ inline float Silu(float x) { return x / (1.0f + ExpF32(-x)); }

// Whether PlainSilu() has the bits of Silu(): nothing on its way overflows or is subnormal.
__device__ inline bool IsPlain(float x) {
  const float magnitude = fabsf(x);
  return magnitude < 80.0f && magnitude > 0x1p-60f;
}

// Silu() without what only values that are not IsPlain() need: the power of two is added to the
// exponent, and the quotient is rounded right by two corrections.
__device__ inline float PlainSilu(float x) {
  constexpr float kRounder = 12582912.0f;
  const float shifted = __fmaf_rn(-x, 0x1.715476p+0f, kRounder);
  const float k_float = shifted - kRounder;
  const float high = __fmaf_rn(-k_float, 0x1.62e4p-1f, -x);
  const float low = -k_float * 0x1.7f7d1cp-20f;
  const float r = high + low;
  const float r_rest = (high - r) + low;
  float q = 1.0f / 5040;
  q = __fmaf_rn(q, r, 1.0f / 720);
  q = __fmaf_rn(q, r, 1.0f / 120);
  q = __fmaf_rn(q, r, 1.0f / 24);
  q = __fmaf_rn(q, r, 1.0f / 6);
  q = __fmaf_rn(q, r, 0.5f);
  const float y = 1.0f + (r + __fmaf_rn(r * r, q, r_rest));
  // The low bits of `shifted` are k beside those of kRounder, which the shift drops.
  const float e = __int_as_float(__float_as_int(y) + (__float_as_int(shifted) << 23));
  const float divisor = 1.0f + e;
  float reciprocal;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"(divisor));
  reciprocal = __fmaf_rn(reciprocal, __fmaf_rn(-divisor, reciprocal, 1.0f), reciprocal);
  float quotient = x * reciprocal;
  quotient = __fmaf_rn(__fmaf_rn(-divisor, quotient, x), reciprocal, quotient);
  return __fmaf_rn(__fmaf_rn(-divisor, quotient, x), reciprocal, quotient);
}

// sigma(x) (1 + x (1 - sigma(x))), sigma(x) = 1 / (1 + exp(-x)).
__device__ inline float SiluDerivative(float x) {
  const float sigmoid = 1.0f / (1.0f + ExpF32(-x));
  return sigmoid * (1.0f + x * (1.0f - sigmoid));
}

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_ELEMENTARY_CUH_
