#include "worker/checkpoint/component.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/safetensors.h"
#include "common/sha256.h"

namespace plumbline::checkpoint {
namespace {

using v1::CheckpointFinding;

constexpr int64_t kChunkBytes = 8 << 20;

std::string TypeAndShape(DType dtype, absl::Span<const int64_t> shape) {
  return absl::StrCat(DTypeName(dtype), " (", absl::StrJoin(shape, ", "), ")");
}

// A stored tensor's names in diffusers' terms: those of the parameters that it is made into.
std::vector<std::string> ParameterNames(const TensorPlan& plan, const h3::StoredTensor& stored) {
  std::set<size_t> parameters;
  for (const h3::RowRun& run : stored.runs) parameters.insert(run.parameter);
  std::vector<std::string> names;
  for (size_t parameter : parameters) names.push_back(plan.parameters[parameter].name);
  return names;
}

std::string StoredAs(const TensorPlan& plan, const h3::StoredTensor& stored) {
  return plan.layout == h3::CheckpointLayout::kNative ? absl::StrCat(stored.name, " ") : "";
}

bool Fits(const TensorInfo& tensor, const h3::StoredTensor& stored) {
  return tensor.dtype == stored.dtype && tensor.shape == stored.shape;
}

// The scans that one stored tensor's bytes go into, and which byte goes where.
class Distributor {
 public:
  // `stored` may be null: the tensor is measured as it lies.
  Distributor(const TensorPlan& plan, const TensorInfo& tensor, const h3::StoredTensor* stored)
      : plan_(plan), tensor_(tensor) {
    const int64_t rows = tensor.shape.size() < 2 ? 1 : tensor.shape[0];
    row_bytes_ = rows == 0 ? 0 : static_cast<int64_t>(tensor.size_bytes()) / rows;
    if (stored == nullptr) {
      runs_ = {{0, 0, rows}};
      scans_.emplace(0, ParameterScan(tensor.dtype, rows, row_bytes_, 1));
      return;
    }
    runs_ = stored->runs;
    for (const h3::RowRun& run : runs_) {
      if (scans_.count(run.parameter) > 0) continue;
      const h3::ParameterSpec& parameter = plan.parameters[run.parameter];
      const int64_t parameter_rows = parameter.shape.size() < 2 ? 1 : parameter.shape[0];
      scans_.emplace(run.parameter, ParameterScan(parameter.dtype, parameter_rows, row_bytes_,
                                                  PartsOf(parameter.name, *plan.config)));
    }
    stored_ = stored;
  }

  // Bytes of the tensor, in their order.
  void Add(absl::Span<const uint8_t> bytes) {
    while (!bytes.empty() && at_ < runs_.size()) {
      const h3::RowRun& run = runs_[at_];
      const int64_t left = run.rows * row_bytes_ - in_run_;
      const absl::Span<const uint8_t> part = bytes.first(std::min<size_t>(bytes.size(), left));
      scans_.at(run.parameter).Add(run.to_row * row_bytes_ + in_run_, part);
      bytes.remove_prefix(part.size());
      in_run_ += static_cast<int64_t>(part.size());
      if (in_run_ == run.rows * row_bytes_) {
        ++at_;
        in_run_ = 0;
      }
    }
  }

  void Finish(const std::string& file, std::vector<ScannedTensor>* tensors) {
    for (auto& [parameter, scan] : scans_) {
      ScannedTensor& scanned = tensors->emplace_back();
      scanned.file = file;
      if (stored_ == nullptr) {
        scanned.name = absl::StrCat(plan_.prefix, tensor_.name);
        scanned.dtype = tensor_.dtype;
        scanned.shape = tensor_.shape;
      } else {
        const h3::ParameterSpec& spec = plan_.parameters[parameter];
        scanned.name = spec.name;
        scanned.dtype = spec.dtype;
        scanned.shape = spec.shape;
      }
      scanned.figures = scan.Finish();
    }
  }

 private:
  const TensorPlan& plan_;
  const TensorInfo& tensor_;
  const h3::StoredTensor* stored_ = nullptr;
  int64_t row_bytes_ = 0;
  std::vector<h3::RowRun> runs_;
  size_t at_ = 0;       // The run that is being filled,
  int64_t in_run_ = 0;  // and how many of its bytes have come.
  std::map<size_t, ParameterScan> scans_;
};

// Size and header of a file that is there.
void CheckBeginning(Shard* shard) {
  const ShardFile& file = *shard->contents;
  const std::string& name = shard->file.name;
  if (file.ends_in_header()) {
    shard->findings.push_back(
        Finding(CheckpointFinding::KIND_TRUNCATED_FILE, name, "",
                absl::StrCat("has ", file.size_bytes(), " bytes and ends within its header")));
    return;
  }
  if (!file.header().ok()) {
    shard->findings.push_back(Finding(CheckpointFinding::KIND_CORRUPT_FILE, name, "",
                                      std::string(file.header().status().message())));
    return;
  }
  const int64_t whole =
      static_cast<int64_t>(file.header()->data_offset + file.header()->data_bytes);
  if (file.size_bytes() < whole) {
    shard->findings.push_back(
        Finding(CheckpointFinding::KIND_TRUNCATED_FILE, name, "",
                absl::StrCat("has ", file.size_bytes(), " bytes; its header speaks of ", whole)));
  } else if (file.size_bytes() > whole) {
    shard->findings.push_back(
        Finding(CheckpointFinding::KIND_CORRUPT_FILE, name, "",
                absl::StrCat("has ", file.size_bytes() - whole,
                             " bytes behind its tensors, which belong to none")));
  }
}

}  // namespace

v1::CheckpointFinding Finding(CheckpointFinding::Kind kind, std::string file, std::string tensor,
                              std::string message) {
  CheckpointFinding finding;
  finding.set_kind(kind);
  finding.set_file(std::move(file));
  finding.set_tensor(std::move(tensor));
  finding.set_message(std::move(message));
  return finding;
}

const h3::StoredTensor* TensorPlan::Find(absl::string_view name) const {
  for (const h3::StoredTensor& tensor : stored) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::vector<Shard> OpenShards(const std::vector<h3::CheckpointFile>& files) {
  std::vector<Shard> shards;
  for (const h3::CheckpointFile& file : files) {
    Shard& shard = shards.emplace_back();
    shard.file = file;
    shard.report.set_path(file.name);
    if (file.path.empty()) {
      shard.findings.push_back(
          Finding(CheckpointFinding::KIND_MISSING_FILE, file.name, "", "is not there"));
      continue;
    }
    absl::StatusOr<ShardFile> opened = ShardFile::Open(file.path);
    if (!opened.ok()) {
      shard.findings.push_back(Finding(CheckpointFinding::KIND_CORRUPT_FILE, file.name, "",
                                       "cannot be opened as a file"));
      continue;
    }
    shard.contents.emplace(*std::move(opened));
    shard.report.set_size_bytes(shard.contents->size_bytes());
    CheckBeginning(&shard);
  }
  return shards;
}

std::vector<CheckpointFinding> CheckNames(const std::vector<Shard>& shards,
                                          const h3::CheckpointFile& index, const TensorPlan& plan) {
  std::vector<CheckpointFinding> findings;
  absl::flat_hash_map<std::string, const Shard*> place;  // Of every tensor in a header.
  bool all_headers = true;
  for (const Shard& shard : shards) {
    all_headers = all_headers && shard.HasHeader();
    if (!shard.HasHeader()) continue;
    for (const TensorInfo& tensor : shard.contents->header()->tensors) {
      const auto [other, is_new] = place.emplace(tensor.name, &shard);
      if (!is_new) {
        findings.push_back(Finding(CheckpointFinding::KIND_EXTRA_TENSOR, shard.file.name,
                                   absl::StrCat(plan.prefix, tensor.name),
                                   absl::StrCat("is in ", other->second->file.name, " too")));
      }
    }
  }
  // Where each tensor should be, by the index.
  absl::flat_hash_map<std::string, std::string> indexed;
  if (!index.path.empty()) {
    const absl::StatusOr<WeightMap> weight_map = ReadWeightMap(index.path);
    for (const auto& [file, names] : weight_map.ok() ? *weight_map : WeightMap()) {
      for (const std::string& name : names) indexed[name] = file;
    }
  }
  const std::string folder = index.name.substr(0, index.name.rfind('/') + 1);
  absl::flat_hash_set<std::string> headless;  // Files that cannot say what they hold.
  for (const Shard& shard : shards) {
    if (!shard.HasHeader()) headless.insert(shard.file.name);
  }

  for (const h3::StoredTensor& stored : plan.stored) {
    const auto found = place.find(stored.name);
    const auto in_index = indexed.find(stored.name);
    if (found == place.end()) {
      const bool file_is_gone =
          in_index != indexed.end() ? headless.contains(folder + in_index->second) : !all_headers;
      // What is missing with its file is the file's finding.
      if (stored.runs.empty() || file_is_gone) continue;
      for (const std::string& name : ParameterNames(plan, stored)) {
        findings.push_back(Finding(
            CheckpointFinding::KIND_MISSING_TENSOR,
            in_index == indexed.end() ? "" : folder + in_index->second, name,
            absl::StrCat(StoredAs(plan, stored), "is in no file; the configuration asks for ",
                         TypeAndShape(stored.dtype, stored.shape))));
      }
      continue;
    }
    const Shard& shard = *found->second;
    if (in_index != indexed.end() && folder + in_index->second != shard.file.name) {
      findings.push_back(Finding(
          CheckpointFinding::KIND_CORRUPT_FILE, index.name, ParameterNames(plan, stored).front(),
          absl::StrCat("places it in ", in_index->second, "; it is in ", shard.file.name)));
    }
    for (const TensorInfo& tensor : shard.contents->header()->tensors) {
      if (tensor.name != stored.name || stored.runs.empty() || Fits(tensor, stored)) continue;
      const auto kind = tensor.shape == stored.shape ? CheckpointFinding::KIND_WRONG_TYPE
                                                     : CheckpointFinding::KIND_WRONG_SHAPE;
      for (const std::string& name : ParameterNames(plan, stored)) {
        findings.push_back(Finding(
            kind, shard.file.name, name,
            absl::StrCat(StoredAs(plan, stored), "is ", TypeAndShape(tensor.dtype, tensor.shape),
                         "; the configuration asks for ",
                         TypeAndShape(stored.dtype, stored.shape))));
      }
    }
  }
  if (plan.stored.empty()) return findings;
  absl::flat_hash_set<absl::string_view> known;
  for (const h3::StoredTensor& stored : plan.stored) known.insert(stored.name);
  for (const Shard& shard : shards) {
    if (!shard.HasHeader()) continue;
    for (const TensorInfo& tensor : shard.contents->header()->tensors) {
      if (known.contains(tensor.name)) continue;
      findings.push_back(Finding(CheckpointFinding::KIND_EXTRA_TENSOR, shard.file.name, tensor.name,
                                 absl::StrCat(TypeAndShape(tensor.dtype, tensor.shape),
                                              " is no tensor of the configured transformer")));
    }
  }
  return findings;
}

void ReadShard(const TensorPlan& plan, const std::function<bool(int64_t)>& on_bytes, Shard* shard) {
  const ShardFile& file = *shard->contents;
  Sha256 hash;
  hash.Update(file.beginning());
  int64_t at = static_cast<int64_t>(file.beginning().size());
  if (!on_bytes(at)) return;
  std::vector<uint8_t> buffer(kChunkBytes);
  // Reads up to `end`, a piece at a time; false where that is not to be had.
  const auto read_to = [&](int64_t end, Distributor* distributor) -> bool {
    while (at < end) {
      const size_t count = static_cast<size_t>(std::min(kChunkBytes, end - at));
      const absl::Span<uint8_t> piece = absl::MakeSpan(buffer).first(count);
      if (const absl::Status read = file.Read(at, piece); !read.ok()) {
        shard->findings.push_back(Finding(CheckpointFinding::KIND_CORRUPT_FILE, shard->file.name,
                                          "", std::string(read.message())));
        return false;
      }
      hash.Update(piece);
      if (distributor != nullptr) distributor->Add(piece);
      at += static_cast<int64_t>(count);
      if (!on_bytes(static_cast<int64_t>(count))) return false;
    }
    return true;
  };
  if (shard->HasHeader()) {
    const int64_t data = static_cast<int64_t>(file.header()->data_offset);
    for (const TensorInfo& tensor : file.header()->tensors) {
      const int64_t end = data + static_cast<int64_t>(tensor.end);
      if (end > file.size_bytes()) break;  // Cut off: not measured.
      const h3::StoredTensor* stored = plan.Find(tensor.name);
      if (stored != nullptr && stored->runs.empty()) {  // Nothing is made of it.
        if (!read_to(end, nullptr)) return;
        continue;
      }
      if (stored != nullptr && !Fits(tensor, *stored)) stored = nullptr;
      Distributor distributor(plan, tensor, stored);
      if (!read_to(end, &distributor)) return;
      distributor.Finish(shard->file.name, &shard->tensors);
    }
  }
  if (!read_to(file.size_bytes(), nullptr)) return;
  shard->report.set_sha256(hash.FinishHex());
}

}  // namespace plumbline::checkpoint
