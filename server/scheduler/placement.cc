#include "server/scheduler/placement.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

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
    const bool usable =
        std::any_of(has.plugins().begin(), has.plugins().end(), [&plugin](const v1::Plugin& each) {
          return each.name() == plugin && each.refused().empty();
        });
    if (!usable) return absl::StrCat("lacks the plug-in ", plugin);
  }
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
  int64_t largest_bytes = -1;
  std::string missing;
  for (const v1::Worker* worker : workers) {
    if (Fits(needs, *worker)) {
      return Reason(v1::WaitingReason::CODE_BUSY, "the workers that fit are busy");
    }
    if (Fits(without_memory, *worker)) {
      largest_bytes = std::max(largest_bytes, worker->capabilities().device().memory_bytes());
    }
    if (missing.empty()) missing = absl::StrCat(worker->name(), " ", WhatIsMissing(needs, *worker));
  }
  if (largest_bytes >= 0) {
    return Reason(
        v1::WaitingReason::CODE_MEMORY,
        absl::StrCat("needs ", FormatBytes(needs.memory_bytes()),
                     " of device memory; the largest worker has ", FormatBytes(largest_bytes)));
  }
  return Reason(v1::WaitingReason::CODE_NO_FIT,
                absl::StrCat("none of ", workers.size(), " workers fits; e.g. ", missing));
}

}  // namespace plumbline::server
