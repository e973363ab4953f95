#include "worker/h3/planned_memory.h"

#include <memory>
#include <string>
#include <utility>

#include "common/status.h"

namespace plumbline::h3 {
namespace {

// Another device with memory without end, of which nobody may use a byte.
class CountingDevice final : public Device {
 public:
  explicit CountingDevice(Device& device) : device_(device) {}

  DeviceKind kind() const override { return device_.kind(); }
  std::string DeviceClass() const override { return device_.DeviceClass(); }
  int64_t MemoryBytes() const override { return device_.MemoryBytes(); }
  int64_t HighWaterBytes() const override { return used_bytes_; }
  void ResetHighWater() override {}
  absl::Status CopyToDevice(const void*, const Tensor&) override { return NoMemory(); }
  absl::Status CopyToHost(const Tensor&, void*) override { return NoMemory(); }
  absl::Status Convert(const ExecutionContext&, const Tensor&, const Tensor&) override {
    return NoMemory();
  }
  // The real device's, since scratch may depend on it.
  ExecutionContext Context() override { return device_.Context(); }

 protected:
  absl::StatusOr<void*> AllocateBytes(size_t bytes) override {
    // A place of its own that is as aligned as a real one.
    constexpr uintptr_t kAlignment = 256;
    void* const place = reinterpret_cast<void*>(next_);
    next_ += (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    used_bytes_ += static_cast<int64_t>(bytes);
    return place;
  }
  void FreeBytes(void*, size_t) override {}

 private:
  static absl::Status NoMemory() {
    return absl::InternalError("a plan that is only measured has no memory");
  }

  Device& device_;
  uintptr_t next_ = 1 << 20;
  int64_t used_bytes_ = 0;
};

}  // namespace

absl::StatusOr<int64_t> PlannedBytes(const Graph& graph, const ResolvedComposition& composition,
                                     const Registry& registry, const DeviceWeights& weights,
                                     Device& device, const TapSink* sink, PlanOptions options) {
  CountingDevice counting(device);
  PLUMBLINE_RETURN_IF_ERROR(
      MakePlan(graph, composition, registry, weights, counting, sink, std::move(options)).status());
  return counting.HighWaterBytes();
}

}  // namespace plumbline::h3
