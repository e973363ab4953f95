#ifndef PLUMBLINE_WORKER_DEVICE_USAGE_H_
#define PLUMBLINE_WORKER_DEVICE_USAGE_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "common/clock.h"
#include "kernels/device.h"
#include "proto/plumbline/v1/worker.pb.h"
#include "worker/host.h"

namespace plumbline::worker {

// How much of a worker's device is in use: of a GPU what the driver's library says (NVML, loaded at
// run time), of a CPU what this process has of it. One thread at a time.
class DeviceUsageMeter {
 public:
  // NVML as the driver brings it.
  static constexpr char kNvml[] = "libnvidia-ml.so.1";

  // `device`'s own device, and `clock`, must outlive it.
  DeviceUsageMeter(const WorkerDevice& device, Clock* clock, const std::string& nvml = kNvml);
  ~DeviceUsageMeter();

  // Memory now; utilisation of a CPU since the call before, absent in the first one, of a GPU as
  // the driver measures it, absent where it does not.
  v1::DeviceUsage Measure();

 private:
  class Nvml;

  const Device* const device_;
  const int threads_;
  Clock* const clock_;
  std::unique_ptr<Nvml> nvml_;  // Null: a CPU, or there is none.
  absl::Time measured_ = absl::InfinitePast();
  absl::Duration processor_time_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_DEVICE_USAGE_H_
