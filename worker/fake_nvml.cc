// NVML as far as worker/device_usage.cc calls it, with one device in it.
#include <cstdint>
#include <cstring>

namespace {

struct Memory {
  uint64_t total_bytes, free_bytes, used_bytes;
};
struct Utilisation {
  unsigned gpu_percent, memory_percent;
};

bool ready = false;
int the_device = 0;

}  // namespace

extern "C" {

int nvmlInit_v2() {
  ready = true;
  return 0;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
  if (!ready || std::strcmp(pci_bus_id, "00000000:41:00.0") != 0) return 6;
  *device = &the_device;
  return 0;
}

int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (device != &the_device) return 2;
  *memory = {1000, 400, 600};
  return 0;
}

int nvmlDeviceGetUtilizationRates(void* device, Utilisation* utilisation) {
  if (device != &the_device) return 2;
  *utilisation = {75, 20};
  return 0;
}

}  // extern "C"
