#include "kernels/device.h"

#include <utility>

namespace plumbline {

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) device_->FreeBytes(data_, bytes_);
}

absl::StatusOr<DeviceBuffer> Device::Allocate(size_t bytes) {
  absl::StatusOr<void*> data = AllocateBytes(bytes);
  if (!data.ok()) return data.status();
  return DeviceBuffer(this, *data, bytes);
}

}  // namespace plumbline
