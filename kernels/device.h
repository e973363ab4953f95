#ifndef PLUMBLINE_KERNELS_DEVICE_H_
#define PLUMBLINE_KERNELS_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "kernels/ops.h"

namespace plumbline {

enum class DeviceKind { kCpu, kCuda };

class Device;

// Memory of a device, 64-byte aligned, freed with the object. The device must outlive it.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(Device* device, void* data, size_t bytes)
      : device_(device), data_(data), bytes_(bytes) {}
  DeviceBuffer(DeviceBuffer&& other) noexcept { *this = std::move(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;
  ~DeviceBuffer();

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

// One device and its memory accounting. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceKind kind() const = 0;
  // What the numerical identity calls the device class: the instruction set level of a CPU, the
  // product and multiprocessor count of a GPU.
  virtual std::string DeviceClass() const = 0;
  virtual int64_t MemoryBytes() const = 0;

  // RESOURCE_EXHAUSTED, with the bytes asked for, in use and there are, when the memory is not to
  // be had.
  absl::StatusOr<DeviceBuffer> Allocate(size_t bytes);
  // The most bytes that were in use at once since the last ResetHighWater().
  virtual int64_t HighWaterBytes() const = 0;
  virtual void ResetHighWater() = 0;

  // Copies between dense tensors of equal shape and type. They return when the copy is done.
  virtual absl::Status CopyToDevice(const void* host, const Tensor& to) = 0;
  virtual absl::Status CopyToHost(const Tensor& from, void* host) = 0;

  // Copies the values of one view into another of equal batch, rows and width, strides and types
  // being free: widening is exact, narrowing rounds to nearest even (integer types only to
  // themselves). `from` may have batch 1 where `to` has more. Enqueued on the context's stream,
  // like an operation.
  virtual absl::Status Convert(const ExecutionContext& context, const Tensor& from,
                               const Tensor& to) = 0;

  // Returns when everything that was enqueued in a context of Context() is done, with what went
  // wrong there.
  virtual absl::Status Synchronize() { return absl::OkStatus(); }

  // A context for calls on this device, without workspace.
  virtual ExecutionContext Context() = 0;

 protected:
  friend class DeviceBuffer;
  virtual absl::StatusOr<void*> AllocateBytes(size_t bytes) = 0;
  virtual void FreeBytes(void* data, size_t bytes) = 0;
};

// The CPU, with a pool of `threads` threads (at least 1) and at most `memory_bytes` allocated at
// once. FAILED_PRECONDITION when the processor lacks the instruction set that the kernels were
// compiled for.
absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(int threads, int64_t memory_bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_DEVICE_H_
