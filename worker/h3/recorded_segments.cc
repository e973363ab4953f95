#include "worker/h3/recorded_segments.h"

#include "common/status.h"

namespace plumbline::h3 {

absl::Status RecordedSegments::Run(int segment, Work work, std::vector<const void*> memory,
                                   absl::FunctionRef<absl::Status()> enqueue) {
  if (!device_.CanRecord()) return enqueue();
  const auto [place, is_new] = entries_.try_emplace({segment, work});
  Entry& entry = place->second;
  if (is_new || entry.memory != memory) {
    entry = {std::move(memory), nullptr};
    return enqueue();
  }
  if (entry.record == nullptr) {
    PLUMBLINE_ASSIGN_OR_RETURN(entry.record, device_.Record(enqueue));
  }
  return entry.record->Enqueue();
}

}  // namespace plumbline::h3
