#include "worker/task_runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "common/clock_fake.h"
#include "common/files.h"
#include "common/metrics.h"
#include "common/status.h"
#include "worker/lease/fake_coordinator.h"

namespace plumbline::worker {
namespace {

using ::testing::HasSubstr;

class TaskRunnerTest : public testing::Test {
 protected:
  TaskRunnerTest() {
    const std::string folder =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    state_ = *StateDirectory::Open(folder, RandomIds());
    device_ = *MakeCpuDevice(1, 1 << 20);
    input_files_ = std::make_unique<InputFiles>(&coordinator_, &clock_,
                                                InputFilesOptions{{}, state_->cache_folder()});
  }

  AttemptOutcome Run(JobFunction job) {
    TaskRunnerOptions options;
    options.coordinator = &coordinator_;
    options.clock = &clock_;
    options.device = device_.get();
    options.registry = &registry_;
    options.kernel_identity = &kernel_identity_;
    options.checkpoints = &checkpoints_;
    options.input_files = input_files_.get();
    options.state = state_.get();
    options.metrics = &worker_metrics_;
    options.release_reason = [] { return v1::RELEASE_REASON_PREEMPTED; };
    return TaskRunner(std::move(options), std::move(job)).Run(task_.get());
  }

  static v1::JobSpec LayoutSpec() {
    v1::JobSpec spec;
    spec.mutable_layout();
    return spec;
  }

  static std::unique_ptr<HeldTask> Acquire(FakeCoordinator* coordinator,
                                           const v1::JobSpec& spec = LayoutSpec()) {
    v1::RegisterWorkerRequest registration;
    registration.set_worker_id("w");
    registration.set_incarnation("i");
    EXPECT_TRUE(coordinator->RegisterWorker(registration, {}).ok());
    coordinator->Assign(7, spec);
    v1::AcquireTaskRequest request;
    request.set_incarnation("i");
    return std::make_unique<HeldTask>(coordinator->AcquireTask(request, {})->assignment());
  }

  FakeClock clock_;
  FakeCoordinator coordinator_;
  std::unique_ptr<HeldTask> task_ = Acquire(&coordinator_);
  std::unique_ptr<StateDirectory> state_;
  std::unique_ptr<Device> device_;
  Registry registry_;
  KernelIdentity kernel_identity_;
  jobs::CheckpointCache checkpoints_{{}};
  std::unique_ptr<InputFiles> input_files_;
  Metrics metrics_;
  WorkerMetrics worker_metrics_{&metrics_};
};

v1::Progress Done(int64_t done) {
  v1::Progress progress;
  progress.set_done(done);
  return progress;
}

TEST_F(TaskRunnerTest, ReportsEventsStoresFilesAndCompletes) {
  const AttemptOutcome outcome =
      Run([](const v1::JobSpec&, const jobs::JobEnvironment& environment) {
        v1::NodeEvent node;
        node.set_entry("q_proj");
        environment.context.on_node(node);
        EXPECT_TRUE(environment.context.check_cancelled().ok());
        jobs::JobResult result;
        result.report.set_composition("candidate");
        const std::string path = environment.output_folder + "/x";
        EXPECT_TRUE(WriteFileAtomically(path, "bytes").ok());
        result.files.push_back({path, v1::ARTIFACT_ROLE_TENSORS, "x.safetensors", "type"});
        return result;
      });
  EXPECT_EQ(outcome, AttemptOutcome::kSucceeded);
  ASSERT_EQ(coordinator_.events().size(), 1u);
  EXPECT_EQ(coordinator_.events()[0].node().entry(), "q_proj");
  ASSERT_EQ(coordinator_.stored_files().size(), 1u);
  EXPECT_EQ(coordinator_.stored_files()[0].bytes, "bytes");
  EXPECT_EQ(coordinator_.stored_files()[0].header.fencing_token(), 7);
  ASSERT_EQ(coordinator_.completions().size(), 1u);
  const v1::CompleteTaskRequest completion = coordinator_.completions()[0];
  EXPECT_EQ(completion.last_client_sequence(), 1);
  EXPECT_EQ(completion.report().composition(), "candidate");
  EXPECT_EQ(completion.report().artifacts(0).file_name(), "x.safetensors");
  EXPECT_THAT(metrics_.Serialize(),
              HasSubstr("plumbline_worker_attempts_ended_total{kind=\"layout\",outcome="
                        "\"succeeded\"} 1"));
}

TEST_F(TaskRunnerTest, AFrozenRuleIsAcknowledgedBeforeTheJobGoesOn) {
  Run([this](const v1::JobSpec&, const jobs::JobEnvironment& environment) {
    v1::RuleFrozenEvent frozen;
    frozen.set_sha256("ab");
    EXPECT_TRUE(environment.context.on_rule_frozen(frozen).ok());
    EXPECT_EQ(coordinator_.events().size(), 1u);
    EXPECT_EQ(coordinator_.events().at(0).rule_frozen().sha256(), "ab");
    return jobs::JobResult();
  });
}

TEST_F(TaskRunnerTest, ErrorBecomesTheTasksFailure) {
  EXPECT_EQ(Run([](const v1::JobSpec&, const jobs::JobEnvironment&) {
              return FieldError("block", "is 9", "0 to 1");
            }),
            AttemptOutcome::kFailed);
  const v1::TaskFailure failure = coordinator_.completions().at(0).failure();
  EXPECT_EQ(failure.failure_class(), v1::FAILURE_CLASS_BAD_REQUEST);
  EXPECT_EQ(failure.status().message(), "block: is 9; accepted: 0 to 1");
}

TEST_F(TaskRunnerTest, TooLittleMemoryHandsTheTaskBack) {
  EXPECT_EQ(Run([](const v1::JobSpec&, const jobs::JobEnvironment&) {
              return WithNeededMemory(
                  absl::ResourceExhaustedError("needs 9 bytes of device memory"), 9);
            }),
            AttemptOutcome::kReleased);
  ASSERT_EQ(coordinator_.releases().size(), 1u);
  EXPECT_EQ(coordinator_.releases()[0].reason(), v1::RELEASE_REASON_UNSUITABLE);
  EXPECT_EQ(coordinator_.releases()[0].message(), "needs 9 bytes of device memory");
  EXPECT_EQ(coordinator_.releases()[0].needed_memory_bytes(), 9);
}

// Another worker's memory does not help where a disk is full.
TEST_F(TaskRunnerTest, AFullDiskIsAFailureOfTheAttempt) {
  EXPECT_EQ(Run([](const v1::JobSpec&, const jobs::JobEnvironment&) {
              return absl::ResourceExhaustedError("tensors: cannot write: No space left on device");
            }),
            AttemptOutcome::kFailed);
  EXPECT_EQ(coordinator_.completions().at(0).failure().failure_class(),
            v1::FAILURE_CLASS_INFRASTRUCTURE);
}

TEST_F(TaskRunnerTest, LostLeaseWritesNothing) {
  EXPECT_EQ(Run([this](const v1::JobSpec&, const jobs::JobEnvironment& environment) {
              task_->Stop(StopReason::kLeaseLost);
              EXPECT_TRUE(absl::IsCancelled(environment.context.check_cancelled()));
              environment.context.on_progress(Done(1));
              return jobs::JobResult();
            }),
            AttemptOutcome::kLeaseLost);
  EXPECT_TRUE(coordinator_.events().empty());
  EXPECT_TRUE(coordinator_.completions().empty());
  EXPECT_TRUE(coordinator_.releases().empty());
}

TEST_F(TaskRunnerTest, LeaseLostWhileCompletingIsALostLease) {
  EXPECT_EQ(Run([this](const v1::JobSpec&, const jobs::JobEnvironment&) {
              coordinator_.LoseLease();
              return jobs::JobResult();
            }),
            AttemptOutcome::kLeaseLost);
}

TEST_F(TaskRunnerTest, CancelledTaskCompletesAsCancelled) {
  EXPECT_EQ(Run([this](const v1::JobSpec&,
                       const jobs::JobEnvironment& environment) -> absl::StatusOr<jobs::JobResult> {
              task_->Stop(StopReason::kCancelled);
              return environment.context.check_cancelled();
            }),
            AttemptOutcome::kCancelled);
  EXPECT_EQ(coordinator_.completions().at(0).failure().failure_class(),
            v1::FAILURE_CLASS_CANCELLED);
}

TEST_F(TaskRunnerTest, TaskThatMustBeReleasedIsHandedBack) {
  EXPECT_EQ(Run([this](const v1::JobSpec&,
                       const jobs::JobEnvironment& environment) -> absl::StatusOr<jobs::JobResult> {
              task_->Stop(StopReason::kRelease);
              return environment.context.check_cancelled();
            }),
            AttemptOutcome::kReleased);
  EXPECT_EQ(coordinator_.releases().at(0).reason(), v1::RELEASE_REASON_PREEMPTED);
}

TEST_F(TaskRunnerTest, TaskThatYieldsIsHandedBackWithWhatItReported) {
  EXPECT_EQ(Run([this](const v1::JobSpec&,
                       const jobs::JobEnvironment& environment) -> absl::StatusOr<jobs::JobResult> {
              environment.context.on_node(v1::NodeEvent());
              task_->AskToYield();
              EXPECT_TRUE(environment.context.check_cancelled().ok());
              return absl::CancelledError("handed back before step 3 of 5");
            }),
            AttemptOutcome::kReleased);
  EXPECT_EQ(coordinator_.releases().at(0).message(), "handed back before step 3 of 5");
  EXPECT_EQ(coordinator_.events().size(), 1u);
}

TEST_F(TaskRunnerTest, GenerationKnowsItsAttemptAndSavesSteps) {
  task_ = Acquire(&coordinator_, [] {
    v1::JobSpec spec;
    spec.mutable_generation();
    return spec;
  }());
  EXPECT_EQ(Run([](const v1::JobSpec&, const jobs::JobEnvironment& environment) {
              const jobs::GenerationEnvironment& generation = environment.generation;
              EXPECT_EQ(generation.fencing_token, 7);
              EXPECT_EQ(generation.attempt, 1);
              EXPECT_FALSE(generation.should_yield());
              generation.on_run("runs/a");
              steps::SavedStep step;
              step.record.set_input_digest("digest");
              EXPECT_TRUE(generation.steps->Save({}, step).ok());
              EXPECT_TRUE(generation.steps->Flush().ok());
              v1::StepEvent event;
              event.set_origin(v1::STEP_ORIGIN_COMPUTED);
              generation.on_step(event);
              return jobs::JobResult();
            }),
            AttemptOutcome::kSucceeded);
  EXPECT_EQ(task_->run(), "runs/a");
  EXPECT_EQ(coordinator_.put_step_calls(), 1);
  EXPECT_TRUE(coordinator_.events().at(0).has_step());
  EXPECT_THAT(metrics_.Serialize(),
              HasSubstr("plumbline_worker_steps_total{origin=\"computed\"} 1"));
}

TEST_F(TaskRunnerTest, TaskThatIsDoneInTimeIsCompletedAllTheSame) {
  EXPECT_EQ(Run([this](const v1::JobSpec&, const jobs::JobEnvironment&) {
              task_->Stop(StopReason::kRelease);
              return jobs::JobResult();
            }),
            AttemptOutcome::kSucceeded);
  EXPECT_EQ(coordinator_.completions().size(), 1u);
}

TEST_F(TaskRunnerTest, CompletionIsRepeatedUntilTheCoordinatorHasIt) {
  coordinator_.FailCompletions({absl::UnavailableError("restarting"), absl::InternalError("torn")});
  AttemptOutcome outcome = AttemptOutcome::kFailed;
  absl::Notification done;
  std::thread runner([&] {
    outcome =
        Run([](const v1::JobSpec&, const jobs::JobEnvironment&) { return jobs::JobResult(); });
    done.Notify();
  });
  while (!done.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
    clock_.Advance(absl::Seconds(1));
  }
  runner.join();
  EXPECT_EQ(outcome, AttemptOutcome::kSucceeded);
}

TEST_F(TaskRunnerTest, CoordinatorThatRefusesTheReportIsToldOfAFailure) {
  coordinator_.FailCompletions({absl::InvalidArgumentError("report: no kind")});
  EXPECT_EQ(Run([](const v1::JobSpec&, const jobs::JobEnvironment&) { return jobs::JobResult(); }),
            AttemptOutcome::kFailed);
  EXPECT_THAT(coordinator_.completions().at(0).failure().status().message(),
              HasSubstr("report: no kind"));
}

}  // namespace
}  // namespace plumbline::worker
