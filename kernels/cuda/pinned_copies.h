#ifndef PLUMBLINE_KERNELS_CUDA_PINNED_COPIES_H_
#define PLUMBLINE_KERNELS_CUDA_PINNED_COPIES_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"

namespace plumbline {

// Two pinned buffers that copies between a host's pageable memory and the current device alternate
// between. Calls must not overlap; they return when the copy is done.
class PinnedStaging {
 public:
  PinnedStaging() = default;
  PinnedStaging(const PinnedStaging&) = delete;
  PinnedStaging& operator=(const PinnedStaging&) = delete;
  ~PinnedStaging();

  // Before anything else, once.
  absl::Status Allocate(size_t bytes_each);

  absl::Status ToDevice(const void* host, void* device, size_t bytes, cudaStream_t stream);
  absl::Status ToHost(const void* device, void* host, size_t bytes, cudaStream_t stream);

 private:
  struct Half {
    void* host = nullptr;
    cudaEvent_t moved = nullptr;
  };

  static absl::Status Move(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                           const Half& half, cudaStream_t stream);

  size_t bytes_each_ = 0;
  Half halves_[2];
};

// Copies to the current device by several threads, each with buffers and a stream of its own: one
// processor copies less than the bus takes. Calls must not overlap.
class ParallelUpload {
 public:
  ParallelUpload() = default;
  ParallelUpload(const ParallelUpload&) = delete;
  ParallelUpload& operator=(const ParallelUpload&) = delete;
  ~ParallelUpload();

  // Before anything else, once. `ordinal` is the current device's.
  absl::Status Start(int ordinal);

  // Returns when the bytes are there. Nothing else uses `device` meanwhile.
  absl::Status Copy(const void* host, void* device, size_t bytes);

 private:
  struct Lane {
    cudaStream_t stream = nullptr;
    PinnedStaging staging;
  };

  int ordinal_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CUDA_PINNED_COPIES_H_
