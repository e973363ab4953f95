#ifndef PLUMBLINE_WORKER_H3_ARENA_H_
#define PLUMBLINE_WORKER_H3_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/status.h"
#include "kernels/device.h"

namespace plumbline::h3 {

// Device memory that is laid out first and allocated once. Places reserved before and after a
// Restart() share bytes: each run of places between restarts begins at the arena's first byte.
class Arena {
 public:
  // Reserves the bytes of `*tensor`, whose shape is set, and remembers where its data pointer is.
  // The tensor must not move until Allocate() has set it.
  void Reserve(Tensor* tensor) { Reserve(&tensor->data, tensor->NumBytes()); }

  void Reserve(void** pointer, size_t bytes) {
    places_.emplace_back(pointer, used_);
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    size_ = std::max(size_, used_);
  }

  void Restart() { used_ = 0; }

  absl::Status Allocate(Device& device) {
    if (size_ == 0) return absl::OkStatus();
    PLUMBLINE_ASSIGN_OR_RETURN(buffer_, device.Allocate(size_));
    for (const auto& [pointer, offset] : places_) {
      *pointer = static_cast<char*>(buffer_.data()) + offset;
    }
    places_.clear();
    return absl::OkStatus();
  }

 private:
  // What cuBLAS looks for when it picks a kernel, and PyTorch's allocator gives.
  static constexpr size_t kAlignment = 256;

  std::vector<std::pair<void**, size_t>> places_;
  size_t used_ = 0;
  size_t size_ = 0;
  DeviceBuffer buffer_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_ARENA_H_
