#include "worker/h3/parameter_files.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kConfigFile = "config.json";
constexpr absl::string_view kIndexFile = "diffusion_pytorch_model.safetensors.index.json";
constexpr absl::string_view kSingleFile = "diffusion_pytorch_model.safetensors";
constexpr size_t kMaxConfigBytes = 1 << 16;
// Violations that one error lists; a checkpoint of another model would have hundreds.
constexpr size_t kMaxViolations = 8;

}  // namespace

absl::StatusOr<std::string> ReadModelConfig(const std::string& directory, absl::string_view model,
                                            const std::vector<std::string>& roots) {
  const std::string name = absl::StrCat(model, "/", kConfigFile);
  const absl::StatusOr<std::string> path =
      ResolveUnderRoots(absl::StrCat(directory, "/", name), roots);
  if (!path.ok()) return AnnotateStatus(path.status(), name);
  return ReadFile(*path, kMaxConfigBytes);
}

absl::StatusOr<std::shared_ptr<const SafetensorsFile>> OpenModelFile(
    const std::string& directory, absl::string_view model, const std::vector<std::string>& roots) {
  // Only the index's folder is followed, not the index itself, if that is a link: its shards lie
  // beside the link.
  const std::string index = absl::StrCat(model, "/", kIndexFile);
  const std::string single = absl::StrCat(model, "/", kSingleFile);
  std::string path = absl::StrCat(directory, "/", index);
  if (!ResolveUnderRoots(path, roots).ok()) {
    const absl::StatusOr<std::string> resolved =
        ResolveUnderRoots(absl::StrCat(directory, "/", single), roots);
    if (!resolved.ok()) {
      return FieldError(absl::StrCat(directory, "/", model), "holds no weights",
                        absl::StrCat(index, " with its shards, or ", single));
    }
    path = *resolved;
  }
  SafetensorsOptions options;
  options.shard_roots = roots;
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path, options));
  return std::make_shared<const SafetensorsFile>(std::move(file));
}

absl::Status CheckModelTensors(const std::vector<ParameterSpec>& parameters,
                               const SafetensorsFile& file, absl::string_view model,
                               bool others_allowed) {
  std::vector<FieldViolation> violations;
  size_t count = 0;
  auto refuse = [&](absl::string_view tensor, std::string description) {
    if (++count <= kMaxViolations) {
      violations.push_back(
          {absl::StrCat(file.path(), ": ", Quoted(tensor)), std::move(description)});
    }
  };
  std::set<absl::string_view> known;
  for (const ParameterSpec& parameter : parameters) {
    known.insert(parameter.name);
    const TensorInfo* found = file.Find(parameter.name);
    if (found == nullptr) {
      refuse(parameter.name,
             absl::StrCat("is missing; the configuration asks for ", DTypeName(parameter.dtype),
                          " ", FormatShape(parameter.shape)));
    } else if (found->shape != parameter.shape || found->dtype != parameter.dtype) {
      refuse(parameter.name,
             absl::StrCat("is ", DTypeName(found->dtype), " ", FormatShape(found->shape),
                          "; the configuration asks for ", DTypeName(parameter.dtype), " ",
                          FormatShape(parameter.shape)));
    }
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (!others_allowed && known.count(tensor.name) == 0) {
      refuse(tensor.name, absl::StrCat(DTypeName(tensor.dtype), " ", FormatShape(tensor.shape),
                                       " is no tensor of the configured ", model));
    }
  }
  if (count > kMaxViolations) {
    violations.push_back(
        {file.path(), absl::StrCat(count - kMaxViolations, " more tensors do not fit")});
  }
  return FieldErrors(violations);
}

absl::StatusOr<WeightView> ReadParameter(const std::shared_ptr<const SafetensorsFile>& file,
                                         const ParameterSpec& parameter) {
  PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file->Bytes(parameter.name));
  void* data = const_cast<uint8_t*>(bytes.data());  // Nobody writes: see HostTensor.
  const Tensor tensor = ParameterView(data, parameter.dtype, parameter.shape);
  if (reinterpret_cast<uintptr_t>(data) % DTypeSize(parameter.dtype) == 0) {
    return WeightView{tensor, file};
  }
  PLUMBLINE_ASSIGN_OR_RETURN(
      WeightView copy, AllocateHostTensor(tensor.dtype, tensor.batch, tensor.rows, tensor.width));
  std::memcpy(copy.tensor.data, bytes.data(), bytes.size());
  return copy;
}

std::string DescribeFile(const SafetensorsFile& file) {
  size_t shards = 0;
  for (const TensorInfo& tensor : file.tensors()) shards = std::max(shards, tensor.shard + 1);
  return absl::StrCat("released layout, ", shards, shards == 1 ? " file" : " shards");
}

}  // namespace plumbline::h3
