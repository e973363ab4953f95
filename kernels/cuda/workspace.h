#ifndef PLUMBLINE_KERNELS_CUDA_WORKSPACE_H_
#define PLUMBLINE_KERNELS_CUDA_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace plumbline::cuda {

// Hands out the parts of a call's workspace one after another, each on a 256-byte boundary, which
// is what cuBLAS wants of its own scratch. Used
// twice with the same requests: over nothing, to measure, and then over the workspace itself.
class Workspace {
 public:
  Workspace() = default;
  explicit Workspace(absl::Span<uint8_t> memory) : base_(memory.data()) {}

  template <typename T>
  T* Take(int64_t count) {
    T* const part = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + bytes_);
    bytes_ += (static_cast<size_t>(count) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
    return part;
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 256;

  uint8_t* base_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace plumbline::cuda

#endif  // PLUMBLINE_KERNELS_CUDA_WORKSPACE_H_
