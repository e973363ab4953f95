#include "kernels/cuda/pinned_staging.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "common/status.h"
#include "kernels/cuda/cuda_status.h"

namespace plumbline {
namespace {

constexpr size_t kHalfBytes = size_t{16} << 20;
constexpr int64_t kBytesAThread = int64_t{2} << 20;
constexpr int kThreads = 4;
constexpr char kCopy[] = "copy between host and device";

}  // namespace

PinnedStaging::PinnedStaging() : threads_(kThreads) {}

PinnedStaging::~PinnedStaging() {
  for (Half& half : halves_) {
    if (half.moved != nullptr) cudaEventDestroy(half.moved);
    if (half.host != nullptr) cudaFreeHost(half.host);
  }
}

absl::Status PinnedStaging::Allocate() {
  for (Half& half : halves_) {
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaMallocHost(&half.host, kHalfBytes), "pinned memory for copies"));
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaEventCreateWithFlags(&half.moved, cudaEventDisableTiming), "event"));
  }
  return absl::OkStatus();
}

absl::Status PinnedStaging::ToDevice(const void* host, void* device, size_t bytes,
                                     cudaStream_t stream) {
  for (size_t done = 0, turn = 0; done < bytes; done += kHalfBytes, ++turn) {
    Half& half = halves_[turn % 2];
    const size_t count = std::min(kHalfBytes, bytes - done);
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(half.moved), kCopy));
    CopyOnHost(half.host, static_cast<const char*>(host) + done, count);
    PLUMBLINE_RETURN_IF_ERROR(Move(static_cast<char*>(device) + done, half.host, count,
                                   cudaMemcpyHostToDevice, half, stream));
  }
  return CudaStatus(cudaStreamSynchronize(stream), kCopy);
}

absl::Status PinnedStaging::ToHost(const void* device, void* host, size_t bytes,
                                   cudaStream_t stream) {
  // A part is unpacked while the next one moves.
  size_t unpacked = 0;
  const auto unpack = [&](size_t turn) {
    const Half& half = halves_[turn % 2];
    const absl::Status moved = CudaStatus(cudaEventSynchronize(half.moved), kCopy);
    if (!moved.ok()) return moved;
    const size_t count = std::min(kHalfBytes, bytes - unpacked);
    CopyOnHost(static_cast<char*>(host) + unpacked, half.host, count);
    unpacked += count;
    return absl::OkStatus();
  };
  size_t turn = 0;
  for (size_t done = 0; done < bytes; done += kHalfBytes, ++turn) {
    Half& half = halves_[turn % 2];
    PLUMBLINE_RETURN_IF_ERROR(Move(half.host, static_cast<const char*>(device) + done,
                                   std::min(kHalfBytes, bytes - done), cudaMemcpyDeviceToHost, half,
                                   stream));
    if (turn > 0) PLUMBLINE_RETURN_IF_ERROR(unpack(turn - 1));
  }
  return turn > 0 ? unpack(turn - 1) : absl::OkStatus();
}

absl::Status PinnedStaging::Move(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                 const Half& half, cudaStream_t stream) {
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, stream), kCopy));
  return CudaStatus(cudaEventRecord(half.moved, stream), kCopy);
}

void PinnedStaging::CopyOnHost(void* to, const void* from, size_t bytes) {
  threads_.ParallelFor(
      0, static_cast<int64_t>(bytes), kBytesAThread, [&](int64_t first, int64_t last) {
        std::memcpy(static_cast<char*>(to) + first, static_cast<const char*>(from) + first,
                    static_cast<size_t>(last - first));
      });
}

}  // namespace plumbline
