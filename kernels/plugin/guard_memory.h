// The memory operations that the guards around a plug-in's call are made of, on one kind of device.
#ifndef PLUMBLINE_KERNELS_PLUGIN_GUARD_MEMORY_H_
#define PLUMBLINE_KERNELS_PLUGIN_GUARD_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/device.h"

namespace plumbline::plugin {

// `rows` runs of `width` elements, `stride` elements apart.
struct Region {
  void* data = nullptr;
  int64_t element_bytes = 1;
  int64_t rows = 1;
  int64_t width = 0;
  int64_t stride = 0;
};

struct Search {
  enum class Kind {
    kNotByte,    // an element with a byte that is not `byte`
    kAllOnes,    // an element all of whose bits are set
    kDifferent,  // an element that differs from that of `other`, a region of equal shape
  };
  Kind kind = Kind::kNotByte;
  Region region;
  uint8_t byte = 0;
  Region other;
};

// Stateless; any thread may call. Work is enqueued on the context's stream where there is one.
class GuardMemory {
 public:
  virtual ~GuardMemory() = default;

  virtual absl::Status Fill(const ExecutionContext& context, void* data, uint8_t byte,
                            size_t bytes) const = 0;
  virtual absl::Status Copy(const ExecutionContext& context, const Region& from,
                            const Region& to) const = 0;
  // Waits for everything enqueued so far, and for each search: row * width + column of the first
  // element found, or -1. `scratch` has 8 bytes in the device's memory for each.
  virtual absl::StatusOr<std::vector<int64_t>> Find(const ExecutionContext& context,
                                                    absl::Span<const Search> searches,
                                                    void* scratch) const = 0;
};

const GuardMemory& CpuGuardMemory();
// Of a build with CUDA.
const GuardMemory& CudaGuardMemory();
// The compute capability, times ten, of the device that `context` is of.
int CudaComputeCapability(const ExecutionContext& context);

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_GUARD_MEMORY_H_
