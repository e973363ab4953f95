#ifndef PLUMBLINE_WORKER_H3_RECORDED_SEGMENTS_H_
#define PLUMBLINE_WORKER_H3_RECORDED_SEGMENTS_H_

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "kernels/device.h"

namespace plumbline::h3 {

// The work of an executor's segments as the device keeps it, so that what is enqueued again and
// again costs the host one call. Not thread-safe; the device must outlive it.
class RecordedSegments {
 public:
  enum class Work { kForward, kBackward };

  explicit RecordedSegments(Device* device) : device_(*device) {}

  // Does `enqueue`'s work: by calling it, or from a record of it. `memory` is what of the memory
  // that it reads and writes may be elsewhere the next time. Recorded is the second time in the
  // same memory, so that what a library prepares at a first call is not a part of the record.
  // `enqueue` must do the same each time; nothing else may be enqueued meanwhile.
  absl::Status Run(int segment, Work work, std::vector<const void*> memory,
                   absl::FunctionRef<absl::Status()> enqueue);

 private:
  struct Entry {
    std::vector<const void*> memory;  // of the last run
    std::unique_ptr<RecordedWork> record;
  };

  Device& device_;
  std::map<std::pair<int, Work>, Entry> entries_;
};

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_RECORDED_SEGMENTS_H_
