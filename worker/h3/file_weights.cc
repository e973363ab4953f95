#include "worker/h3/file_weights.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/safetensors.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kConfigFile = "transformer/config.json";
constexpr absl::string_view kIndexFile =
    "transformer/diffusion_pytorch_model.safetensors.index.json";
constexpr absl::string_view kSingleFile = "transformer/diffusion_pytorch_model.safetensors";
constexpr size_t kMaxConfigBytes = 1 << 16;
// Violations that one error lists; a checkpoint of another model would have hundreds.
constexpr size_t kMaxViolations = 8;

std::string FormatShape(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), ")");
}

// Everything in which the file's tensors differ from those that the model has.
absl::Status CheckTensors(const WeightSource& model, const SafetensorsFile& file) {
  std::vector<FieldViolation> violations;
  size_t count = 0;
  auto refuse = [&](absl::string_view tensor, std::string description) {
    if (++count <= kMaxViolations) {
      violations.push_back(
          {absl::StrCat(file.path(), ": ", Quoted(tensor)), std::move(description)});
    }
  };
  for (const ParameterSpec& parameter : model.parameters()) {
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
    if (model.Find(tensor.name) == nullptr) {
      refuse(tensor.name, absl::StrCat(DTypeName(tensor.dtype), " ", FormatShape(tensor.shape),
                                       " is no tensor of the configured transformer"));
    }
  }
  if (count > kMaxViolations) {
    violations.push_back(
        {file.path(), absl::StrCat(count - kMaxViolations, " more tensors do not fit")});
  }
  return FieldErrors(violations);
}

size_t CountShards(const SafetensorsFile& file) {
  size_t shards = 0;
  for (const TensorInfo& tensor : file.tensors()) shards = std::max(shards, tensor.shard + 1);
  return shards;
}

class FileWeights : public WeightSource {
 public:
  FileWeights(const TransformerConfig& config, SafetensorsFile file)
      : WeightSource(config),
        file_(std::make_shared<const SafetensorsFile>(std::move(file))),
        shards_(CountShards(*file_)) {}

  const SafetensorsFile& file() const { return *file_; }

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    const ParameterSpec* parameter = Find(name);
    if (parameter == nullptr) {
      return absl::NotFoundError(absl::StrCat("the model has no parameter ", Quoted(name)));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file_->Bytes(name));
    void* data = const_cast<uint8_t*>(bytes.data());  // Nobody writes: see HostTensor.
    const Tensor tensor = DenseView(data, parameter->dtype, parameter->shape);
    if (reinterpret_cast<uintptr_t>(data) % DTypeSize(parameter->dtype) == 0) {
      return WeightView{tensor, file_};
    }
    PLUMBLINE_ASSIGN_OR_RETURN(
        WeightView copy, AllocateHostTensor(tensor.dtype, tensor.batch, tensor.rows, tensor.width));
    std::memcpy(copy.tensor.data, bytes.data(), bytes.size());
    return copy;
  }

  std::string Description() const override {
    return absl::StrCat("released layout, ", shards_, shards_ == 1 ? " file" : " shards");
  }

  absl::StatusOr<std::string> Identity() const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string digest, Digest());
    return absl::StrCat("sha256:", digest);
  }

 private:
  absl::Status Hash(const ParameterSpec& parameter, Sha256* hash) const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes, file_->Bytes(parameter.name));
    hash->Update(bytes);
    return absl::OkStatus();
  }

  const std::shared_ptr<const SafetensorsFile> file_;
  const size_t shards_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const WeightSource>> OpenFileWeights(
    const std::string& directory, const std::vector<std::string>& roots) {
  const absl::StatusOr<std::string> config_path =
      ResolveUnderRoots(absl::StrCat(directory, "/", kConfigFile), roots);
  if (!config_path.ok()) return AnnotateStatus(config_path.status(), kConfigFile);
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string config_text,
                             ReadFile(*config_path, kMaxConfigBytes));
  PLUMBLINE_ASSIGN_OR_RETURN(const TransformerConfig config,
                             ParseTransformerConfig(config_text, kConfigFile));

  // Only the index's folder is followed, not the index itself, if that is a link: its shards lie
  // beside the link.
  std::string path = absl::StrCat(directory, "/", kIndexFile);
  if (!ResolveUnderRoots(path, roots).ok()) {
    const absl::StatusOr<std::string> single =
        ResolveUnderRoots(absl::StrCat(directory, "/", kSingleFile), roots);
    if (!single.ok()) {
      return FieldError(absl::StrCat(directory, "/transformer"), "holds no weights",
                        absl::StrCat(kIndexFile, " with its shards, or ", kSingleFile));
    }
    path = *single;
  }
  SafetensorsOptions options;
  options.shard_roots = roots;
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::Open(path, options));
  auto weights = std::make_shared<const FileWeights>(config, std::move(file));
  PLUMBLINE_RETURN_IF_ERROR(CheckTensors(*weights, weights->file()));
  return weights;
}

}  // namespace plumbline::h3
