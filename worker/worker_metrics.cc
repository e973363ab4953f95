#include "worker/worker_metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <map>

namespace plumbline::worker {
namespace {

// From a layout on a CPU to a generation of the released size.
const prometheus::Histogram::BucketBoundaries kSeconds = {0.1, 0.5, 1,    5,     15,   60,
                                                          300, 900, 3600, 14400, 43200};

std::string OriginName(v1::StepOrigin origin) {
  switch (origin) {
    case v1::STEP_ORIGIN_REPLAYED:
      return "replayed";
    case v1::STEP_ORIGIN_RECOMPUTED:
      return "recomputed";
    default:
      return "computed";
  }
}

}  // namespace

absl::string_view AttemptOutcomeName(AttemptOutcome outcome) {
  switch (outcome) {
    case AttemptOutcome::kSucceeded:
      return "succeeded";
    case AttemptOutcome::kFailed:
      return "failed";
    case AttemptOutcome::kCancelled:
      return "cancelled";
    case AttemptOutcome::kReleased:
      return "released";
    case AttemptOutcome::kLeaseLost:
      return "lease_lost";
  }
  return "";
}

struct WorkerMetrics::Families {
  explicit Families(prometheus::Registry& registry)
      : started(prometheus::BuildCounter()
                    .Name("plumbline_worker_attempts_started_total")
                    .Help("Attempts at tasks that this worker began.")
                    .Register(registry)),
        ended(prometheus::BuildCounter()
                  .Name("plumbline_worker_attempts_ended_total")
                  .Help("Attempts at tasks that ended on this worker, by how.")
                  .Register(registry)),
        lease_losses(prometheus::BuildCounter()
                         .Name("plumbline_worker_lease_losses_total")
                         .Help("Tasks that this worker lost while it worked on them.")
                         .Register(registry)
                         .Add({})),
        seconds(prometheus::BuildHistogram()
                    .Name("plumbline_worker_attempt_seconds")
                    .Help("Durations of attempts, whatever their end.")
                    .Register(registry)),
        steps(prometheus::BuildCounter()
                  .Name("plumbline_worker_steps_total")
                  .Help("Steps of generations, by how they came to be.")
                  .Register(registry)),
        step_seconds(prometheus::BuildHistogram()
                         .Name("plumbline_worker_step_seconds")
                         .Help("Durations of steps, by how they came to be.")
                         .Register(registry)),
        memory_limit(prometheus::BuildGauge()
                         .Name("plumbline_worker_device_memory_limit_bytes")
                         .Help("Device memory that tasks may use.")
                         .Register(registry)
                         .Add({})),
        memory_high_water(prometheus::BuildGauge()
                              .Name("plumbline_worker_device_memory_high_water_bytes")
                              .Help("The most device memory that the last task used at once.")
                              .Register(registry)
                              .Add({})),
        memory_used(prometheus::BuildGauge()
                        .Name("plumbline_worker_device_memory_bytes")
                        .Help("Memory of the device in use at the last heartbeat.")
                        .Register(registry)
                        .Add({})),
        utilisation(prometheus::BuildGauge()
                        .Name("plumbline_worker_device_utilisation_ratio")
                        .Help("How busy the device was before the last heartbeat, 0 to 1.")
                        .Register(registry)) {}

  prometheus::Family<prometheus::Counter>& started;
  prometheus::Family<prometheus::Counter>& ended;
  prometheus::Counter& lease_losses;
  prometheus::Family<prometheus::Histogram>& seconds;
  prometheus::Family<prometheus::Counter>& steps;
  prometheus::Family<prometheus::Histogram>& step_seconds;
  prometheus::Gauge& memory_limit;
  prometheus::Gauge& memory_high_water;
  prometheus::Gauge& memory_used;
  // Without a series where it cannot be told.
  prometheus::Family<prometheus::Gauge>& utilisation;
};

WorkerMetrics::WorkerMetrics(Metrics* metrics)
    : families_(std::make_unique<Families>(metrics->registry())) {}

WorkerMetrics::~WorkerMetrics() = default;

void WorkerMetrics::AttemptStarted(const std::string& kind) {
  families_->started.Add({{"kind", kind}}).Increment();
}

void WorkerMetrics::AttemptEnded(const std::string& kind, AttemptOutcome outcome,
                                 absl::Duration duration) {
  families_->ended.Add({{"kind", kind}, {"outcome", std::string(AttemptOutcomeName(outcome))}})
      .Increment();
  families_->seconds.Add({{"kind", kind}}, kSeconds).Observe(absl::ToDoubleSeconds(duration));
  if (outcome == AttemptOutcome::kLeaseLost) families_->lease_losses.Increment();
}

void WorkerMetrics::StepDone(v1::StepOrigin origin, absl::Duration duration) {
  const std::map<std::string, std::string> label = {{"origin", OriginName(origin)}};
  families_->steps.Add(label).Increment();
  families_->step_seconds.Add(label, kSeconds).Observe(absl::ToDoubleSeconds(duration));
}

void WorkerMetrics::SetDeviceMemory(int64_t limit_bytes, int64_t high_water_bytes) {
  families_->memory_limit.Set(static_cast<double>(limit_bytes));
  families_->memory_high_water.Set(static_cast<double>(high_water_bytes));
}

void WorkerMetrics::SetDeviceUsage(const v1::DeviceUsage& usage) {
  families_->memory_used.Set(static_cast<double>(usage.memory_bytes()));
  if (usage.has_utilisation()) families_->utilisation.Add({}).Set(usage.utilisation());
}

}  // namespace plumbline::worker
