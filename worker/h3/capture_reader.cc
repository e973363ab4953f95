#include "worker/h3/capture_reader.h"

#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline::h3 {
namespace {

bool Fits(absl::Span<const int64_t> shape, absl::Span<const int64_t> expected) {
  if (shape.size() != expected.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (expected[i] >= 0 ? shape[i] != expected[i] : shape[i] > kMaxRows) return false;
  }
  return true;
}

}  // namespace

const TensorInfo* CaptureReader::Find(absl::string_view name, absl::Span<const DType> dtypes,
                                      const std::vector<int64_t>& shape) {
  const std::string wanted = absl::StrCat(
      absl::StrJoin(dtypes, " or ",
                    [](std::string* out, DType dtype) { absl::StrAppend(out, DTypeName(dtype)); }),
      " ", FormatShape(shape));
  const TensorInfo* tensor = file_.Find(name);
  std::string fault;
  if (tensor == nullptr) {
    fault = "is missing";
  } else if (!absl::c_linear_search(dtypes, tensor->dtype) || !Fits(tensor->shape, shape)) {
    fault = absl::StrCat("is ", DTypeName(tensor->dtype), " ", FormatShape(tensor->shape));
  } else {
    return tensor;
  }
  violations_.push_back(
      {absl::StrCat(file_.path(), ": ", name), absl::StrCat(fault, "; accepted: ", wanted)});
  return nullptr;
}

template <typename T>
void CaptureReader::ReadVector(absl::string_view name, DType dtype,
                               const std::vector<int64_t>& shape, std::vector<T>* to) {
  const TensorInfo* tensor = Find(name, {dtype}, shape);
  if (tensor == nullptr) return;
  const absl::Span<const uint8_t> bytes = file_.Bytes(*tensor);
  to->resize(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(to->data(), bytes.data(), bytes.size());
}

void CaptureReader::ReadLayout(PackedLayout* layout) {
  const size_t violations = violations_.size();
  ReadVector("position_ids", DType::kF64, {-1, 3}, &layout->position_ids);
  ReadVector("token_tags", DType::kI64, {-1}, &layout->token_tags);
  ReadVector("video_indices", DType::kI64, {-1}, &layout->video_indices);
  ReadVector("audio_indices", DType::kI64, {-1}, &layout->audio_indices);
  ReadVector("text_indices", DType::kI64, {-1}, &layout->text_indices);
  ReadVector("timestep", DType::kF32, {-1}, &layout->timestep);
  ReadVector("timestep_indices", DType::kI64, {-1}, &layout->timestep_indices);
  if (violations_.size() != violations) return;
  const absl::Status complete = CompletePackedLayout(file_.path(), layout);
  for (FieldViolation& violation : GetFieldViolations(complete)) {
    violations_.push_back(std::move(violation));
  }
}

void CaptureReader::ReadFloats(absl::string_view name, const std::vector<int64_t>& shape,
                               HostTensor* to) {
  const TensorInfo* tensor = Find(name, {DType::kF32, DType::kBF16}, shape);
  if (tensor == nullptr) return;
  const Tensor view = DenseView(nullptr, DType::kF32, shape);
  absl::StatusOr<HostTensor> values =
      AllocateHostTensor(DType::kF32, view.batch, view.rows, view.width);
  if (!values.ok()) {
    failure_.Update(values.status());
    return;
  }
  const absl::Span<const uint8_t> bytes = file_.Bytes(*tensor);
  float* widened = static_cast<float*>(values->tensor.data);
  if (tensor->dtype == DType::kF32) {
    std::memcpy(widened, bytes.data(), bytes.size());
  } else {
    for (int64_t i = 0; i < view.NumElements(); ++i) {
      bfloat16 value;
      std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
      widened[i] = WidenBf16(value);
    }
  }
  *to = *std::move(values);
}

absl::Status CaptureReader::status() const {
  PLUMBLINE_RETURN_IF_ERROR(failure_);
  return FieldErrors(violations_);
}

}  // namespace plumbline::h3
