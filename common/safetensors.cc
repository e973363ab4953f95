#include "common/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/json.h"
#include "common/status.h"

namespace plumbline {
namespace {

using nlohmann::json;

constexpr char kIndexSuffix[] = ".index.json";
constexpr size_t kMaxIndexBytes = 16 << 20;

absl::Status IndexError(absl::string_view index_path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(index_path, ": weight_map: ", what));
}

bool IsPlainFileName(absl::string_view name) {
  return !name.empty() && name != "." && name != ".." && !absl::StrContains(name, "/") &&
         !absl::StrContains(name, absl::string_view("\0", 1));
}

}  // namespace

absl::StatusOr<WeightMap> ReadWeightMap(const std::string& index_path,
                                        const SafetensorsLimits& limits) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(index_path, kMaxIndexBytes));
  PLUMBLINE_ASSIGN_OR_RETURN(const json index, ParseJson(text, index_path));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return IndexError(index_path, "is missing; accepted: an object of tensor names and shards");
  }
  const json& members = index["weight_map"];
  if (members.size() > limits.max_tensors) {
    return IndexError(index_path, absl::StrCat("names ", members.size(),
                                               " tensors; accepted: at most ", limits.max_tensors));
  }
  WeightMap weight_map;
  for (const auto& [tensor, shard] : members.items()) {
    if (!shard.is_string() || !IsPlainFileName(shard.get_ref<const std::string&>())) {
      return IndexError(
          index_path,
          absl::StrCat("shard of tensor ", Quoted(tensor), " is ",
                       Quoted(shard.is_string() ? shard.get<std::string>() : shard.dump()),
                       "; accepted: the name of a file beside the index"));
    }
    weight_map[shard.get<std::string>()].push_back(tensor);
  }
  if (weight_map.empty()) return IndexError(index_path, "names no tensor");
  if (weight_map.size() > limits.max_shards) {
    return IndexError(index_path, absl::StrCat("names ", weight_map.size(),
                                               " shards; accepted: at most ", limits.max_shards));
  }
  return weight_map;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::Open(const std::string& path,
                                                      const SafetensorsOptions& options) {
  SafetensorsFile result(path);
  PLUMBLINE_RETURN_IF_ERROR(absl::EndsWith(path, kIndexSuffix)
                                ? result.AddShardsOfIndex(options)
                                : result.AddShard(path, options.limits));
  return result;
}

absl::StatusOr<SafetensorsFile> SafetensorsFile::OpenAll(const std::string& path,
                                                         const std::vector<std::string>& files,
                                                         const SafetensorsOptions& options) {
  SafetensorsFile result(path);
  for (const std::string& file : files) {
    PLUMBLINE_RETURN_IF_ERROR(result.AddShard(file, options.limits));
  }
  return result;
}

absl::Status SafetensorsFile::AddShard(const std::string& path, const SafetensorsLimits& limits) {
  PLUMBLINE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  PLUMBLINE_ASSIGN_OR_RETURN(SafetensorsHeader header,
                             ParseSafetensorsHeader(file.bytes(), path, limits));
  if (header.tensors.size() > limits.max_tensors - tensors_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": more tensors with the other shards than the accepted ", limits.max_tensors));
  }
  for (TensorInfo& tensor : header.tensors) {
    tensor.shard = shards_.size();
    if (!index_by_name_.emplace(tensor.name, tensors_.size()).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": tensor ", Quoted(tensor.name), " is in an earlier shard too"));
    }
    tensors_.push_back(std::move(tensor));
  }
  metadata_.merge(header.metadata);
  shards_.push_back(Shard{std::move(file), header.data_offset});
  return absl::OkStatus();
}

absl::Status SafetensorsFile::AddShardsOfIndex(const SafetensorsOptions& options) {
  // The index may be a link, beside which its shards lie.
  const absl::StatusOr<std::string> followed = ResolveUnderRoots(path_, options.shard_roots);
  PLUMBLINE_ASSIGN_OR_RETURN(const WeightMap weight_map,
                             ReadWeightMap(followed.ok() ? *followed : path_, options.limits));
  const size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "./" : path_.substr(0, slash + 1);
  for (const auto& [shard_name, names] : weight_map) {
    std::string shard_path = absl::StrCat(folder, shard_name);
    if (!options.shard_roots.empty()) {
      absl::StatusOr<std::string> resolved = ResolveUnderRoots(shard_path, options.shard_roots);
      if (!resolved.ok()) {
        return IndexError(
            path_, absl::StrCat("shard ", Quoted(shard_name), ": ", resolved.status().message()));
      }
      shard_path = *std::move(resolved);
    }
    const size_t first = tensors_.size();
    const absl::Status added = AddShard(shard_path, options.limits);
    if (absl::IsNotFound(added)) {
      return IndexError(path_, absl::StrCat("shard ", Quoted(shard_name), " of tensor ",
                                            Quoted(names.front()), " is missing"));
    }
    PLUMBLINE_RETURN_IF_ERROR(added);
    for (const std::string& name : names) {
      const auto found = index_by_name_.find(name);
      if (found == index_by_name_.end() || found->second < first) {
        return IndexError(
            path_, absl::StrCat("tensor ", Quoted(name), " is not in shard ", Quoted(shard_name)));
      }
    }
    // All that are named are there, so a surplus is of tensors that are not named for this shard.
    if (tensors_.size() - first != names.size()) {
      for (size_t i = first; i < tensors_.size(); ++i) {
        // `names` is sorted, as the keys of a parsed JSON object are.
        if (!std::binary_search(names.begin(), names.end(), tensors_[i].name)) {
          return IndexError(
              path_, absl::StrCat("does not name tensor ", Quoted(tensors_[i].name), " for shard ",
                                  Quoted(shard_name), ", which holds it"));
        }
      }
    }
  }
  return absl::OkStatus();
}

const TensorInfo* SafetensorsFile::Find(absl::string_view name) const {
  const auto found = index_by_name_.find(name);
  return found == index_by_name_.end() ? nullptr : &tensors_[found->second];
}

absl::Span<const uint8_t> SafetensorsFile::Bytes(const TensorInfo& tensor) const {
  const Shard& shard = shards_[tensor.shard];
  return shard.file.bytes().subspan(shard.data_offset + tensor.begin, tensor.size_bytes());
}

absl::StatusOr<absl::Span<const uint8_t>> SafetensorsFile::Bytes(absl::string_view name) const {
  const TensorInfo* tensor = Find(name);
  if (tensor == nullptr) {
    return absl::NotFoundError(absl::StrCat(path_, ": there is no tensor ", Quoted(name)));
  }
  return Bytes(*tensor);
}

}  // namespace plumbline
