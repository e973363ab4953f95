#include "worker/h3/checkpoint_files.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "worker/h3/native_config.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kFolders[] = {"transformer", "FL2VA/transformer"};
// What weight files are called, without their endings.
constexpr absl::string_view kStems[] = {"diffusion_pytorch_model", "model"};
constexpr absl::string_view kConfigFile = "config.json";
constexpr absl::string_view kWeights = ".safetensors";
constexpr absl::string_view kIndex = ".safetensors.index.json";
constexpr size_t kMaxConfigBytes = 1 << 16;
constexpr int kMaxShards = 4096;

// A file of `folder`, found or not.
CheckpointFile FileIn(const std::string& directory, absl::string_view folder,
                      absl::string_view name, const std::vector<std::string>& roots) {
  CheckpointFile file;
  file.name = absl::StrCat(folder, "/", name);
  file.unfollowed = absl::StrCat(directory, "/", file.name);
  const absl::StatusOr<std::string> path = ResolveUnderRoots(file.unfollowed, roots);
  if (path.ok()) file.path = *path;
  return file;
}

// "model-00002-of-00013.safetensors" of stem "model": 13; else 0.
int ShardCount(absl::string_view name, absl::string_view stem) {
  int number = 0, count = 0;
  if (!absl::ConsumePrefix(&name, stem) || !absl::ConsumePrefix(&name, "-") ||
      !absl::ConsumeSuffix(&name, kWeights)) {
    return 0;
  }
  const size_t of = name.find("-of-");
  if (of == absl::string_view::npos || !absl::SimpleAtoi(name.substr(0, of), &number) ||
      !absl::SimpleAtoi(name.substr(of + 4), &count)) {
    return 0;
  }
  return number >= 1 && number <= count && count <= kMaxShards ? count : 0;
}

// The shards of a folder that has no index, all that their numbers promise.
std::vector<CheckpointFile> NumberedShards(const std::string& directory, absl::string_view folder,
                                           const std::vector<std::string>& roots) {
  std::error_code error;
  std::map<absl::string_view, int> counts;  // By stem.
  for (auto entry = std::filesystem::directory_iterator(
           std::string(absl::StrCat(directory, "/", folder)), error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    for (absl::string_view stem : kStems) {
      const int count = ShardCount(entry->path().filename().string(), stem);
      counts[stem] = std::max(counts[stem], count);
    }
  }
  for (const auto& [stem, count] : counts) {
    std::vector<CheckpointFile> shards;
    for (int i = 1; i <= count; ++i) {
      shards.push_back(FileIn(directory, folder,
                              absl::StrFormat("%s-%05d-of-%05d%s", stem, i, count, kWeights),
                              roots));
    }
    if (!shards.empty()) return shards;
  }
  return {};
}

// A file that is there, but whose link leads out of the roots, is refused, not missing.
absl::Status CheckLinks(const std::vector<std::string>& roots, const ComponentFiles& files) {
  std::vector<const CheckpointFile*> all = {&files.config, &files.index};
  for (const CheckpointFile& shard : files.shards) all.push_back(&shard);
  for (const CheckpointFile* file : all) {
    if (file->name.empty() || !file->path.empty()) continue;
    std::error_code error;
    if (std::filesystem::symlink_status(file->unfollowed, error).type() !=
        std::filesystem::file_type::not_found) {
      return AnnotateStatus(ResolveUnderRoots(file->unfollowed, roots).status(), file->name);
    }
  }
  return absl::OkStatus();
}

}  // namespace

const char* CheckpointLayoutName(CheckpointLayout layout) {
  return layout == CheckpointLayout::kNative ? "native" : "released";
}

absl::StatusOr<ComponentFiles> FindTransformerFiles(const std::string& directory,
                                                    const std::vector<std::string>& roots) {
  for (absl::string_view folder : kFolders) {
    if (ResolveUnderRoots(absl::StrCat(directory, "/", folder), roots).ok()) {
      return FindComponentFiles(directory, folder, roots);
    }
  }
  return FindComponentFiles(directory, kFolders[0], roots);
}

absl::StatusOr<ComponentFiles> FindComponentFiles(const std::string& directory,
                                                  absl::string_view folder,
                                                  const std::vector<std::string>& roots) {
  ComponentFiles files;
  files.folder = std::string(folder);
  files.config = FileIn(directory, files.folder, kConfigFile, roots);
  for (absl::string_view stem : kStems) {
    const CheckpointFile index = FileIn(directory, files.folder, absl::StrCat(stem, kIndex), roots);
    if (index.path.empty()) continue;
    files.index = index;
    PLUMBLINE_ASSIGN_OR_RETURN(const WeightMap weight_map, ReadWeightMap(index.path));
    for (const auto& [shard, tensors] : weight_map) {
      files.shards.push_back(FileIn(directory, files.folder, shard, roots));
    }
    break;
  }
  for (absl::string_view stem : kStems) {
    if (!files.shards.empty()) break;
    const CheckpointFile single =
        FileIn(directory, files.folder, absl::StrCat(stem, kWeights), roots);
    if (!single.path.empty()) files.shards = {single};
  }
  if (files.shards.empty()) files.shards = NumberedShards(directory, files.folder, roots);
  PLUMBLINE_RETURN_IF_ERROR(CheckLinks(roots, files));
  if (files.shards.empty() ||
      std::all_of(files.shards.begin(), files.shards.end(),
                  [](const CheckpointFile& shard) { return shard.path.empty(); })) {
    return FieldError(
        files.folder, "holds no weights",
        absl::StrCat(kStems[0], kIndex, " or ", kStems[1], kIndex, " with its shards, shards ",
                     kStems[1], "-NNNNN-of-NNNNN", kWeights, ", or ", kStems[0], kWeights));
  }
  return files;
}

absl::StatusOr<TransformerConfig> ReadTransformerConfig(const ComponentFiles& files) {
  if (files.config.path.empty()) {
    return FieldError(files.config.name, "is missing",
                      "the transformer's configuration, in diffusers' keys or MiniMax's own");
  }
  absl::StatusOr<std::string> text = ReadFile(files.config.path, kMaxConfigBytes);
  if (!text.ok()) return AnnotateStatus(text.status(), files.config.name);
  return IsNativeConfig(*text) ? ParseNativeConfig(*text, files.config.name)
                               : ParseTransformerConfig(*text, files.config.name);
}

}  // namespace plumbline::h3
