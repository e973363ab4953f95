#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/status.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/device.h"

namespace plumbline {
namespace {

constexpr size_t kAlignment = 64;

class CpuDevice final : public Device {
 public:
  CpuDevice(int threads, int64_t memory_bytes) : memory_bytes_(memory_bytes), threads_(threads) {}

  DeviceKind kind() const override { return DeviceKind::kCpu; }
  // The level that the kernels are compiled for: a newer processor runs the same instructions and
  // gives the same numbers.
  std::string DeviceClass() const override { return "x86-64-v3"; }
  int64_t MemoryBytes() const override { return memory_bytes_; }

  int64_t HighWaterBytes() const override {
    absl::MutexLock lock(&mutex_);
    return high_water_bytes_;
  }
  void ResetHighWater() override {
    absl::MutexLock lock(&mutex_);
    high_water_bytes_ = used_bytes_;
  }

  absl::Status CopyToDevice(const void* host, const Tensor& to) override {
    if (!to.IsDense()) return NotDense();
    std::memcpy(to.data, host, to.NumBytes());
    return absl::OkStatus();
  }
  absl::Status CopyToHost(const Tensor& from, void* host) override {
    if (!from.IsDense()) return NotDense();
    std::memcpy(host, from.data, from.NumBytes());
    return absl::OkStatus();
  }

  absl::Status Convert(const ExecutionContext& context, const Tensor& from,
                       const Tensor& to) override {
    return ConvertTensor(from, to, *context.threads);
  }

  ExecutionContext Context() override {
    ExecutionContext context;
    context.device = this;
    context.threads = &threads_;
    return context;
  }

 protected:
  absl::StatusOr<void*> AllocateBytes(size_t bytes) override {
    {
      absl::MutexLock lock(&mutex_);
      if (bytes > static_cast<uint64_t>(memory_bytes_ - used_bytes_)) return Exhausted(bytes);
      used_bytes_ += static_cast<int64_t>(bytes);
      high_water_bytes_ = std::max(high_water_bytes_, used_bytes_);
    }
    const size_t rounded = (std::max<size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) {
      absl::MutexLock lock(&mutex_);
      used_bytes_ -= static_cast<int64_t>(bytes);
      return Exhausted(bytes);
    }
    return data;
  }

  void FreeBytes(void* data, size_t bytes) override {
    std::free(data);
    absl::MutexLock lock(&mutex_);
    used_bytes_ -= static_cast<int64_t>(bytes);
  }

 private:
  static absl::Status NotDense() {
    return absl::InvalidArgumentError("only dense tensors can be copied between host and device");
  }
  absl::Status Exhausted(size_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return WithNeededMemory(
        absl::ResourceExhaustedError(absl::StrCat("device memory: ", bytes, " bytes asked for, ",
                                                  used_bytes_, " of ", memory_bytes_, " in use")),
        used_bytes_ + static_cast<int64_t>(bytes));
  }

  const int64_t memory_bytes_;
  ThreadPool threads_;
  mutable absl::Mutex mutex_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t high_water_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Device>> MakeCpuDevice(int threads, int64_t memory_bytes) {
  if (threads < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("threads: ", threads, " given; at least 1 is needed"));
  if (memory_bytes < 1)
    return absl::InvalidArgumentError(
        absl::StrCat("memory_bytes: ", memory_bytes, " given; at least 1 is needed"));
  // Each by its name, since Clang does not know the level's. The rest of the level came with these.
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") ||
      !__builtin_cpu_supports("bmi2"))
    return absl::FailedPreconditionError(
        "this processor lacks AVX2, FMA or another part of x86-64-v3, which the kernels are "
        "compiled for");
  return std::make_unique<CpuDevice>(threads, memory_bytes);
}

}  // namespace plumbline
