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

absl::StatusOr<DeviceBuffer> Device::Upload(const void* host, size_t bytes) {
  absl::StatusOr<DeviceBuffer> buffer = Allocate(bytes);
  if (!buffer.ok()) return buffer;
  const Tensor to = Tensor::Dense(buffer->data(), DType::kU8, 1, 1, static_cast<int64_t>(bytes));
  const absl::Status copied = CopyToDevice(host, to);
  if (!copied.ok()) return copied;
  return buffer;
}

absl::Status Device::FillSynthetic(absl::string_view, uint64_t, SyntheticRecipe, const Tensor&) {
  return absl::UnimplementedError("this device makes no synthetic values");
}

absl::Status Device::DrawTorchNormal(const TorchNormalDraw&, absl::Span<float>) {
  return absl::UnimplementedError("this device draws no noise");
}

absl::StatusOr<std::unique_ptr<RecordedWork>> Device::Record(absl::FunctionRef<absl::Status()>) {
  return absl::UnimplementedError("this device records nothing");
}

absl::StatusOr<TensorDifference> Device::Difference(const Tensor&, const Tensor&,
                                                    absl::Span<const int64_t>) {
  return absl::UnimplementedError("this device compares no tensors");
}

}  // namespace plumbline
