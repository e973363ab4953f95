#include "server/scheduler/placement.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace plumbline::server {
namespace {

std::string DeviceName(v1::DeviceKind kind) {
  return kind == v1::DEVICE_KIND_CUDA ? "a CUDA device" : "a CPU";
}

v1::WaitingReason Reason(v1::WaitingReason::Code code, std::string message) {
  v1::WaitingReason reason;
  reason.set_code(code);
  reason.set_message(std::move(message));
  return reason;
}

bool HasPlugin(const v1::Worker& worker, const std::string& name) {
  const auto& plugins = worker.capabilities().plugins();
  return std::any_of(plugins.begin(), plugins.end(), [&name](const v1::Plugin& plugin) {
    return plugin.name() == name && plugin.refused().empty();
  });
}

// Of workers that would fit if it were not for the plug-ins: what they lack.
std::string WhichPluginIsMissing(const v1::Placement& needs,
                                 const std::vector<const v1::Worker*>& workers) {
  if (needs.takes_uploaded_plugins()) {
    return "brings a plug-in, and no worker loads uploaded ones (--allow-plugin-uploads)";
  }
  std::string missing;
  for (const std::string& name : needs.plugins()) {
    if (std::none_of(workers.begin(), workers.end(),
                     [&name](const v1::Worker* worker) { return HasPlugin(*worker, name); })) {
      missing = name;
      break;
    }
  }
  if (missing.empty()) return "no worker has all of its plug-ins";
  std::set<std::string> names;
  std::string refused;
  for (const v1::Worker* worker : workers) {
    for (const v1::Plugin& plugin : worker->capabilities().plugins()) {
      if (plugin.refused().empty()) {
        names.insert(plugin.name());
      } else if (plugin.name() == missing && refused.empty()) {
        refused = absl::StrCat("; ", worker->name(), " refuses it: it ", plugin.refused());
      }
    }
  }
  return absl::StrCat(
      "no worker has the plug-in ", missing,
      refused.empty()
          ? absl::StrCat("; they have: ", names.empty() ? "none" : absl::StrJoin(names, ", "))
          : refused);
}

}  // namespace

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1'000'000'000) return absl::StrFormat("%.1f MB", static_cast<double>(bytes) / 1e6);
  return absl::StrFormat("%.1f GB", static_cast<double>(bytes) / 1e9);
}

std::string WhatIsMissing(const v1::Placement& needs, const v1::Worker& worker) {
  const v1::WorkerCapabilities& has = worker.capabilities();
  const v1::Device& device = has.device();
  if (needs.device_kind() != v1::DEVICE_KIND_UNSPECIFIED && needs.device_kind() != device.kind()) {
    return absl::StrCat("has ", DeviceName(device.kind()), ", not ",
                        DeviceName(needs.device_kind()));
  }
  if (needs.compute_capability() > device.compute_capability()) {
    return absl::StrCat("has compute capability ", device.compute_capability(), ", not ",
                        needs.compute_capability(), " (times ten)");
  }
  if (!needs.device_class().empty() && needs.device_class() != device.device_class()) {
    return absl::StrCat("is of device class ", device.device_class(), ", not ",
                        needs.device_class());
  }
  if (!needs.kernel_sha256().empty() && needs.kernel_sha256() != has.kernel_identity().sha256()) {
    return absl::StrCat("has kernel identity ", has.kernel_identity().sha256(), ", not ",
                        needs.kernel_sha256());
  }
  for (const auto& [key, value] : needs.worker_labels()) {
    const auto label = worker.labels().find(key);
    if (label == worker.labels().end() || label->second != value) {
      return absl::StrCat("lacks the label ", key, "=", value);
    }
  }
  for (const std::string& plugin : needs.plugins()) {
    if (!HasPlugin(worker, plugin)) return absl::StrCat("lacks the plug-in ", plugin);
  }
  if (needs.takes_uploaded_plugins() && !has.takes_uploaded_plugins()) {
    return "loads no uploaded plug-ins";
  }
  if (needs.media() && !has.has_media()) return "has no FFmpeg";
  // Last, so that memory is only named where nothing else is in the way.
  if (needs.memory_bytes() > device.memory_bytes()) {
    return absl::StrCat("has ", FormatBytes(device.memory_bytes()), " of device memory, not ",
                        FormatBytes(needs.memory_bytes()));
  }
  return "";
}

v1::WaitingReason WhyWaiting(const v1::Placement& needs,
                             const std::vector<const v1::Worker*>& workers) {
  if (workers.empty()) {
    return Reason(v1::WaitingReason::CODE_NO_WORKER, "no worker is registered that takes tasks");
  }
  v1::Placement without_memory = needs;
  without_memory.clear_memory_bytes();
  v1::Placement without_plugins = without_memory;
  without_plugins.clear_plugins();
  without_plugins.clear_takes_uploaded_plugins();
  std::vector<const v1::Worker*> without_the_plugins;
  int64_t largest_bytes = -1;
  std::string missing;
  for (const v1::Worker* worker : workers) {
    if (Fits(needs, *worker)) {
      return Reason(v1::WaitingReason::CODE_BUSY, "the workers that fit are busy");
    }
    if (Fits(without_memory, *worker)) {
      largest_bytes = std::max(largest_bytes, worker->capabilities().device().memory_bytes());
    }
    if (Fits(without_plugins, *worker)) without_the_plugins.push_back(worker);
    if (missing.empty()) missing = absl::StrCat(worker->name(), " ", WhatIsMissing(needs, *worker));
  }
  if (largest_bytes >= 0) {
    return Reason(
        v1::WaitingReason::CODE_MEMORY,
        absl::StrCat("needs ", FormatBytes(needs.memory_bytes()),
                     " of device memory; the largest worker has ", FormatBytes(largest_bytes)));
  }
  if (!without_the_plugins.empty()) {
    return Reason(v1::WaitingReason::CODE_PLUGIN, WhichPluginIsMissing(needs, without_the_plugins));
  }
  return Reason(v1::WaitingReason::CODE_NO_FIT,
                absl::StrCat("none of ", workers.size(), " workers fits; e.g. ", missing));
}

}  // namespace plumbline::server
