// What the worker needs to know of the machine it runs on.
#ifndef PLUMBLINE_WORKER_HOST_H_
#define PLUMBLINE_WORKER_HOST_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/identity/kernel_identity.h"
#include "kernels/registry.h"
#include "proto/plumbline/v1/worker.pb.h"

namespace plumbline::worker {

struct DeviceOptions {
  // "cpu"; "cuda:N" where the program was built with CUDA; "auto": the first GPU that there is, or
  // else the CPU.
  std::string device = "cpu";
  int threads = 0;  // Of the CPU. 0: one for each processor this process may use.
  // What tasks may use of the CPU's memory. 0: four fifths of the machine's, or of what its
  // container may use. A GPU's is theirs.
  int64_t memory_bytes = 0;
};

struct WorkerDevice {
  std::unique_ptr<Device> device;
  int threads = 0;
  // Of a GPU: its compute capability times ten, and where it is plugged in, "" if that is not
  // known.
  int compute_capability = 0;
  std::string pci_bus_id;
};

// Which GPU of the machine `options` name, as CudaDeviceUuid() says it; "" where that is the CPU.
// Takes nothing of it. Errors as MakeWorkerDevice()'s.
absl::StatusOr<std::string> FindGpuUuid(const DeviceOptions& options);

// INVALID_ARGUMENT, naming the flag, for a device that there is not, or sizes that make no sense.
absl::StatusOr<WorkerDevice> MakeWorkerDevice(const DeviceOptions& options);

// Run-time libraries that take part in the numerical identities of work on `device`, by name.
std::map<std::string, std::string> NumericalLibraries(DeviceKind device);

// What the worker says of itself when it registers.
v1::WorkerCapabilities DescribeWorker(const WorkerDevice& device, const Registry& registry,
                                      const KernelIdentity& kernel_identity);

// Memory of this process that is in use now, bytes.
int64_t ProcessMemoryBytes();

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_HOST_H_
