#include "worker/jobs/lockstep.h"

#include "common/status.h"

namespace plumbline::jobs {

absl::Status RunLockstep(const h3::Graph& graph, const std::vector<h3::DeviceWeights*>& weights,
                         const std::vector<LockstepSide*>& sides,
                         const std::function<absl::Status()>& after_segment) {
  const int segments = static_cast<int>(graph.segments().size());
  // Forward 0 .. segments - 1, then backward segments - 1 .. 0.
  const auto segment_at = [&](int turn) {
    return turn < segments ? turn : 2 * segments - 1 - turn;
  };
  for (int turn = 0; turn < 2 * segments; ++turn) {
    const int segment = segment_at(turn);
    for (h3::DeviceWeights* each : weights) {
      PLUMBLINE_RETURN_IF_ERROR(each->Load(graph, segment));
      if (turn + 1 < 2 * segments) each->Prefetch(graph, segment_at(turn + 1));
    }
    for (LockstepSide* side : sides) {
      PLUMBLINE_RETURN_IF_ERROR(turn < segments ? side->Forward(segment) : side->Backward(segment));
    }
    PLUMBLINE_RETURN_IF_ERROR(after_segment());
  }
  return absl::OkStatus();
}

}  // namespace plumbline::jobs
