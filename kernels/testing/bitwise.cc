#include "kernels/testing/bitwise.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline {
namespace {

const char* Address(const Tensor& tensor, int64_t item, int64_t row, int64_t column) {
  const int64_t element = item * tensor.batch_stride + row * tensor.row_stride + column;
  return static_cast<const char*>(tensor.data) +
         element * static_cast<int64_t>(DTypeSize(tensor.dtype));
}

// The value as a person reads it, and its bits, most significant first.
std::string Describe(DType dtype, const char* value) {
  std::string bits;
  for (size_t byte = DTypeSize(dtype); byte > 0; --byte) {
    absl::StrAppendFormat(&bits, "%02x", static_cast<uint8_t>(value[byte - 1]));
  }
  double number = 0;
  if (dtype == DType::kBF16) {
    bfloat16 stored;
    std::memcpy(&stored, value, sizeof(stored));
    number = WidenBf16(stored);
  } else if (dtype == DType::kF32) {
    float stored;
    std::memcpy(&stored, value, sizeof(stored));
    number = stored;
  } else if (dtype == DType::kF64) {
    std::memcpy(&number, value, sizeof(number));
  } else {
    return absl::StrCat("0x", bits);
  }
  return absl::StrFormat("%.9g (0x%s)", number, bits);
}

std::string Shape(const Tensor& tensor) {
  return absl::StrCat(DTypeName(tensor.dtype), " (", tensor.batch, ", ", tensor.rows, ", ",
                      tensor.width, ")");
}

}  // namespace

testing::AssertionResult BitwiseEqual(const Tensor& expected, const Tensor& actual) {
  if (Shape(expected) != Shape(actual)) {
    return testing::AssertionFailure()
           << "expected " << Shape(expected) << ", got " << Shape(actual);
  }
  if (expected.IsNull() || actual.IsNull()) {
    return testing::AssertionFailure() << "a tensor without values";
  }
  const size_t size = DTypeSize(expected.dtype);
  int64_t differing = 0;
  std::string first;
  for (int64_t item = 0; item < expected.batch; ++item) {
    for (int64_t row = 0; row < expected.rows; ++row) {
      for (int64_t column = 0; column < expected.width; ++column) {
        const char* a = Address(expected, item, row, column);
        const char* b = Address(actual, item, row, column);
        if (std::memcmp(a, b, size) == 0) continue;
        if (differing++ == 0) {
          first = absl::StrCat("(", item, ", ", row, ", ", column, "): expected ",
                               Describe(expected.dtype, a), ", got ", Describe(expected.dtype, b));
        }
      }
    }
  }
  if (differing == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << differing << " of " << expected.NumElements() << " values of " << Shape(expected)
         << " differ, the first at (item, row, column) " << first;
}

}  // namespace plumbline
