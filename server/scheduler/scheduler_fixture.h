#ifndef PLUMBLINE_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_
#define PLUMBLINE_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock_fake.h"
#include "gtest/gtest.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/scheduler.h"

namespace plumbline::server {

// A scheduler at a clock that a test moves, and short ways to say what tests say often.
class SchedulerFixture : public testing::Test {
 protected:
  static constexpr int64_t kGigabyte = 1'000'000'000;

  explicit SchedulerFixture(SchedulerOptions options = {})
      : options_(std::move(options)), scheduler_(&clock_, options_) {}

  void Register(const std::string& id, const std::string& incarnation = "i1",
                int64_t memory_bytes = 16 * kGigabyte, v1::DeviceKind kind = v1::DEVICE_KIND_CPU) {
    v1::RegisterWorkerRequest request;
    request.set_worker_id(id);
    request.set_incarnation(incarnation);
    request.mutable_capabilities()->mutable_device()->set_kind(kind);
    request.mutable_capabilities()->mutable_device()->set_memory_bytes(memory_bytes);
    scheduler_.Register(request);
  }

  static v1::Job NewJob(int64_t number, int tasks = 1) {
    v1::Job job;
    job.set_name(absl::StrCat("jobs/job", number));
    job.set_kind(v1::JOB_KIND_BLOCK_REPLAY);
    job.set_state(v1::JOB_STATE_QUEUED);
    for (int i = 0; i < tasks; ++i) {
      job.mutable_spec()->mutable_block_replay()->add_layouts()->set_name("tiny");
    }
    return job;
  }

  void Add(int64_t number, const v1::Job& job,
           const std::vector<store::Dependency>& waits_for = {}) {
    store::JobRecord record;
    *record.mutable_job() = job;
    std::vector<store::TaskRecord> tasks = PlanTasks(job);
    for (store::TaskRecord& task : tasks) {
      for (const store::Dependency& each : waits_for) *task.add_waits_for() = each;
    }
    scheduler_.AddJob(number, record, std::move(tasks));
  }

  void AddJob(int64_t number, int tasks = 1, int32_t priority = 0, int64_t memory_bytes = 0) {
    v1::Job job = NewJob(number, tasks);
    job.mutable_spec()->set_priority(priority);
    job.mutable_spec()->mutable_placement()->set_memory_bytes(memory_bytes);
    Add(number, job);
  }

  // The lease that a worker is given; without a task if there is none.
  v1::Lease Acquire(const std::string& id, const std::string& incarnation = "i1") {
    return AcquireTask(id, incarnation).lease();
  }
  v1::Assignment AcquireTask(const std::string& id, const std::string& incarnation = "i1") {
    const std::string name = "workers/" + id;
    EXPECT_TRUE(scheduler_.HearFrom(name, incarnation).ok());
    return scheduler_.Acquire(name, incarnation)->assignment();
  }

  v1::HeartbeatResponse Beat(const std::string& id, const std::vector<v1::Lease>& held,
                             const std::string& incarnation = "i1") {
    v1::HeartbeatRequest request;
    request.set_worker("workers/" + id);
    request.set_incarnation(incarnation);
    for (const v1::Lease& lease : held) {
      auto& each = *request.add_held();
      each.set_task(lease.task());
      each.set_fencing_token(lease.fencing_token());
    }
    return scheduler_.Heartbeat(request).value();
  }

  absl::Status Fail(TaskKey key, int64_t token, v1::FailureClass failure_class) {
    v1::TaskFailure failure;
    failure.set_failure_class(failure_class);
    failure.mutable_status()->set_code(13);
    failure.mutable_status()->set_message("it broke");
    return scheduler_.Fail(key, token, failure);
  }

  v1::WaitingReason Waiting(int64_t job) {
    v1::Job shown;
    scheduler_.AddPresentState(job, &shown);
    return shown.waiting_reason();
  }

  // The newest event of a task's state, or of the job's.
  static const v1::JobEvent* LastState(const WriteSet& set, bool of_job) {
    const v1::JobEvent* last = nullptr;
    for (const v1::JobEvent& event : set.events()) {
      if (of_job ? event.has_job_state() : event.has_task_state()) last = &event;
    }
    return last;
  }

  const SchedulerOptions options_;
  FakeClock clock_;
  Scheduler scheduler_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_SCHEDULER_SCHEDULER_FIXTURE_H_
