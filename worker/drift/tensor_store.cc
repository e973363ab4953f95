#include "worker/drift/tensor_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/drift/compare.h"

namespace plumbline::drift {

absl::StatusOr<TensorStore::Stored*> TensorStore::Allocate(absl::string_view name,
                                                           const Tensor& like) {
  Stored stored;
  stored.tensor = Tensor::Dense(nullptr, like.dtype, like.batch, like.rows, like.width);
  PLUMBLINE_ASSIGN_OR_RETURN(stored.buffer, device_->Allocate(stored.tensor.NumBytes()));
  stored.tensor.data = stored.buffer.data();
  Stored& place = stored_[name];
  place = std::move(stored);
  return &place;
}

absl::Status TensorStore::Put(absl::string_view name, const Tensor& tensor) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Stored* stored, Allocate(name, tensor));
  return device_->Convert(device_->Context(), tensor, stored->tensor);
}

absl::Status TensorStore::PutHost(absl::string_view name, const Tensor& host) {
  PLUMBLINE_ASSIGN_OR_RETURN(const Stored* stored, Allocate(name, host));
  return device_->CopyToDevice(host.data, stored->tensor);
}

absl::StatusOr<Tensor> TensorStore::Find(absl::string_view name) const {
  const auto found = stored_.find(name);
  if (found != stored_.end()) return found->second.tensor;
  return absl::NotFoundError(absl::StrCat("there is no tensor '", name, "' to feed"));
}

absl::StatusOr<std::string> TensorStore::Sha256(absl::string_view name) {
  const auto found = stored_.find(name);
  if (found == stored_.end()) return Find(name).status();
  Stored& stored = found->second;
  if (stored.sha256.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(const h3::HostTensor host, ToHost(*device_, stored.tensor));
    stored.sha256 = TensorSha256(host.tensor);
  }
  return stored.sha256;
}

absl::StatusOr<h3::HostTensor> ToHost(Device& device, const Tensor& tensor) {
  if (device.kind() == DeviceKind::kCpu) return h3::HostTensor{tensor, nullptr};
  PLUMBLINE_ASSIGN_OR_RETURN(
      h3::HostTensor host,
      h3::AllocateHostTensor(tensor.dtype, tensor.batch, tensor.rows, tensor.width));
  PLUMBLINE_RETURN_IF_ERROR(device.CopyToHost(tensor, host.tensor.data));
  return host;
}

}  // namespace plumbline::drift
