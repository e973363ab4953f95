#include "worker/jobs/replay_timing.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/status.h"

namespace plumbline::jobs {
namespace {

constexpr int kSamples = 3;

v1::Timing Summarise(std::vector<double> times_ms) {
  std::sort(times_ms.begin(), times_ms.end());
  v1::Timing timing;
  timing.set_samples(static_cast<int32_t>(times_ms.size()));
  timing.set_median_ms(times_ms[times_ms.size() / 2]);
  timing.set_min_ms(times_ms.front());
  timing.set_max_ms(times_ms.back());
  return timing;
}

// Executes once; milliseconds.
absl::StatusOr<double> TimeOnce(h3::Executor& executor, Device& device, Clock& clock) {
  PLUMBLINE_RETURN_IF_ERROR(device.Synchronize());
  const absl::Time start = clock.Now();
  PLUMBLINE_RETURN_IF_ERROR(executor.Run());
  PLUMBLINE_RETURN_IF_ERROR(device.Synchronize());
  return absl::ToDoubleMilliseconds(clock.Now() - start);
}

}  // namespace

absl::StatusOr<v1::TimingPair> MeasureTimes(const ReplayModel& model, const ReplaySide& candidate,
                                            const ReplaySide* provider, bool backward, Clock& clock,
                                            const Tick& tick) {
  ExecutionOptions options;
  options.backward = backward;
  options.guarded = false;
  std::vector<std::unique_ptr<h3::Executor>> executors;
  for (const ReplaySide* side : {&candidate, provider}) {
    if (side == nullptr) continue;
    PLUMBLINE_ASSIGN_OR_RETURN(std::unique_ptr<h3::Executor> executor,
                               MakeExecution(model, *side, options, nullptr));
    executors.push_back(std::move(executor));
  }
  std::vector<std::vector<double>> times_ms(executors.size());
  for (int sample = -1; sample < kSamples; ++sample) {
    for (size_t i = 0; i < executors.size(); ++i) {
      PLUMBLINE_RETURN_IF_ERROR(tick());
      PLUMBLINE_ASSIGN_OR_RETURN(const double time_ms,
                                 TimeOnce(*executors[i], model.device, clock));
      if (sample >= 0) times_ms[i].push_back(time_ms);
    }
  }
  v1::TimingPair pair;
  pair.set_work(backward ? "forward+backward" : "forward");
  *pair.mutable_candidate() = Summarise(times_ms[0]);
  if (provider == nullptr) return pair;
  *pair.mutable_provider() = Summarise(times_ms[1]);
  if (pair.provider().median_ms() > 0) {
    pair.set_ratio(pair.candidate().median_ms() / pair.provider().median_ms());
  }
  return pair;
}

}  // namespace plumbline::jobs
