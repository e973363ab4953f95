#include <cuda_runtime.h>

#include <algorithm>
#include <vector>

#include "common/status.h"
#include "kernels/bench/cuda/timing.h"
#include "kernels/cuda/cuda_status.h"

namespace plumbline {
namespace {

constexpr int kWarmUps = 2;
constexpr int kLeastRuns = 3;
constexpr int kMostRuns = 20;
constexpr float kBudgetMs = 400;

__global__ void CompareKernel(const uint32_t* a, const uint32_t* b, size_t words, int* differs) {
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < words;
       i += size_t{gridDim.x} * blockDim.x) {
    if (a[i] != b[i]) *differs = 1;
  }
}

}  // namespace

absl::StatusOr<Timing> TimeOnStream(cudaStream_t stream,
                                    const std::function<absl::Status(int run)>& enqueue) {
  cudaEvent_t begin, end;
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&begin), "event"));
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventCreate(&end), "event"));
  std::vector<float> times_ms;
  float spent_ms = 0;
  for (int run = 0; run < kWarmUps + kMostRuns; ++run) {
    if (run >= kWarmUps + kLeastRuns && spent_ms > kBudgetMs) break;
    cudaEventRecord(begin, stream);
    PLUMBLINE_RETURN_IF_ERROR(enqueue(run));
    cudaEventRecord(end, stream);
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(end), "bench"));
    float time_ms = 0;
    cudaEventElapsedTime(&time_ms, begin, end);
    spent_ms += time_ms;
    if (run >= kWarmUps) times_ms.push_back(time_ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(times_ms.begin(), times_ms.end());
  return Timing{times_ms[times_ms.size() / 2], times_ms.front(), times_ms.back()};
}

absl::StatusOr<bool> SameBytesOnDevice(cudaStream_t stream, const void* a, const void* b,
                                       size_t bytes) {
  int* differs = nullptr;
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaMalloc(&differs, sizeof(int)), "comparison"));
  cudaMemsetAsync(differs, 0, sizeof(int), stream);
  CompareKernel<<<1024, 256, 0, stream>>>(static_cast<const uint32_t*>(a),
                                          static_cast<const uint32_t*>(b), bytes / 4, differs);
  int result = 1;
  const absl::Status copied = CudaStatus(
      cudaMemcpyAsync(&result, differs, sizeof(int), cudaMemcpyDeviceToHost, stream), "comparison");
  const absl::Status done = CudaStatus(cudaStreamSynchronize(stream), "comparison");
  cudaFree(differs);
  if (!copied.ok()) return copied;
  if (!done.ok()) return done;
  return result == 0;
}

}  // namespace plumbline
