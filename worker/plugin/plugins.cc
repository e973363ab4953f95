#include "worker/plugin/plugins.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/logging.h"
#include "common/printable.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/builtin.h"
#include "kernels/plugin/current_call.h"

namespace plumbline::worker {
namespace {

constexpr size_t kMaxObjectBytes = size_t{1} << 30;

v1::Plugin Describe(const plugin::Library& library) {
  v1::Plugin description;
  description.set_name(library.name());
  description.set_sha256(library.sha256());
  description.set_abi_version(library.abi_version());
  description.set_owner(library.owner());
  bool repeatable = true, row_invariant = true;
  for (const plugin::Kernel& kernel : library.kernels()) {
    const bool cuda = kernel.description->device == PLUMBLINE_CUDA;
    description.set_device_kind(cuda ? v1::DEVICE_KIND_CUDA : v1::DEVICE_KIND_CPU);
    description.set_compute_capability(
        std::max(description.compute_capability(), kernel.description->compute_capability));
    repeatable &= kernel.Promises(PLUMBLINE_REPEATABLE);
    row_invariant &= kernel.Promises(PLUMBLINE_ROW_INVARIANT);
    for (const plugin::PluginNode* node : kernel.nodes) {
      const auto& nodes = description.nodes();
      if (std::find(nodes.begin(), nodes.end(), node->name) == nodes.end()) {
        description.add_nodes(std::string(node->name));
      }
    }
  }
  description.set_repeatable(repeatable);
  description.set_row_invariant(row_invariant);
  return description;
}

}  // namespace

absl::StatusOr<std::string> Plugins::CopyByDigest(const std::string& path,
                                                  std::string* sha256) const {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, kMaxObjectBytes));
  *sha256 = Sha256Hex(bytes);
  std::error_code error;
  std::filesystem::create_directories(options_.copies_folder, error);
  const std::string copy = absl::StrCat(options_.copies_folder, "/", *sha256, ".so");
  const absl::StatusOr<std::string> there = ReadFile(copy, kMaxObjectBytes);
  if (there.ok() && *there == bytes) return copy;
  PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(copy, bytes));
  return copy;
}

absl::Status Plugins::Add(const std::string& path) {
  std::string sha256;
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string copy, CopyByDigest(path, &sha256));
  PLUMBLINE_RETURN_IF_ERROR(ProbePlugin(copy, options_.probe));
  absl::StatusOr<std::shared_ptr<const plugin::Library>> loaded = absl::UnknownError("");
  {
    // What it is called, nobody knows yet.
    const plugin::CurrentCall loading(absl::StrCat("plug-in ", sha256.substr(0, 12)), "", false);
    loaded = plugin::Library::Load(copy, sha256);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(std::shared_ptr<const plugin::Library> library, std::move(loaded));
  PLUMBLINE_RETURN_IF_ERROR(plugin::CheckAbility(*library, options_.device));
  for (const auto& other : libraries_) {
    if (other->name() != library->name()) continue;
    if (other->sha256() == sha256) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("there is another plug-in of the name ", Quoted(library->name())));
  }
  descriptions_.push_back(Describe(*library));
  libraries_.push_back(std::move(library));
  return absl::OkStatus();
}

absl::Status Plugins::AddFolder(const std::string& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    if (at->path().extension() == ".so") files.push_back(at->path());
  }
  if (error) {
    return FieldError("plugins", absl::StrCat(Quoted(folder), ": ", error.message()),
                      "an existing folder");
  }
  std::sort(files.begin(), files.end());
  for (const std::filesystem::path& file : files) {
    const absl::Status added = Add(file.string());
    if (added.ok()) {
      const v1::Plugin& description = descriptions_.back();
      Log(LogLevel::kInfo, "plug-in loaded",
          {{"plugin", description.name()}, {"sha256", description.sha256()}});
      continue;
    }
    Log(LogLevel::kWarning, "plug-in refused",
        {{"file", file.string()}, {"error", added.ToString()}});
    v1::Plugin refused;
    refused.set_name(Printable(file.stem().string()));
    refused.set_refused(Printable(added.message()));
    descriptions_.push_back(std::move(refused));
  }
  return absl::OkStatus();
}

absl::StatusOr<Registry> Plugins::MakeRegistry() const {
  Registry registry = MakeBuiltinRegistry();
  for (const auto& library : libraries_) {
    PLUMBLINE_RETURN_IF_ERROR(plugin::Register(library, options_.device, &registry));
  }
  return registry;
}

std::map<std::string, std::string> Plugins::Identities() const {
  std::map<std::string, std::string> identities;
  for (const auto& library : libraries_) {
    identities[library->name()] = absl::StrCat(library->sha256(), " ", library->identity());
  }
  return identities;
}

}  // namespace plumbline::worker
