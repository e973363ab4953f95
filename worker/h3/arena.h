#ifndef PLUMBLINE_WORKER_H3_ARENA_H_
#define PLUMBLINE_WORKER_H3_ARENA_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/status.h"
#include "kernels/device.h"

namespace plumbline::h3 {

// Device memory that is laid out first and allocated once. A place shares bytes with those that
// were released before it was reserved; a Restart() releases all.
class Arena {
 public:
  // Reserves the bytes of `*tensor`, whose shape is set, and remembers where its data pointer is.
  // The tensor must not move until Allocate() has set it.
  void Reserve(Tensor* tensor) { Reserve(&tensor->data, tensor->NumBytes()); }

  // The lowest place that is free and large enough.
  void Reserve(void** pointer, size_t bytes) {
    const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    size_t begin = 0;
    for (const auto& [place, reserved] : reserved_) {
      if (place - begin >= size) break;
      begin = reserved.end;
    }
    places_.emplace_back(pointer, begin);
    if (size > 0) reserved_[begin] = {begin + size, pointer};
    size_ = std::max(size_, begin + size);
  }

  // From now on what is reserved may lie where `*tensor` does. Nothing if it has no place here.
  void Release(const Tensor* tensor) {
    const auto place = std::find_if(reserved_.begin(), reserved_.end(), [&](const auto& each) {
      return each.second.pointer == &tensor->data;
    });
    if (place != reserved_.end()) reserved_.erase(place);
  }

  void Restart() { reserved_.clear(); }

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

  struct Reserved {
    size_t end;
    void* const* pointer;
  };

  std::vector<std::pair<void**, size_t>> places_;
  std::map<size_t, Reserved> reserved_;  // By first byte: what was not released.
  size_t size_ = 0;
  DeviceBuffer buffer_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_ARENA_H_
