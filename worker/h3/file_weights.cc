#include "worker/h3/file_weights.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "worker/h3/checkpoint_files.h"
#include "worker/h3/stored_tensors.h"

namespace plumbline::h3 {
namespace {

// Violations that one error lists; a checkpoint of another model would have hundreds.
constexpr size_t kMaxViolations = 8;

std::string FormatShape(absl::Span<const int64_t> shape) {
  return absl::StrCat("(", absl::StrJoin(shape, ", "), ")");
}

// Everything in which the file's tensors differ from those that the layout has.
absl::Status CheckTensors(const std::vector<StoredTensor>& expected, const SafetensorsFile& file) {
  std::vector<FieldViolation> violations;
  size_t count = 0;
  auto refuse = [&](absl::string_view tensor, std::string description) {
    if (++count <= kMaxViolations) {
      violations.push_back(
          {absl::StrCat(file.path(), ": ", Quoted(tensor)), std::move(description)});
    }
  };
  absl::flat_hash_set<absl::string_view> known;
  for (const StoredTensor& tensor : expected) {
    known.insert(tensor.name);
    const TensorInfo* found = file.Find(tensor.name);
    if (found == nullptr) {
      if (tensor.runs.empty()) continue;
      refuse(tensor.name, absl::StrCat("is missing; the configuration asks for ",
                                       DTypeName(tensor.dtype), " ", FormatShape(tensor.shape)));
    } else if (found->shape != tensor.shape || found->dtype != tensor.dtype) {
      refuse(tensor.name, absl::StrCat("is ", DTypeName(found->dtype), " ",
                                       FormatShape(found->shape), "; the configuration asks for ",
                                       DTypeName(tensor.dtype), " ", FormatShape(tensor.shape)));
    }
  }
  for (const TensorInfo& tensor : file.tensors()) {
    if (!known.contains(tensor.name)) {
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

class FileWeights : public WeightSource {
 public:
  FileWeights(const TransformerConfig& config, CheckpointLayout layout, size_t files,
              SafetensorsFile file)
      : WeightSource(config),
        layout_(layout),
        files_(files),
        file_(std::make_shared<const SafetensorsFile>(std::move(file))),
        stored_(StoredTensors(layout, config, parameters())),
        pieces_(parameters().size()) {
    for (const StoredTensor& tensor : stored_) {
      int64_t row = 0;
      for (const RowRun& run : tensor.runs) {
        pieces_[run.parameter].push_back({&tensor, row, run});
        row += run.rows;
      }
    }
    for (std::vector<Piece>& pieces : pieces_) {
      std::sort(pieces.begin(), pieces.end(),
                [](const Piece& a, const Piece& b) { return a.run.to_row < b.run.to_row; });
    }
  }

  // OK if the file holds what the layout has.
  absl::Status Check() const { return CheckTensors(stored_, *file_); }

  absl::StatusOr<WeightView> Get(absl::string_view name) const override {
    const ParameterSpec* parameter = Find(name);
    if (parameter == nullptr) {
      return absl::NotFoundError(absl::StrCat("the model has no parameter ", Quoted(name)));
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<absl::Span<const uint8_t>> runs,
                               RunsOf(*parameter));
    void* data = const_cast<uint8_t*>(runs[0].data());  // Nobody writes: see HostTensor.
    const Tensor tensor = DenseView(data, parameter->dtype, parameter->shape);
    if (runs.size() == 1 && reinterpret_cast<uintptr_t>(data) % DTypeSize(parameter->dtype) == 0) {
      return WeightView{tensor, file_};
    }
    PLUMBLINE_ASSIGN_OR_RETURN(
        WeightView copy, AllocateHostTensor(tensor.dtype, tensor.batch, tensor.rows, tensor.width));
    uint8_t* to = static_cast<uint8_t*>(copy.tensor.data);
    for (absl::Span<const uint8_t> run : runs) {
      std::memcpy(to, run.data(), run.size());
      to += run.size();
    }
    return copy;
  }

  std::string Description() const override {
    return absl::StrCat(CheckpointLayoutName(layout_), " layout, ", files_,
                        files_ == 1 ? " file" : " shards");
  }

  absl::StatusOr<std::string> Identity() const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string digest, Digest());
    return absl::StrCat("sha256:", digest);
  }

 private:
  // Rows of a parameter as they lie in the file.
  struct Piece {
    const StoredTensor* tensor;
    int64_t first_row;
    RowRun run;
  };

  absl::Status Hash(const ParameterSpec& parameter, Sha256* hash) const override {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<absl::Span<const uint8_t>> runs,
                               RunsOf(parameter));
    for (absl::Span<const uint8_t> run : runs) hash->Update(run);
    return absl::OkStatus();
  }

  // The bytes of a parameter of this source, in order, in as many parts as they lie in.
  absl::StatusOr<std::vector<absl::Span<const uint8_t>>> RunsOf(
      const ParameterSpec& parameter) const {
    std::vector<absl::Span<const uint8_t>> runs;
    const int64_t rows = parameter.shape.size() == 1 ? 1 : parameter.shape[0];
    const int64_t row_bytes = parameter.NumBytes() / rows;
    for (const Piece& piece : pieces_[&parameter - parameters().data()]) {
      PLUMBLINE_ASSIGN_OR_RETURN(const absl::Span<const uint8_t> bytes,
                                 file_->Bytes(piece.tensor->name));
      runs.push_back(bytes.subspan(piece.first_row * row_bytes, piece.run.rows * row_bytes));
    }
    return runs;
  }

  const CheckpointLayout layout_;
  const size_t files_;
  const std::shared_ptr<const SafetensorsFile> file_;
  const std::vector<StoredTensor> stored_;
  std::vector<std::vector<Piece>> pieces_;  // By parameter, in the order of its rows.
};

absl::StatusOr<SafetensorsFile> OpenShards(const ComponentFiles& files,
                                           const std::vector<std::string>& roots) {
  SafetensorsOptions options;
  options.shard_roots = roots;
  // Only the index's folder is followed, not the index itself, if that is a link: its shards lie
  // beside the link.
  if (!files.index.name.empty()) return SafetensorsFile::Open(files.index.unfollowed, options);
  std::vector<std::string> paths;
  for (const CheckpointFile& shard : files.shards) {
    if (shard.path.empty()) {
      return FieldError(shard.name, "is missing", "every shard that the others' names promise");
    }
    paths.push_back(shard.path);
  }
  return SafetensorsFile::OpenAll(files.folder, paths, options);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const WeightSource>> OpenFileWeights(
    const std::string& directory, const std::vector<std::string>& roots) {
  PLUMBLINE_ASSIGN_OR_RETURN(const ComponentFiles files, FindTransformerFiles(directory, roots));
  PLUMBLINE_ASSIGN_OR_RETURN(const TransformerConfig config, ReadTransformerConfig(files));
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsFile file, OpenShards(files, roots));
  std::vector<std::string> names;
  for (const TensorInfo& tensor : file.tensors()) names.push_back(tensor.name);
  const auto weights = std::make_shared<const FileWeights>(config, LayoutOfNames(names),
                                                           files.shards.size(), std::move(file));
  PLUMBLINE_RETURN_IF_ERROR(weights->Check());
  return weights;
}

}  // namespace plumbline::h3
