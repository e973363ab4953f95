#include "common/dtype.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace plumbline {
namespace {

constexpr DType kAll[] = {DType::kBF16, DType::kF32, DType::kF16, DType::kF64,
                          DType::kI64,  DType::kI32, DType::kU8};

}  // namespace

absl::string_view DTypeName(DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return "BF16";
    case DType::kF32:
      return "F32";
    case DType::kF16:
      return "F16";
    case DType::kF64:
      return "F64";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kU8:
      return "U8";
  }
  return "invalid";
}

absl::StatusOr<DType> ParseDType(absl::string_view name) {
  for (DType dtype : kAll) {
    if (DTypeName(dtype) == name) return dtype;
  }
  constexpr size_t kShownCharacters = 16;  // The name may come from a hostile file.
  return absl::InvalidArgumentError(absl::StrCat("dtype \"", name.substr(0, kShownCharacters),
                                                 "\" is not supported; accepted: BF16, F32, F16, "
                                                 "F64, I64, I32, U8"));
}

}  // namespace plumbline
