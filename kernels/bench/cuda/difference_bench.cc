#include "kernels/bench/cuda/difference_bench.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/cuda_status.h"

namespace plumbline {
namespace {

// The gradients of a block of the released model: 2.6 GB of float32.
constexpr int64_t kValues = int64_t{641} * 1000 * 1000;
constexpr int kRuns = 5;

// The median of `work`'s seconds.
template <typename Work>
absl::StatusOr<double> MedianSeconds(Device& device, const Work& work) {
  std::vector<float> times_ms;
  cudaEvent_t begin, end;
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&begin), "event"));
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&end), "event"));
  const cudaStream_t stream = static_cast<cudaStream_t>(device.Context().stream);
  for (int run = -1; run < kRuns; ++run) {
    cudaEventRecord(begin, stream);
    PLUMBLINE_RETURN_IF_ERROR(work(stream));
    cudaEventRecord(end, stream);
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end), "bench"));
    float time_ms = 0;
    cudaEventElapsedTime(&time_ms, begin, end);
    if (run >= 0) times_ms.push_back(time_ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times_ms.begin(), times_ms.end());
  return times_ms[times_ms.size() / 2] * 1e-3;
}

}  // namespace

absl::Status RunDifferenceBench() {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, MakeCudaDevice(0));
  const size_t bytes = kValues * sizeof(float);
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer reference_memory, device->Allocate(bytes));
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer x_memory, device->Allocate(bytes));
  PLUMBLINE_ASSIGN_OR_RETURN(const DeviceBuffer rounded_memory, device->Allocate(bytes / 2));
  const Tensor reference = Tensor::Dense(reference_memory.data(), DType::kF32, 1, 1, kValues);
  const Tensor x = Tensor::Dense(x_memory.data(), DType::kF32, 1, 1, kValues);
  const Tensor rounded = Tensor::Dense(rounded_memory.data(), DType::kBF16, 1, 1, kValues);
  PLUMBLINE_RETURN_IF_ERROR(device->FillSynthetic("reference", 1, {1, 0}, reference));
  PLUMBLINE_RETURN_IF_ERROR(device->Convert(device->Context(), reference, rounded));
  PLUMBLINE_RETURN_IF_ERROR(device->Convert(device->Context(), rounded, x));

  PLUMBLINE_ASSIGN_OR_RETURN(
      const double copy_seconds, MedianSeconds(*device, [&](cudaStream_t stream) {
        return CudaStatus(cudaMemcpyAsync(x_memory.data(), reference_memory.data(), bytes,
                                          cudaMemcpyDeviceToDevice, stream),
                          "bench");
      }));
  PLUMBLINE_RETURN_IF_ERROR(device->Convert(device->Context(), rounded, x));
  const double copy_rate = 2.0 * static_cast<double>(bytes) / copy_seconds;
  std::printf("copy of %.1f GB: %.2f ms, %.0f GB/s read and written\n", bytes * 1e-9,
              copy_seconds * 1e3, copy_rate * 1e-9);
  const auto compare = [&](const Tensor& tensor, absl::Span<const int64_t> ranks,
                           const char* what) -> absl::Status {
    PLUMBLINE_ASSIGN_OR_RETURN(const double seconds, MedianSeconds(*device, [&](cudaStream_t) {
                                 return device->Difference(reference, tensor, ranks).status();
                               }));
    const double read = static_cast<double>(bytes + tensor.NumBytes());
    std::printf("%s: %.2f ms, %.0f GB/s read, %.2f of the time of a copy of as many bytes\n", what,
                seconds * 1e3, read / seconds * 1e-9, seconds * copy_rate / (2 * read));
    return absl::OkStatus();
  };
  const std::vector<int64_t> ranks = {
      kValues / 2,        kValues / 2 + 1,        kValues / 10 * 9,     kValues / 10 * 9 + 1,
      kValues / 100 * 99, kValues / 100 * 99 + 1, kValues / 1000 * 999, kValues / 1000 * 999 + 1};
  PLUMBLINE_RETURN_IF_ERROR(compare(x, {}, "float32 with float32, sums"));
  PLUMBLINE_RETURN_IF_ERROR(compare(rounded, {}, "float32 with bfloat16, sums"));
  PLUMBLINE_RETURN_IF_ERROR(compare(rounded, ranks, "float32 with bfloat16, sums and percentiles"));
  return compare(x, ranks, "float32 with float32, sums and percentiles");
}

}  // namespace plumbline
