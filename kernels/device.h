#ifndef PLUMBLINE_KERNELS_DEVICE_H_
#define PLUMBLINE_KERNELS_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/difference.h"
#include "kernels/numerics/synthetic.h"
#include "kernels/numerics/torch_normal.h"
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

// Calls that a device keeps and can be told to make again with one call.
class RecordedWork {
 public:
  virtual ~RecordedWork() = default;
  // Enqueues them.
  virtual absl::Status Enqueue() = 0;
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

  // Allocates memory that holds `bytes` bytes of the host's. Where the device has a path for copies
  // beside its calls, neither waits for the other. Returns when the bytes are there.
  virtual absl::StatusOr<DeviceBuffer> Upload(const void* host, size_t bytes);

  // Copies the values of one view into another of equal batch, rows and width, strides and types
  // being free: widening is exact, narrowing rounds to nearest even (integer types only to
  // themselves). `from` may have batch 1 where `to` has more. Enqueued on the context's stream,
  // like an operation.
  virtual absl::Status Convert(const ExecutionContext& context, const Tensor& from,
                               const Tensor& to) = 0;

  // What a GPU does in its own memory, where a CPU's callers do it themselves: UNIMPLEMENTED there.
  //
  // FillSynthetic of kernels/numerics/synthetic.h, bit for bit: all values of tensor `name`, into
  // `to`, which is dense and bfloat16 or float32. Enqueued.
  virtual absl::Status FillSynthetic(absl::string_view name, uint64_t seed, SyntheticRecipe recipe,
                                     const Tensor& to);
  // torch.randn on a GPU, bit for bit, into the host's memory. Returns when the values are there.
  virtual absl::Status DrawTorchNormal(const TorchNormalDraw& draw, absl::Span<float> to);
  // Compares two tensors of equal batch, rows and width; types are BF16, F32 and F64, strides free.
  // `ranks` are below the number of values, at most kMostRanks. Waits for the result.
  static constexpr size_t kMostRanks = 8;
  virtual absl::StatusOr<TensorDifference> Difference(const Tensor& reference, const Tensor& x,
                                                      absl::Span<const int64_t> ranks);

  // A GPU can record what `enqueue` enqueues in the context's stream, without running it. Nothing
  // else may be enqueued, allocated or freed meanwhile. UNIMPLEMENTED where CanRecord() is false.
  virtual bool CanRecord() const { return false; }
  virtual absl::StatusOr<std::unique_ptr<RecordedWork>> Record(
      absl::FunctionRef<absl::Status()> enqueue);

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
