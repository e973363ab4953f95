#include "worker/device_usage.h"

#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/logging.h"

namespace plumbline::worker {
namespace {

absl::Duration ProcessorTime() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return absl::DurationFromTimeval(usage.ru_utime) + absl::DurationFromTimeval(usage.ru_stime);
}

}  // namespace

// The few functions of NVML that are needed, as NVIDIA documents them. 0 is success.
class DeviceUsageMeter::Nvml {
 public:
  // Null if the library, or the device in it, is not to be had.
  static std::unique_ptr<Nvml> Load(const std::string& library, const std::string& pci_bus_id) {
    auto nvml = std::make_unique<Nvml>();
    nvml->library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    int (*init)() = nullptr;
    int (*find)(const char*, void**) = nullptr;
    const bool usable = nvml->library_ != nullptr && nvml->Find("nvmlInit_v2", &init) &&
                        nvml->Find("nvmlDeviceGetHandleByPciBusId_v2", &find) &&
                        nvml->Find("nvmlDeviceGetMemoryInfo", &nvml->get_memory_) &&
                        nvml->Find("nvmlDeviceGetUtilizationRates", &nvml->get_utilisation_) &&
                        init() == 0 && find(pci_bus_id.c_str(), &nvml->device_) == 0;
    return usable ? std::move(nvml) : nullptr;
  }

  ~Nvml() {
    if (library_ != nullptr) dlclose(library_);
  }

  v1::DeviceUsage Measure() const {
    v1::DeviceUsage usage;
    Memory memory = {};
    if (get_memory_(device_, &memory) == 0) {
      usage.set_memory_bytes(static_cast<int64_t>(memory.used_bytes));
    }
    Utilisation utilisation = {};
    if (get_utilisation_(device_, &utilisation) == 0) {
      usage.set_utilisation(std::min(utilisation.gpu_percent, 100u) / 100.0);
    }
    return usage;
  }

 private:
  struct Memory {
    uint64_t total_bytes, free_bytes, used_bytes;
  };
  struct Utilisation {
    unsigned gpu_percent, memory_percent;
  };

  template <typename Function>
  bool Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    return *function != nullptr;
  }

  void* library_ = nullptr;
  void* device_ = nullptr;
  int (*get_memory_)(void*, Memory*) = nullptr;
  int (*get_utilisation_)(void*, Utilisation*) = nullptr;
};

DeviceUsageMeter::DeviceUsageMeter(const WorkerDevice& device, Clock* clock,
                                   const std::string& nvml)
    : device_(device.device.get()), threads_(device.threads), clock_(clock) {
  if (device_->kind() != DeviceKind::kCuda) return;
  nvml_ = Nvml::Load(nvml, device.pci_bus_id);
  if (nvml_ == nullptr) {
    Log(LogLevel::kWarning, "the use of the device cannot be told",
        {{"library", nvml}, {"device", device.pci_bus_id}});
  }
}

DeviceUsageMeter::~DeviceUsageMeter() = default;

v1::DeviceUsage DeviceUsageMeter::Measure() {
  if (nvml_ != nullptr) return nvml_->Measure();
  v1::DeviceUsage usage;
  if (device_->kind() == DeviceKind::kCuda) {
    // All that this process knows.
    usage.set_memory_bytes(device_->HighWaterBytes());
    return usage;
  }
  usage.set_memory_bytes(ProcessMemoryBytes());
  const absl::Time now = clock_->Now();
  const absl::Duration processor_time = ProcessorTime();
  if (const absl::Duration elapsed = now - measured_;
      measured_ != absl::InfinitePast() && elapsed > absl::ZeroDuration()) {
    const double share =
        absl::FDivDuration(processor_time - processor_time_, elapsed) / std::max(threads_, 1);
    usage.set_utilisation(std::clamp(share, 0.0, 1.0));
  }
  measured_ = now;
  processor_time_ = processor_time;
  return usage;
}

}  // namespace plumbline::worker
