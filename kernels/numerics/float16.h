// Rounding to IEEE binary16, which PyTorch's autocast computes in on a GPU.
#ifndef PLUMBLINE_KERNELS_NUMERICS_FLOAT16_H_
#define PLUMBLINE_KERNELS_NUMERICS_FLOAT16_H_

#include <cstdint>
#include <cstring>

namespace plumbline {

// The float16 nearest to `value`, ties to even, as a float32: subnormals kept, 65520 and above
// infinity, NaN a NaN.
inline float RoundThroughF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const uint32_t sign = bits & 0x80000000u;
  uint32_t magnitude = bits ^ sign;
  if (magnitude > 0x7F800000u) return value;
  if (magnitude < 0x38800000u) {
    // Below 2^-14 float16 has steps of 2^-24, as float32 has from 0.5 to 1.
    float absolute;
    std::memcpy(&absolute, &magnitude, sizeof(absolute));
    absolute = (absolute + 0.75f) - 0.75f;
    std::memcpy(&magnitude, &absolute, sizeof(magnitude));
  } else {
    magnitude += 0xFFFu + ((magnitude >> 13) & 1u);
    magnitude &= ~0x1FFFu;
    if (magnitude >= 0x47800000u) magnitude = 0x7F800000u;
  }
  bits = sign | magnitude;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_NUMERICS_FLOAT16_H_
