#ifndef PLUMBLINE_WORKER_DEVICE_CLAIM_H_
#define PLUMBLINE_WORKER_DEVICE_CLAIM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plumbline::worker {

// Devices of this machine that no other worker has while this object exists, whatever a scheduler
// or an operator says, and whoever's the other worker is. The kernel keeps the claim: it ends with
// the process, however that ends, and is not passed on to processes that this one starts. Valid
// within a network namespace: containers with networks of their own do not see each other's.
class DeviceClaim {
 public:
  // Claims all of `devices`, names that every worker of the machine has for them, e.g.
  // "GPU-<uuid>". FAILED_PRECONDITION with reason IN_USE, naming the device, if another process has
  // one of them; then none is claimed.
  static absl::StatusOr<DeviceClaim> Take(const std::vector<std::string>& devices);
  DeviceClaim() = default;  // Of nothing.
  ~DeviceClaim();
  DeviceClaim(DeviceClaim&& other) noexcept;
  DeviceClaim& operator=(DeviceClaim&& other) noexcept;

 private:
  std::vector<int> sockets_;
};

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_DEVICE_CLAIM_H_
