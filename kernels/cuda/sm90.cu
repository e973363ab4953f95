#include <cuda_runtime.h>

#include <array>
#include <atomic>

#include "kernels/cuda/sm90.h"

namespace plumbline::cuda {
namespace {

constexpr int kMostDevices = 64;

__global__ void Sm90Probe() {}

int CurrentDevice() {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess && device < kMostDevices ? device : -1;
}

int Attribute(cudaDeviceAttr attribute, int device) {
  int value = 0;
  if (cudaDeviceGetAttribute(&value, attribute, device) != cudaSuccess) cudaGetLastError();
  return value;
}

// The machine code of this file is sm_90a's alone: a driver that is told to compile everything
// itself (CUDA_FORCE_PTX_JIT) finds nothing.
bool Probe(int device) {
  if (Attribute(cudaDevAttrComputeCapabilityMajor, device) != 9 ||
      Attribute(cudaDevAttrComputeCapabilityMinor, device) != 0) {
    return false;
  }
  cudaFuncAttributes attributes;
  const bool found = cudaFuncGetAttributes(&attributes, Sm90Probe) == cudaSuccess;
  if (!found) cudaGetLastError();
  return found;
}

}  // namespace

bool RunsSm90Code() {
  static std::array<std::atomic<int>, kMostDevices> answers = {};  // 0: not asked yet
  const int device = CurrentDevice();
  if (device < 0) return false;
  int answer = answers[device].load();
  if (answer == 0) {
    answer = Probe(device) ? 1 : 2;
    answers[device].store(answer);
  }
  return answer == 1;
}

int MultiprocessorCount() {
  static std::array<std::atomic<int>, kMostDevices> counts = {};
  const int device = CurrentDevice();
  if (device < 0) return 1;
  int count = counts[device].load();
  if (count == 0) {
    count = Attribute(cudaDevAttrMultiProcessorCount, device);
    counts[device].store(count);
  }
  return count;
}

}  // namespace plumbline::cuda
