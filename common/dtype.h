#ifndef PLUMBLINE_COMMON_DTYPE_H_
#define PLUMBLINE_COMMON_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plumbline {

// Element types that Plumbline reads and writes, with the layout safetensors gives them
// (little-endian, row-major).
enum class DType : uint8_t { kBF16, kF32, kF16, kF64, kI64, kI32, kU8 };

// Bytes of one element.
constexpr size_t DTypeSize(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

// The name that safetensors uses: "BF16", "F32", "F16", "F64", "I64", "I32" or "U8".
absl::string_view DTypeName(DType dtype);

// The inverse of DTypeName. INVALID_ARGUMENT names `name` and lists what is accepted.
absl::StatusOr<DType> ParseDType(absl::string_view name);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_DTYPE_H_
