#ifndef PLUMBLINE_WORKER_DRIFT_TENSOR_STORE_H_
#define PLUMBLINE_WORKER_DRIFT_TENSOR_STORE_H_

#include <memory>
#include <string>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/device.h"
#include "worker/h3/execution.h"
#include "worker/h3/host_tensor.h"

namespace plumbline::drift {

// Tensors by name in a device's memory, dense, each a copy of its own: what an execution computed,
// or what a capture holds. Feeds other executions. Not thread-safe; `device` must outlive it.
class TensorStore : public h3::TensorSource {
 public:
  explicit TensorStore(Device* device) : device_(device) {}

  // Copies a tensor of this device in its own type. Replaces one of the same name.
  absl::Status Put(absl::string_view name, const Tensor& tensor);
  // Copies dense host values.
  absl::Status PutHost(absl::string_view name, const Tensor& host);

  // NOT_FOUND names it. Valid until the name is put again or dropped.
  absl::StatusOr<Tensor> Find(absl::string_view name) const override;
  bool Contains(absl::string_view name) const { return stored_.contains(name); }

  // The digest of a stored tensor's bytes, hex; computed once, by the host.
  absl::StatusOr<std::string> Sha256(absl::string_view name);

  void Clear() { stored_.clear(); }

 private:
  struct Stored {
    DeviceBuffer buffer;
    Tensor tensor;
    std::string sha256;  // empty until asked for
  };

  absl::StatusOr<Stored*> Allocate(absl::string_view name, const Tensor& like);

  Device* const device_;
  absl::node_hash_map<std::string, Stored> stored_;
};

// A device's tensor as the host sees it: the same memory on a CPU, otherwise a copy, for which the
// tensor must be dense.
absl::StatusOr<h3::HostTensor> ToHost(Device& device, const Tensor& tensor);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_TENSOR_STORE_H_
