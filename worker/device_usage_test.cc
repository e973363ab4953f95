#include "worker/device_usage.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "common/clock_fake.h"

namespace plumbline::worker {
namespace {

constexpr char kFakeNvml[] = "worker/fake_nvml.so";

// A GPU as far as its use is asked for.
class Gpu final : public Device {
 public:
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  std::string DeviceClass() const override { return "GPU"; }
  int64_t MemoryBytes() const override { return 1000; }
  int64_t HighWaterBytes() const override { return 123; }
  void ResetHighWater() override {}
  absl::Status CopyToDevice(const void*, const Tensor&) override { return absl::OkStatus(); }
  absl::Status CopyToHost(const Tensor&, void*) override { return absl::OkStatus(); }
  absl::Status Convert(const ExecutionContext&, const Tensor&, const Tensor&) override {
    return absl::OkStatus();
  }
  ExecutionContext Context() override { return {}; }

 private:
  absl::StatusOr<void*> AllocateBytes(size_t) override { return absl::UnimplementedError(""); }
  void FreeBytes(void*, size_t) override {}
};

WorkerDevice GpuAt(std::string pci_bus_id) {
  WorkerDevice device;
  device.device = std::make_unique<Gpu>();
  device.pci_bus_id = std::move(pci_bus_id);
  return device;
}

TEST(DeviceUsageTest, OfAGpuIsWhatTheDriverSays) {
  FakeClock clock;
  const WorkerDevice gpu = GpuAt("00000000:41:00.0");
  DeviceUsageMeter meter(gpu, &clock, kFakeNvml);
  const v1::DeviceUsage usage = meter.Measure();
  EXPECT_EQ(usage.memory_bytes(), 600);
  EXPECT_EQ(usage.utilisation(), 0.75);
}

TEST(DeviceUsageTest, OfAGpuThatTheDriverDoesNotTellOfIsWhatThisProcessKnows) {
  FakeClock clock;
  const WorkerDevice known = GpuAt("00000000:41:00.0");
  const WorkerDevice other = GpuAt("00000000:42:00.0");
  DeviceUsageMeter meters[] = {{other, &clock, kFakeNvml}, {known, &clock, "no-such.so"}};
  for (DeviceUsageMeter& meter : meters) {
    const v1::DeviceUsage usage = meter.Measure();
    EXPECT_EQ(usage.memory_bytes(), 123);
    EXPECT_FALSE(usage.has_utilisation());
  }
}

TEST(DeviceUsageTest, OfACpuIsWhatThisProcessHasOfIt) {
  FakeClock clock;
  const auto cpu = MakeWorkerDevice({"cpu", 2, 1 << 20});
  ASSERT_TRUE(cpu.ok()) << cpu.status();
  DeviceUsageMeter meter(*cpu, &clock);
  const v1::DeviceUsage first = meter.Measure();
  EXPECT_GT(first.memory_bytes(), 100'000);
  EXPECT_FALSE(first.has_utilisation());
  // Busy for some of a time in which two threads could have been busy.
  volatile double sum = 0;
  for (int i = 0; i < 20'000'000; ++i) sum = sum + i;
  clock.Advance(absl::Seconds(1000));
  const v1::DeviceUsage second = meter.Measure();
  ASSERT_TRUE(second.has_utilisation());
  EXPECT_GT(second.utilisation(), 0);
  EXPECT_LT(second.utilisation(), 0.5);
}

}  // namespace
}  // namespace plumbline::worker
