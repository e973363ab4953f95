#include "kernels/bench/cuda/loading_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <vector>

#include "common/status.h"
#include "kernels/cuda/cuda_device.h"

namespace plumbline {
namespace {

// The weights of a block of the released model: 641 million of bfloat16, in some matrices.
constexpr int kMatrices = 8;
constexpr size_t kMatrixBytes = size_t{160} << 20;
constexpr int kRuns = 5;
// What the stream does meanwhile: about as long as a block's forward at 38,912 rows.
constexpr int kBusyCalls = 120;

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

absl::StatusOr<double> Load(Device& device, const std::vector<uint8_t>& host) {
  std::vector<DeviceBuffer> loaded;
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < kMatrices; ++i) {
    PLUMBLINE_ASSIGN_OR_RETURN(DeviceBuffer buffer,
                               device.Upload(host.data() + i * kMatrixBytes, kMatrixBytes));
    loaded.push_back(std::move(buffer));
  }
  return SecondsSince(start);
}

}  // namespace

absl::Status RunLoadingBench() {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, MakeCudaDevice(0));
  const std::vector<uint8_t> host(kMatrices * kMatrixBytes, 1);
  const double gigabytes = static_cast<double>(host.size()) * 1e-9;
  constexpr int64_t kBusyRows = int64_t{1} << 15, kBusyWidth = int64_t{1} << 15;
  constexpr int64_t kBusyValues = kBusyRows * kBusyWidth;
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer from, device->Allocate(kBusyValues * 4));
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer to, device->Allocate(kBusyValues * 2));
  const auto make_busy = [&]() -> absl::Status {
    for (int i = 0; i < kBusyCalls; ++i) {
      PLUMBLINE_RETURN_IF_ERROR(device->Convert(
          device->Context(), Tensor::Dense(from.data(), DType::kF32, 1, kBusyRows, kBusyWidth),
          Tensor::Dense(to.data(), DType::kBF16, 1, kBusyRows, kBusyWidth)));
    }
    return absl::OkStatus();
  };
  std::vector<double> alone, busy, load_beside, both;
  for (int run = -1; run < kRuns; ++run) {
    PLUMBLINE_ASSIGN_OR_RETURN(const double load, Load(*device, host));
    PLUMBLINE_RETURN_IF_ERROR(device->Synchronize());
    Clock::time_point start = Clock::now();
    PLUMBLINE_RETURN_IF_ERROR(make_busy());
    PLUMBLINE_RETURN_IF_ERROR(device->Synchronize());
    const double work = SecondsSince(start);
    start = Clock::now();
    PLUMBLINE_RETURN_IF_ERROR(make_busy());
    PLUMBLINE_ASSIGN_OR_RETURN(const double beside, Load(*device, host));
    PLUMBLINE_RETURN_IF_ERROR(device->Synchronize());
    if (run < 0) continue;
    alone.push_back(load);
    busy.push_back(work);
    load_beside.push_back(beside);
    both.push_back(SecondsSince(start));
  }
  std::printf("loading a block's weights, %.2f GB: %.1f ms, %.1f GB/s\n", gigabytes,
              Median(alone) * 1e3, gigabytes / Median(alone));
  std::printf("beside work on the stream: %.1f ms, %.1f GB/s\n", Median(load_beside) * 1e3,
              gigabytes / Median(load_beside));
  std::printf("the work alone %.1f ms, both %.1f ms: %.2f of the longer one, %.2f of the sum\n",
              Median(busy) * 1e3, Median(both) * 1e3,
              Median(both) / std::max(Median(alone), Median(busy)),
              Median(both) / (Median(alone) + Median(busy)));
  return absl::OkStatus();
}

}  // namespace plumbline
