// The guards' memory operations on a GPU. A search is one kernel that leaves the smallest index of
// what it looks for; all searches of a call are waited for once.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "common/status.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/plugin/guard_memory.h"

namespace plumbline::plugin {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1024;

__device__ bool IsFound(Search::Kind kind, const uint8_t* element, const uint8_t* other,
                        int64_t element_bytes, uint8_t byte) {
  if (kind == Search::Kind::kAllOnes) {
    for (int64_t i = 0; i < element_bytes; ++i) {
      if (element[i] != 0xFF) return false;
    }
    return true;
  }
  for (int64_t i = 0; i < element_bytes; ++i) {
    if (element[i] != (kind == Search::Kind::kNotByte ? byte : other[i])) return true;
  }
  return false;
}

// Two-byte elements, the commonest, are read at once.
__device__ bool IsFoundInPair(Search::Kind kind, uint16_t element, const uint8_t* other,
                              uint8_t byte) {
  if (kind == Search::Kind::kAllOnes) return element == 0xFFFF;
  const uint16_t expected = kind == Search::Kind::kNotByte
                                ? static_cast<uint16_t>(byte * 0x0101)
                                : *reinterpret_cast<const uint16_t*>(other);
  return element != expected;
}

__global__ void SearchRegion(Search search, unsigned long long* first) {
  const Region& region = search.region;
  const uint8_t* const data = static_cast<const uint8_t*>(region.data);
  const uint8_t* const other = static_cast<const uint8_t*>(search.other.data);
  const int64_t count = region.rows * region.width;
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const int64_t row = i / region.width;
    const int64_t column = i % region.width;
    const uint8_t* const element = data + (row * region.stride + column) * region.element_bytes;
    const uint8_t* const to =
        other == nullptr ? nullptr
                         : other + (row * search.other.stride + column) * region.element_bytes;
    const bool found = region.element_bytes == 2
                           ? IsFoundInPair(search.kind, *reinterpret_cast<const uint16_t*>(element),
                                           to, search.byte)
                           : IsFound(search.kind, element, to, region.element_bytes, search.byte);
    if (found) atomicMin(first, static_cast<unsigned long long>(i));
  }
}

class OnCuda final : public GuardMemory {
 public:
  absl::Status Fill(const ExecutionContext& context, void* data, uint8_t byte,
                    size_t bytes) const override {
    return CudaStatus(cudaMemsetAsync(data, byte, bytes, Stream(context)), "guard");
  }

  absl::Status Copy(const ExecutionContext& context, const Region& from,
                    const Region& to) const override {
    if (from.rows * from.width == 0) return absl::OkStatus();
    // A single row has no stride that matters.
    const auto pitch = [](const Region& region) {
      return static_cast<size_t>(std::max(region.stride, region.width) * region.element_bytes);
    };
    return CudaStatus(cudaMemcpy2DAsync(to.data, pitch(to), from.data, pitch(from),
                                        static_cast<size_t>(from.width * from.element_bytes),
                                        static_cast<size_t>(from.rows), cudaMemcpyDeviceToDevice,
                                        Stream(context)),
                      "guard");
  }

  absl::StatusOr<std::vector<int64_t>> Find(const ExecutionContext& context,
                                            absl::Span<const Search> searches,
                                            void* scratch) const override {
    const cudaStream_t stream = Stream(context);
    auto* const first = static_cast<unsigned long long*>(scratch);
    std::vector<int64_t> found(searches.size(), -1);
    // What the plug-in enqueued goes wrong here, not in what the guards enqueue behind it.
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream), "what it enqueued"));
    if (searches.empty()) return found;
    // All ones: the largest index there is, and -1 on the host.
    PLUMBLINE_RETURN_IF_ERROR(
        Fill(context, scratch, 0xFF, searches.size() * sizeof(unsigned long long)));
    for (size_t i = 0; i < searches.size(); ++i) {
      const int64_t count = searches[i].region.rows * searches[i].region.width;
      if (count == 0) continue;
      const int64_t blocks = std::min(kMaxBlocks, (count + kThreads - 1) / kThreads);
      SearchRegion<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(searches[i], first + i);
      PLUMBLINE_RETURN_IF_ERROR(LaunchStatus("guard"));
    }
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaMemcpyAsync(found.data(), scratch, found.size() * sizeof(int64_t),
                                   cudaMemcpyDeviceToHost, stream),
                   "guard"));
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaStreamSynchronize(stream), "guard"));
    return found;
  }

 private:
  static cudaStream_t Stream(const ExecutionContext& context) {
    return static_cast<cudaStream_t>(context.stream);
  }
};

}  // namespace

const GuardMemory& CudaGuardMemory() {
  static const OnCuda* const memory = new OnCuda;
  return *memory;
}

int CudaComputeCapability(const ExecutionContext&) {
  // A device's context makes it the thread's current one.
  int ordinal = 0, major = 0, minor = 0;
  cudaGetDevice(&ordinal);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ordinal);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, ordinal);
  return 10 * major + minor;
}

}  // namespace plumbline::plugin
