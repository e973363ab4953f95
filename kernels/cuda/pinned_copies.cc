#include "kernels/cuda/pinned_copies.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "common/status.h"
#include "kernels/cuda/cuda_status.h"

namespace plumbline {
namespace {

constexpr char kCopy[] = "copy between host and device";
// More threads gain nothing where the memory's rate is the limit.
constexpr size_t kMostLanes = 8;
constexpr size_t kLaneBytes = size_t{4} << 20;
// A thread of its own is worth its start.
constexpr size_t kLeastBytesOfALane = size_t{8} << 20;

}  // namespace

PinnedStaging::~PinnedStaging() {
  for (Half& half : halves_) {
    if (half.moved != nullptr) cudaEventDestroy(half.moved);
    if (half.host != nullptr) cudaFreeHost(half.host);
  }
}

absl::Status PinnedStaging::Allocate(size_t bytes_each) {
  bytes_each_ = bytes_each;
  for (Half& half : halves_) {
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaMallocHost(&half.host, bytes_each), "pinned memory for copies"));
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaEventCreateWithFlags(&half.moved, cudaEventDisableTiming), "event"));
  }
  return absl::OkStatus();
}

absl::Status PinnedStaging::ToDevice(const void* host, void* device, size_t bytes,
                                     cudaStream_t stream) {
  for (size_t done = 0, turn = 0; done < bytes; done += bytes_each_, ++turn) {
    Half& half = halves_[turn % 2];
    const size_t count = std::min(bytes_each_, bytes - done);
    PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaEventSynchronize(half.moved), kCopy));
    std::memcpy(half.host, static_cast<const char*>(host) + done, count);
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
    const size_t count = std::min(bytes_each_, bytes - unpacked);
    std::memcpy(static_cast<char*>(host) + unpacked, half.host, count);
    unpacked += count;
    return absl::OkStatus();
  };
  size_t turn = 0;
  for (size_t done = 0; done < bytes; done += bytes_each_, ++turn) {
    Half& half = halves_[turn % 2];
    PLUMBLINE_RETURN_IF_ERROR(Move(half.host, static_cast<const char*>(device) + done,
                                   std::min(bytes_each_, bytes - done), cudaMemcpyDeviceToHost,
                                   half, stream));
    if (turn > 0) PLUMBLINE_RETURN_IF_ERROR(unpack(turn - 1));
  }
  return turn > 0 ? unpack(turn - 1) : absl::OkStatus();
}

absl::Status PinnedStaging::Move(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                 const Half& half, cudaStream_t stream) {
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(cudaMemcpyAsync(to, from, bytes, kind, stream), kCopy));
  return CudaStatus(cudaEventRecord(half.moved, stream), kCopy);
}

ParallelUpload::~ParallelUpload() {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    if (lane->stream == nullptr) continue;
    cudaStreamSynchronize(lane->stream);
    cudaStreamDestroy(lane->stream);
  }
}

absl::Status ParallelUpload::Start(int ordinal) {
  ordinal_ = ordinal;
  const size_t processors = std::max(1U, std::thread::hardware_concurrency());
  lanes_.resize(std::min(kMostLanes, processors));
  for (std::unique_ptr<Lane>& lane : lanes_) {
    lane = std::make_unique<Lane>();
    PLUMBLINE_RETURN_IF_ERROR(
        CudaStatus(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking), "stream"));
    PLUMBLINE_RETURN_IF_ERROR(lane->staging.Allocate(kLaneBytes));
  }
  return absl::OkStatus();
}

absl::Status ParallelUpload::Copy(const void* host, void* device, size_t bytes) {
  const size_t parts = std::clamp<size_t>(bytes / kLeastBytesOfALane, 1, lanes_.size());
  std::vector<absl::Status> copied(parts);
  const auto copy = [&](size_t part) {
    const size_t begin = bytes / parts * part;
    const size_t end = part + 1 == parts ? bytes : bytes / parts * (part + 1);
    Lane& lane = *lanes_[part];
    copied[part] = CudaStatus(cudaSetDevice(ordinal_), "device");
    if (!copied[part].ok()) return;
    copied[part] =
        lane.staging.ToDevice(static_cast<const char*>(host) + begin,
                              static_cast<char*>(device) + begin, end - begin, lane.stream);
  };
  std::vector<std::thread> threads;
  for (size_t part = 1; part < parts; ++part) threads.emplace_back(copy, part);
  copy(0);
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : copied) PLUMBLINE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace plumbline
