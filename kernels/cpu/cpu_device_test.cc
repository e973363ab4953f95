#include <cstdint>
#include <memory>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/device.h"
#include "kernels/numerics/bfloat16.h"

namespace plumbline {
namespace {

TEST(CpuDevice, CountsMemoryAndRefusesMoreThanThereIs) {
  auto device = MakeCpuDevice(2, 1000);
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ((*device)->MemoryBytes(), 1000);
  {
    absl::StatusOr<DeviceBuffer> first = (*device)->Allocate(600);
    ASSERT_TRUE(first.ok()) << first.status();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first->data()) % 64, 0u);
    const absl::StatusOr<DeviceBuffer> second = (*device)->Allocate(401);
    EXPECT_EQ(second.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(second.status().message(), "device memory: 401 bytes asked for, 600 of 1000 in use");
    EXPECT_TRUE((*device)->Allocate(400).ok());
    // Moving a buffer moves what it owns.
    *first = *(*device)->Allocate(10);
  }
  EXPECT_EQ((*device)->HighWaterBytes(), 1000);
  (*device)->ResetHighWater();
  EXPECT_EQ((*device)->HighWaterBytes(), 0);
  EXPECT_EQ((*device)->Allocate(SIZE_MAX).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE((*device)->Allocate(1000).ok());
}

TEST(CpuDevice, RefusesNoThreadsAndNoMemory) {
  EXPECT_EQ(MakeCpuDevice(0, 1000).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MakeCpuDevice(1, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CpuDevice, ConvertsStridedViewsAndSpreadsABatch) {
  auto device = MakeCpuDevice(2, 1000);
  ASSERT_TRUE(device.ok()) << device.status();
  const std::vector<float> table = {1, 2, 3, 4, 5, 6.01f};
  // Columns 1 and 2 of both rows, into both items of a batch of two.
  const Tensor from =
      Tensor::Dense(const_cast<float*>(table.data()), DType::kF32, 1, 2, 3).Columns(1, 2);
  std::vector<bfloat16> rounded(8);
  const Tensor to = Tensor::Dense(rounded.data(), DType::kBF16, 2, 2, 2);
  ASSERT_TRUE((*device)->Convert((*device)->Context(), from, to).ok());
  const std::vector<float> expected = {2, 3, 5, 6, 2, 3, 5, 6};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(WidenBf16(rounded[i]), expected[i]);

  std::vector<int64_t> indices(8);
  const Tensor integers = Tensor::Dense(indices.data(), DType::kI64, 2, 2, 2);
  EXPECT_EQ((*device)->Convert((*device)->Context(), to, integers).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ((*device)->Convert((*device)->Context(), from, from.Columns(0, 1)).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline
