#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_WORKSPACE_LAYOUT_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_WORKSPACE_LAYOUT_H_

#include <cstddef>
#include <cstdint>

namespace plumbline::candidate {

// Hands out the parts of a workspace one after another, each on a 64-byte boundary. Used twice with
// the same requests: over null, to measure, and then over the workspace itself.
class WorkspaceLayout {
 public:
  explicit WorkspaceLayout(uint8_t* workspace) : base_(workspace) {}

  float* Floats(int64_t count) {
    return reinterpret_cast<float*>(Bytes(static_cast<size_t>(count) * sizeof(float)));
  }
  uint8_t* Bytes(size_t bytes) {
    uint8_t* part = base_ == nullptr ? nullptr : base_ + bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return part;
  }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr size_t kAlignment = 64;

  uint8_t* const base_;
  size_t bytes_ = 0;
};

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_WORKSPACE_LAYOUT_H_
