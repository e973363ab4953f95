// The CUDA device: accounting, copies, conversion, and what it says where there is no GPU.
#include "kernels/cuda/cuda_device.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/cuda/cuda_case.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/testing/bitwise.h"

namespace plumbline {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

TEST(CudaDevice, SaysWhereThereIsNone) {
  const absl::Status status = MakeCudaDevice(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("no CUDA device"));
}

TEST(CudaDevice, NamesItsClassAndMemory) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const Device& device = *CudaDeviceForTest();
  EXPECT_EQ(device.kind(), DeviceKind::kCuda);
  EXPECT_THAT(device.DeviceClass(), HasSubstr(" multiprocessors"));
  EXPECT_GT(device.MemoryBytes(), int64_t{1} << 30);
}

TEST(CudaDevice, HasAUuid) {
  EXPECT_EQ(CudaDeviceUuid(1000).status().code(), absl::StatusCode::kNotFound);
  PLUMBLINE_SKIP_WITHOUT_GPU();
  EXPECT_THAT(CudaDeviceUuid(0).value(),
              MatchesRegex("GPU-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"));
}

TEST(CudaDevice, CountsMemory) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  const std::unique_ptr<Device> device = MakeCudaDevice(0).value();
  EXPECT_EQ(device->HighWaterBytes(), 0);
  {
    const DeviceBuffer first = device->Allocate(1000).value();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first.data()) % 64, 0);
    const DeviceBuffer second = device->Allocate(3000).value();
    EXPECT_EQ(device->HighWaterBytes(), 4000);
  }
  EXPECT_EQ(device->HighWaterBytes(), 4000);
  device->ResetHighWater();
  EXPECT_EQ(device->HighWaterBytes(), 0);
  EXPECT_TRUE(device->Allocate(0).ok());
}

TEST(CudaDevice, SaysHowMuchMemoryThereIs) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  const size_t bytes = static_cast<size_t>(device.MemoryBytes()) * 2;
  const absl::Status status = device.Allocate(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(bytes)));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(device.MemoryBytes())));
  EXPECT_GE(GetNeededMemory(status), static_cast<int64_t>(bytes));
  // The refusal leaves nothing behind that a later launch would report.
  EXPECT_TRUE(device.Allocate(1 << 20).ok());
}

// Somebody else's memory is no reason to look for a larger device.
TEST(CudaDevice, SaysThatOthersHoldTheMemory) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  constexpr size_t kAsked = size_t{1} << 30;
  const std::unique_ptr<Device> device = MakeCudaDevice(0).value();
  // Piece by piece, since what other pools keep and do not use is given up for it.
  std::vector<void*> others;
  for (size_t piece = static_cast<size_t>(device->MemoryBytes()); piece > kAsked / 16;) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, piece) == cudaSuccess) {
      others.push_back(memory);
    } else {
      cudaGetLastError();
      piece /= 2;
    }
  }
  const absl::Status status = device->Allocate(kAsked).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("other processes hold the rest"));
  EXPECT_EQ(GetNeededMemory(status), 0);
  for (void* const memory : others) cudaFree(memory);
  EXPECT_TRUE(device->Allocate(kAsked).ok());
}

TEST(CudaDevice, UploadsBesideTheStream) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  std::mt19937 random(5);
  constexpr int64_t kBytes = (int64_t{50} << 20) + 77;
  std::vector<uint8_t> sent(kBytes), received(kBytes);
  for (uint8_t& byte : sent) byte = static_cast<uint8_t>(random());
  // Memory that calls of the stream may still use is handed out behind them.
  for (int turn = 0; turn < 4; ++turn) {
    const DeviceBuffer used = device.Allocate(kBytes).value();
    const Tensor values = Tensor::Dense(used.data(), DType::kF32, 1, 1, kBytes / 4);
    ASSERT_TRUE(device.FillSynthetic("busy", 1, {1, 0}, values).ok());
  }
  const DeviceBuffer buffer = device.Upload(sent.data(), sent.size()).value();
  const Tensor tensor = Tensor::Dense(buffer.data(), DType::kU8, 1, 1, kBytes);
  ASSERT_TRUE(device.CopyToHost(tensor, received.data()).ok());
  EXPECT_TRUE(sent == received);
}

TEST(CudaDevice, RecordsWhatIsEnqueued) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  ASSERT_TRUE(device.CanRecord());
  const DeviceBuffer from = device.Allocate(16).value();
  const DeviceBuffer to = device.Allocate(16).value();
  const Tensor source = Tensor::Dense(from.data(), DType::kF32, 1, 1, 4);
  const Tensor target = Tensor::Dense(to.data(), DType::kF32, 1, 1, 4);
  const std::vector<float> first = {1, 2, 3, 4}, second = {5, 6, 7, 8};
  ASSERT_TRUE(device.CopyToDevice(first.data(), source).ok());
  ASSERT_TRUE(device.CopyToDevice(second.data(), target).ok());
  const std::unique_ptr<RecordedWork> record =
      device.Record([&] { return device.Convert(device.Context(), source, target); }).value();
  std::vector<float> found(4);
  ASSERT_TRUE(device.CopyToHost(target, found.data()).ok());
  EXPECT_EQ(found, second) << "recording ran it";
  ASSERT_TRUE(record->Enqueue().ok());
  ASSERT_TRUE(device.CopyToHost(target, found.data()).ok());
  EXPECT_EQ(found, first);
  // What the memory holds is read anew each time.
  ASSERT_TRUE(device.CopyToDevice(second.data(), source).ok());
  ASSERT_TRUE(record->Enqueue().ok());
  ASSERT_TRUE(device.CopyToHost(target, found.data()).ok());
  EXPECT_EQ(found, second);
  EXPECT_EQ(device.Record([] { return absl::InternalError("no"); }).status().code(),
            absl::StatusCode::kInternal);
  EXPECT_TRUE(device.Synchronize().ok());
}

TEST(CudaDevice, CopiesAnyNumberOfBytes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  std::mt19937 random(3);
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{4097}, (int64_t{16} << 20),
                              (int64_t{16} << 20) + 1, (int64_t{70} << 20) + 12345}) {
    std::vector<uint8_t> sent(bytes), received(bytes);
    for (int64_t i = 0; i < bytes; i += 61) sent[i] = static_cast<uint8_t>(random());
    const DeviceBuffer buffer = device.Allocate(bytes).value();
    const Tensor tensor = Tensor::Dense(buffer.data(), DType::kU8, 1, 1, bytes);
    ASSERT_TRUE(device.CopyToDevice(sent.data(), tensor).ok());
    ASSERT_TRUE(device.CopyToHost(tensor, received.data()).ok());
    EXPECT_TRUE(sent == received) << bytes << " bytes";
  }
  Tensor strided = Tensor::Dense(nullptr, DType::kF32, 1, 2, 2);
  strided.row_stride = 3;
  EXPECT_EQ(device.CopyToDevice(nullptr, strided).code(), absl::StatusCode::kInvalidArgument);
}

// Values of every kind: any bits that are no NaN (whose bits a GPU may choose), ties, subnormals.
void Fill(const Tensor& tensor, std::mt19937_64& random) {
  for (int64_t item = 0; item < tensor.batch; ++item) {
    for (int64_t row = 0; row < tensor.rows; ++row) {
      for (int64_t i = 0; i < tensor.width; ++i) {
        const uint64_t bits = random();
        switch (tensor.dtype) {
          case DType::kBF16: {
            const uint16_t half = static_cast<uint16_t>(bits);
            tensor.Row<uint16_t>(row, item)[i] = (half & 0x7F80) == 0x7F80 ? half & 0xFF80 : half;
            break;
          }
          case DType::kF32: {
            uint32_t word = static_cast<uint32_t>(bits);
            if (bits >> 62 == 0) word &= 0xFFFF8000;  // often a tie
            if ((word & 0x7F800000) == 0x7F800000) word &= 0xFF800000;
            tensor.Row<uint32_t>(row, item)[i] = word;
            break;
          }
          default: {
            // Around float's and bfloat16's ties and ranges.
            const double value = static_cast<double>(static_cast<int64_t>(bits) >> 20);
            const int exponent = static_cast<int>(bits % 300) - 200;
            double scaled = std::ldexp(value, exponent);
            if (bits >> 61 == 0) {
              scaled = WidenBf16(RoundToBf16(static_cast<float>(scaled))) * (1 + 0x1p-8);
              if (bits >> 60 & 1) scaled *= 1 + 0x1p-50;
            }
            tensor.Row<double>(row, item)[i] = scaled;
          }
        }
      }
    }
  }
}

TEST(CudaDevice, ConvertsAsTheCpuDoes) {
  PLUMBLINE_SKIP_WITHOUT_GPU();
  Device& device = *CudaDeviceForTest();
  ThreadPool threads(2);
  std::mt19937_64 random(5);
  constexpr DType kTypes[] = {DType::kBF16, DType::kF32, DType::kF64};
  for (const DType from_type : kTypes) {
    for (const DType to_type : kTypes) {
      for (const auto& [rows, width] :
           std::vector<std::pair<int64_t, int64_t>>{{5, 64}, {7, 33}, {1, 1}, {300, 1024}}) {
        for (const int64_t from_batch : {1, 3}) {
          // Columns of a wider array on both sides.
          const HostTensor from(from_type, from_batch, rows, width + 16);
          Fill(from.view(), random);
          const Tensor source = from.view().Columns(8, width);
          const HostTensor expected(to_type, 3, rows, width);
          ASSERT_TRUE(ConvertTensor(source, expected.view(), threads).ok());
          const CudaTensor on_device = CudaTensor::Upload(device, source).value();
          const CudaTensor to = CudaTensor::Poisoned(device, expected.view()).value();
          ASSERT_TRUE(device.Convert(device.Context(), on_device.view(), to.view()).ok());
          const HostTensor actual = to.Download(device).value();
          EXPECT_TRUE(BitwiseEqual(expected.view(), actual.view()))
              << DTypeName(from_type) << " to " << DTypeName(to_type) << ", " << rows << " x "
              << width;
        }
      }
    }
  }
  const Tensor integers = Tensor::Dense(nullptr, DType::kI64, 1, 2, 2);
  const Tensor floats = Tensor::Dense(nullptr, DType::kF32, 1, 2, 2);
  EXPECT_EQ(device.Convert(device.Context(), integers, floats).code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace plumbline
