#ifndef PLUMBLINE_KERNELS_CPU_SCRATCH_H_
#define PLUMBLINE_KERNELS_CPU_SCRATCH_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace plumbline {

// Cuts a call's workspace into 64-byte aligned arrays. An operation that asks for the sum of
// Bytes<T>(count) of what it will take, in any order, gets enough.
class Scratch {
 public:
  // `workspace` is 64-byte aligned.
  explicit Scratch(absl::Span<uint8_t> workspace) : rest_(workspace) {}

  template <typename T>
  static size_t Bytes(int64_t count) {
    return (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  }

  template <typename T>
  T* Take(int64_t count) {
    return reinterpret_cast<T*>(TakeBytes(Bytes<T>(count)).data());
  }

  // `bytes` is a multiple of 64.
  absl::Span<uint8_t> TakeBytes(size_t bytes) {
    const absl::Span<uint8_t> taken = rest_.first(bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }

 private:
  absl::Span<uint8_t> rest_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CPU_SCRATCH_H_
