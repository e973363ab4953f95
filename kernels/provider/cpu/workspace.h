// Parts of an operation's workspace.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_WORKSPACE_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_WORKSPACE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/thread_pool.h"
#include "kernels/ops.h"

namespace plumbline::provider {

// How many slots ParallelForWithSlot may hand out, each with scratch of its own.
inline size_t SlotCount(const ExecutionContext& context) {
  return static_cast<size_t>(context.threads->num_threads());
}

// What follows a part of this size begins 64-byte aligned.
constexpr size_t AlignUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Slot `slot`'s part of a workspace that is cut into parts of `floats` values.
inline float* SlotScratch(const ExecutionContext& context, int slot, int64_t floats) {
  return reinterpret_cast<float*>(context.workspace.data()) + slot * floats;
}

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_WORKSPACE_H_
