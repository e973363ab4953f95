#include "server/metrics/server_metrics.h"

#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/strip.h"
#include "prometheus/counter.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace plumbline::server {
namespace {

using prometheus::Histogram;

const Histogram::BucketBoundaries& CallSeconds() {
  static const auto* const bounds = new Histogram::BucketBoundaries{
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
  return *bounds;
}

const Histogram::BucketBoundaries& TaskSeconds() {
  static const auto* const bounds = new Histogram::BucketBoundaries{
      0.1, 0.5, 1, 5, 10, 30, 60, 300, 600, 1800, 3600, 10800, 36000};
  return *bounds;
}

const Histogram::BucketBoundaries& SetCounts() {
  static const auto* const bounds =
      new Histogram::BucketBoundaries{1, 2, 4, 8, 16, 32, 64, 128, 256};
  return *bounds;
}

// WORKER_STATE_ACTIVE -> "active".
std::string LabelOf(const std::string& name, absl::string_view prefix) {
  return absl::AsciiStrToLower(absl::StripPrefix(name, prefix));
}

// A counter that follows one kept elsewhere.
void CatchUp(prometheus::Counter& counter, int64_t total) {
  counter.Increment(std::max(0.0, static_cast<double>(total) - counter.Value()));
}

}  // namespace

struct ServerMetrics::Families {
  explicit Families(prometheus::Registry& registry)
      : call_seconds(prometheus::BuildHistogram()
                         .Name("plumbline_rpc_seconds")
                         .Help("Duration of calls, by method; of streams, until they ended")
                         .Register(registry)),
        calls(prometheus::BuildCounter()
                  .Name("plumbline_rpcs_total")
                  .Help("Calls that ended, by method and status code")
                  .Register(registry)),
        write_seconds(prometheus::BuildHistogram()
                          .Name("plumbline_store_write_seconds")
                          .Help("Duration of synced writes of the store")
                          .Register(registry)
                          .Add({}, CallSeconds())),
        write_sets(prometheus::BuildHistogram()
                       .Name("plumbline_store_write_changes")
                       .Help("Changes that one synced write made durable together")
                       .Register(registry)
                       .Add({}, SetCounts())),
        attempt_seconds(prometheus::BuildHistogram()
                            .Name("plumbline_task_attempt_seconds")
                            .Help("Duration of attempts that their worker ended")
                            .Register(registry)
                            .Add({}, TaskSeconds())),
        step_write_seconds(prometheus::BuildHistogram()
                               .Name("plumbline_step_write_seconds")
                               .Help("Duration of steps' writes, from their last byte to the disk")
                               .Register(registry)
                               .Add({}, CallSeconds())),
        steps(prometheus::BuildCounter()
                  .Name("plumbline_steps_total")
                  .Help("Steps of generations that workers told of, by how they came to be")
                  .Register(registry)),
        step_seconds(prometheus::BuildHistogram()
                         .Name("plumbline_step_seconds")
                         .Help("Duration of steps on their workers, by how they came to be")
                         .Register(registry)),
        store_bytes(Gauge(registry, "plumbline_store_bytes", "Bytes of the store's files")),
        store_healthy(Gauge(registry, "plumbline_store_healthy",
                            "1 until a write of the store fails, then 0")),
        steps_stored(Counter(registry, "plumbline_steps_stored_total", "Steps that were saved")),
        step_bytes_written(Counter(registry, "plumbline_step_bytes_written_total",
                                   "Bytes of the steps that were saved")),
        step_bytes(Gauge(registry, "plumbline_store_step_bytes", "Bytes of the steps kept now")),
        queued(prometheus::BuildGauge()
                   .Name("plumbline_queue_depth_tasks")
                   .Help("Tasks that wait, by what for")
                   .Register(registry)),
        queue_age(Gauge(registry, "plumbline_queue_age_seconds",
                        "How long the oldest task that waits for a worker has waited")),
        running(Gauge(registry, "plumbline_running_tasks", "Tasks that a worker holds")),
        watchers(Gauge(registry, "plumbline_watchers", "Open streams of events")),
        workers(prometheus::BuildGauge()
                    .Name("plumbline_workers")
                    .Help("Workers, by state")
                    .Register(registry)),
        refused_connections(Counter(registry, "plumbline_http_refused_connections_total",
                                    "Connections closed for what their address had already")),
        attempts(Counter(registry, "plumbline_attempts_total", "Attempts that began")),
        leases_lost(Counter(registry, "plumbline_leases_lost_total",
                            "Leases that expired or whose worker started again")),
        preemptions(Counter(registry, "plumbline_preemptions_total",
                            "Tasks that their worker handed back")),
        poisoned(Counter(registry, "plumbline_tasks_given_up_total",
                         "Tasks that failed because too many attempts were lost")),
        attempts_ended(prometheus::BuildCounter()
                           .Name("plumbline_attempts_ended_total")
                           .Help("Attempts that ended, by how")
                           .Register(registry)) {}

  static prometheus::Gauge& Gauge(prometheus::Registry& registry, const char* name,
                                  const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Register(registry).Add({});
  }
  static prometheus::Counter& Counter(prometheus::Registry& registry, const char* name,
                                      const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
  }

  prometheus::Family<Histogram>& call_seconds;
  prometheus::Family<prometheus::Counter>& calls;
  Histogram& write_seconds;
  Histogram& write_sets;
  Histogram& attempt_seconds;
  Histogram& step_write_seconds;
  prometheus::Family<prometheus::Counter>& steps;
  prometheus::Family<Histogram>& step_seconds;
  prometheus::Gauge& store_bytes;
  prometheus::Gauge& store_healthy;
  prometheus::Counter& steps_stored;
  prometheus::Counter& step_bytes_written;
  prometheus::Gauge& step_bytes;
  prometheus::Family<prometheus::Gauge>& queued;
  prometheus::Gauge& queue_age;
  prometheus::Gauge& running;
  prometheus::Gauge& watchers;
  prometheus::Family<prometheus::Gauge>& workers;
  prometheus::Counter& refused_connections;
  prometheus::Counter& attempts;
  prometheus::Counter& leases_lost;
  prometheus::Counter& preemptions;
  prometheus::Counter& poisoned;
  prometheus::Family<prometheus::Counter>& attempts_ended;
};

ServerMetrics::ServerMetrics(Metrics* metrics)
    : families_(std::make_unique<Families>(metrics->registry())) {}
ServerMetrics::~ServerMetrics() = default;

void ServerMetrics::RecordCall(absl::string_view method, absl::string_view code,
                               absl::Duration duration) {
  families_->call_seconds.Add({{"method", std::string(method)}}, CallSeconds())
      .Observe(absl::ToDoubleSeconds(duration));
  families_->calls.Add({{"method", std::string(method)}, {"code", std::string(code)}}).Increment();
}

void ServerMetrics::RecordStoreWrite(absl::Duration duration, int sets) {
  families_->write_seconds.Observe(absl::ToDoubleSeconds(duration));
  families_->write_sets.Observe(sets);
}

void ServerMetrics::RecordAttempt(absl::Duration duration) {
  families_->attempt_seconds.Observe(absl::ToDoubleSeconds(duration));
}

void ServerMetrics::RecordStepWrite(absl::Duration duration, int64_t bytes) {
  families_->step_write_seconds.Observe(absl::ToDoubleSeconds(duration));
  families_->steps_stored.Increment();
  families_->step_bytes_written.Increment(static_cast<double>(bytes));
}

void ServerMetrics::RecordStep(v1::StepOrigin origin, absl::Duration duration) {
  const std::map<std::string, std::string> label = {
      {"origin", LabelOf(v1::StepOrigin_Name(origin), "STEP_ORIGIN_")}};
  families_->steps.Add(label).Increment();
  families_->step_seconds.Add(label, TaskSeconds()).Observe(absl::ToDoubleSeconds(duration));
}

void ServerMetrics::SetStore(int64_t bytes, bool healthy) {
  families_->store_bytes.Set(static_cast<double>(bytes));
  families_->store_healthy.Set(healthy ? 1 : 0);
}

void ServerMetrics::SetStepBytes(int64_t bytes) {
  families_->step_bytes.Set(static_cast<double>(bytes));
}

void ServerMetrics::SetScheduler(const SchedulerCounts& counts, const SchedulerLoad& load,
                                 absl::Time now) {
  Families& f = *families_;
  for (const auto& [reason, tasks] : {std::pair<const char*, int64_t>{"worker", load.ready},
                                      {"backoff", load.backing_off},
                                      {"dependency", load.blocked}}) {
    f.queued.Add({{"waits_for", reason}}).Set(static_cast<double>(tasks));
  }
  f.queue_age.Set(load.ready == 0 ? 0 : absl::ToDoubleSeconds(now - load.oldest_queued));
  f.running.Set(static_cast<double>(load.running));
  for (const v1::WorkerState state : {v1::WORKER_STATE_ACTIVE, v1::WORKER_STATE_DRAINING,
                                      v1::WORKER_STATE_LOST, v1::WORKER_STATE_GONE}) {
    const auto found = load.workers.find(state);
    f.workers.Add({{"state", LabelOf(v1::WorkerState_Name(state), "WORKER_STATE_")}})
        .Set(found == load.workers.end() ? 0 : static_cast<double>(found->second));
  }
  CatchUp(f.attempts, counts.attempts_started);
  CatchUp(f.leases_lost, counts.leases_lost);
  CatchUp(f.preemptions, counts.tasks_released);
  CatchUp(f.poisoned, counts.tasks_poisoned);
  for (const auto& [end, count] : counts.attempts_ended) {
    CatchUp(f.attempts_ended.Add({{"end", LabelOf(v1::AttemptEnd_Name(end), "ATTEMPT_END_")}}),
            count);
  }
}

void ServerMetrics::SetRefusedConnections(int64_t total) {
  CatchUp(families_->refused_connections, total);
}

void ServerMetrics::SetWatchers(int64_t watchers) {
  families_->watchers.Set(static_cast<double>(watchers));
}

}  // namespace plumbline::server
