#ifndef PLUMBLINE_WORKER_JOBS_REPLAY_TIMING_H_
#define PLUMBLINE_WORKER_JOBS_REPLAY_TIMING_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/clock.h"
#include "proto/plumbline/v1/block_replay.pb.h"
#include "worker/jobs/replay_execution.h"

namespace plumbline::jobs {

// Times executions that nobody taps, candidate and provider in turn, after one of each that does
// not count. `provider` may be null: a captured one. Calls `tick` before every execution.
absl::StatusOr<v1::TimingPair> MeasureTimes(const ReplayModel& model, const ReplaySide& candidate,
                                            const ReplaySide* provider, bool backward, Clock& clock,
                                            const Tick& tick);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_REPLAY_TIMING_H_
