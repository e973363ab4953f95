#include "worker/drift/capture.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/safetensors_writer.h"
#include "common/status.h"
#include "worker/drift/compare.h"
#include "worker/h3/host_tensor.h"
#include "worker/h3/model_inputs.h"

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

bool IsAcceptedType(DType dtype) {
  return dtype == DType::kBF16 || dtype == DType::kF32 || dtype == DType::kF64;
}

absl::Status CheckNames(absl::string_view field, const SafetensorsFile& file,
                        const BlockEntries& entries, const BlockEntries& entries_with_gradients) {
  std::vector<FieldViolation> violations;
  const auto add = [&](std::string description) {
    violations.push_back({std::string(field), std::move(description)});
  };
  std::vector<std::string> missing, extra;
  for (const BlockEntry& entry : entries.all()) {
    const TensorInfo* tensor = file.Find(entry.capture_name);
    if (tensor == nullptr) {
      missing.push_back(entry.capture_name);
    } else if (!IsAcceptedType(tensor->dtype)) {
      add(absl::StrCat(entry.capture_name, " has type ", DTypeName(tensor->dtype),
                       "; accepted: BF16, F32, F64"));
    } else if (tensor->shape != entry.shape) {
      add(absl::StrCat(entry.capture_name, " has shape ", ShapeText(tensor->shape),
                       "; accepted: ", ShapeText(entry.shape)));
    }
  }
  absl::flat_hash_set<absl::string_view> known;
  for (const BlockEntry& entry : entries_with_gradients.all()) known.insert(entry.capture_name);
  for (const TensorInfo& tensor : file.tensors()) {
    if (!known.contains(tensor.name) && !h3::IsBlockInputName(tensor.name)) {
      extra.push_back(Quoted(tensor.name));
    }
  }
  if (!missing.empty()) add(absl::StrCat("the capture lacks ", NameList(missing)));
  if (!extra.empty()) {
    add(absl::StrCat("the capture has tensors that a block does not have: ", NameList(extra)));
  }
  return FieldErrors(violations);
}

}  // namespace

absl::Status LoadCapture(absl::string_view field, const SafetensorsFile& file,
                         const BlockEntries& entries, const BlockEntries& entries_with_gradients,
                         TensorStore* store) {
  PLUMBLINE_RETURN_IF_ERROR(CheckNames(field, file, entries, entries_with_gradients));
  for (const BlockEntry& entry : entries.all()) {
    const TensorInfo& tensor = *file.Find(entry.capture_name);
    const Tensor host =
        AsComparedTensor(file.Bytes(tensor).data(), tensor.dtype, tensor.shape).tensor;
    PLUMBLINE_RETURN_IF_ERROR(store->PutHost(entry.tensor_name, host));
  }
  return absl::OkStatus();
}

absl::Status WriteCapture(const std::string& path, const BlockEntries& entries,
                          const TensorStore& store, Device& device) {
  std::vector<TensorSpec> specs;
  for (const BlockEntry& entry : entries.all()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store.Find(entry.tensor_name));
    specs.push_back({entry.capture_name, tensor.dtype, entry.shape});
  }
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsWriter writer, SafetensorsWriter::Create(path, specs));
  for (const BlockEntry& entry : entries.all()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, store.Find(entry.tensor_name));
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, ToHost(device, tensor));
    PLUMBLINE_RETURN_IF_ERROR(writer.Write(entry.capture_name, host.Bytes()));
  }
  return writer.Finish();
}

}  // namespace plumbline::drift
