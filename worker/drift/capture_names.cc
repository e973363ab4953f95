#include "worker/drift/capture_names.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/status.h"
#include "worker/drift/compare.h"

namespace plumbline::drift {
namespace {

// As many names as a person reads.
constexpr size_t kListedNames = 12;

std::string NameList(const std::vector<std::string>& names) {
  const size_t listed = std::min(names.size(), kListedNames);
  std::string text = absl::StrJoin(names.begin(), names.begin() + listed, ", ");
  if (listed < names.size()) absl::StrAppend(&text, " and ", names.size() - listed, " more");
  return text;
}

}  // namespace

bool IsComparableType(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

absl::Status CheckCaptureNames(absl::string_view field, const SafetensorsFile& file,
                               absl::string_view owner, const std::vector<CapturedTensor>& required,
                               const std::function<bool(absl::string_view)>& may_have) {
  std::vector<FieldViolation> violations;
  const auto add = [&](std::string description) {
    violations.push_back({std::string(field), std::move(description)});
  };
  std::vector<std::string> missing, extra;
  absl::flat_hash_set<absl::string_view> known;
  for (const CapturedTensor& wanted : required) {
    known.insert(wanted.name);
    const TensorInfo* tensor = file.Find(wanted.name);
    if (tensor == nullptr) {
      missing.push_back(wanted.name);
    } else if (!IsComparableType(tensor->dtype)) {
      add(absl::StrCat(wanted.name, " has type ", DTypeName(tensor->dtype),
                       "; accepted: BF16, F32, F64"));
    } else if (tensor->shape != wanted.shape) {
      add(absl::StrCat(wanted.name, " has shape ", ShapeText(tensor->shape),
                       "; accepted: ", ShapeText(wanted.shape)));
    }
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (!known.contains(tensor.name) && !may_have(tensor.name)) {
      extra.push_back(Quoted(tensor.name));
    }
  }
  if (!missing.empty()) add(absl::StrCat("the capture lacks ", NameList(missing)));
  if (!extra.empty()) {
    add(absl::StrCat("the capture has tensors that ", owner, " does not have: ", NameList(extra)));
  }
  return FieldErrors(violations);
}

}  // namespace plumbline::drift
