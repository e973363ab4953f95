#include "worker/drift/tensor_rows.h"

#include <cmath>
#include <cstring>

#include "kernels/numerics/bfloat16.h"

namespace plumbline::drift {
namespace {

struct float16 {
  uint16_t bits;
};

double Widen(bfloat16 value) { return WidenBf16(value); }

double Widen(float16 value) {
  const int exponent = (value.bits >> 10) & 31;
  const int mantissa = value.bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = mantissa == 0 ? HUGE_VAL : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, -24);
  } else {
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return (value.bits & 0x8000) != 0 ? -magnitude : magnitude;
}

template <typename T>
double Widen(T value) {
  return static_cast<double>(value);
}

template <typename T>
void WidenValues(const char* bytes, int64_t width, double* values) {
  for (int64_t i = 0; i < width; ++i) {
    T value;
    std::memcpy(&value, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    values[i] = Widen(value);
  }
}

}  // namespace

void WidenRow(DType dtype, const char* bytes, int64_t width, double* values) {
  switch (dtype) {
    case DType::kBF16:
      return WidenValues<bfloat16>(bytes, width, values);
    case DType::kF32:
      return WidenValues<float>(bytes, width, values);
    case DType::kF16:
      return WidenValues<float16>(bytes, width, values);
    case DType::kF64:
      return WidenValues<double>(bytes, width, values);
    case DType::kI64:
      return WidenValues<int64_t>(bytes, width, values);
    case DType::kI32:
      return WidenValues<int32_t>(bytes, width, values);
    case DType::kU8:
      return WidenValues<uint8_t>(bytes, width, values);
  }
}

double WidenElement(DType dtype, const char* row_bytes, int64_t column) {
  double value = 0;
  WidenRow(dtype, row_bytes + column * static_cast<int64_t>(DTypeSize(dtype)), 1, &value);
  return value;
}

}  // namespace plumbline::drift
