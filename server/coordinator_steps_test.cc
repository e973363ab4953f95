// Generations and the step store over the API.
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/store/testing/step_store_harness.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr char kWorker[] = "one";
constexpr char kProcess[] = "process";

class StepsTest : public CoordinatorTest {
 protected:
  static v1::CreateJobRequest Generation(const std::vector<uint64_t>& seeds) {
    v1::CreateJobRequest request;
    v1::JobSpec& spec = *request.mutable_spec();
    spec.set_checkpoint("synthetic:tiny");
    spec.set_composition("golden");
    v1::GenerationSpec& generation = *spec.mutable_generation();
    v1::GenerationContract& contract = *generation.mutable_contract();
    for (const uint64_t seed : seeds) contract.add_seeds(seed);
    contract.set_num_frames(5);
    contract.set_height(64);
    contract.set_width(64);
    contract.set_num_inference_steps(4);
    generation.mutable_conditioning()->set_worker_path("conditioning.safetensors");
    return request;
  }

  v1::Assignment AcquireOne() {
    const absl::StatusOr<v1::AcquireTaskResponse> acquired = Acquire(kWorker, kProcess);
    EXPECT_TRUE(acquired.ok()) << acquired.status();
    EXPECT_TRUE(acquired.ok() && acquired->has_assignment());
    return acquired.ok() ? acquired->assignment() : v1::Assignment();
  }

  absl::StatusOr<v1::PutStepResponse> Put(const v1::Lease& lease, const TestStep& step,
                                          int64_t trailer_bytes = -1) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::PutStepResponse response;
    const auto stream = workers_->PutStep(&context, &response);
    v1::PutStepRequest request;
    *request.mutable_header() = step.header;
    request.mutable_header()->set_task(lease.task());
    request.mutable_header()->set_fencing_token(lease.fencing_token());
    stream->Write(request);
    const std::string all =
        step.header.has_record() ? absl::StrJoin(step.outputs, "") : std::string();
    for (size_t offset = 0; offset < all.size(); offset += 1 << 20) {
      request.set_chunk(all.substr(offset, 1 << 20));
      stream->Write(request);
    }
    v1::StreamTrailer& trailer = *request.mutable_trailer();
    trailer.set_size_bytes(trailer_bytes < 0 ? static_cast<int64_t>(all.size()) : trailer_bytes);
    trailer.set_sha256(Sha256Hex(all));
    stream->Write(request);
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  // The bytes of the steps that come, and the sizes of their chunks.
  std::map<int32_t, std::string> Steps(const std::string& run, int32_t index, int32_t count) {
    grpc::ClientContext context;
    SetDeadline(&context);
    v1::GetStepRequest request;
    request.set_run(run);
    request.set_index(index);
    request.set_count(count);
    const auto stream = workers_->GetStep(&context, request);
    std::map<int32_t, std::string> steps;
    std::string bytes;
    int32_t current = -1;
    v1::GetStepResponse response;
    while (stream->Read(&response)) {
      if (response.has_record()) {
        current = response.record().index();
        bytes.clear();
      } else if (response.has_trailer()) {
        EXPECT_EQ(response.trailer().size_bytes(), static_cast<int64_t>(bytes.size()));
        EXPECT_EQ(response.trailer().sha256(), Sha256Hex(bytes));
        steps[current] = bytes;
      } else {
        EXPECT_LE(response.chunk().size(), 1u << 20);
        bytes += response.chunk();
      }
    }
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return steps;
  }

  static std::string All(const TestStep& step) { return absl::StrJoin(step.outputs, ""); }

  absl::StatusOr<v1::Run> GetRun(const std::string& name) {
    v1::GetRunRequest request;
    request.set_name(name);
    return Call(store_.get(), &v1::StoreService::Stub::GetRun, request);
  }

  absl::Status DeleteRun(const std::string& name) {
    v1::DeleteRunRequest request;
    request.set_name(name);
    return Call(store_.get(), &v1::StoreService::Stub::DeleteRun, request).status();
  }

  // A full-model job of `composition` that ended so; its name.
  std::string RunGate(const std::string& composition, v1::Outcome outcome) {
    v1::CreateJobRequest request;
    request.mutable_spec()->set_checkpoint("synthetic:tiny");
    request.mutable_spec()->set_composition(composition);
    request.mutable_spec()->mutable_full_model();
    const absl::StatusOr<v1::Job> job = Create(request);
    EXPECT_TRUE(job.ok()) << job.status();
    v1::TaskReport report;
    report.mutable_verdict()->set_outcome(outcome);
    report.mutable_identity()->set_sha256(std::string(64, 'e'));
    report.mutable_identity()->add_parts()->set_name("kernel");
    EXPECT_TRUE(Complete(AcquireOne().lease(), report).ok());
    return job.ok() ? job->name() : "";
  }
};

TEST_F(StepsTest, OneTaskASeedWhoseStepsComeBackInOrder) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  v1::CreateJobRequest request = Generation({42, 43, 44});
  request.mutable_spec()->mutable_generation()->add_seeds(42);
  request.mutable_spec()->mutable_generation()->add_seeds(44);
  const absl::StatusOr<v1::Job> job = Create(request);
  ASSERT_TRUE(job.ok()) << job.status();
  ASSERT_EQ(job->tasks_size(), 2);
  EXPECT_EQ(job->tasks(1).title(), "seed 44");
  const v1::Assignment assignment = AcquireOne();
  EXPECT_THAT(assignment.spec().generation().seeds(), ElementsAre(42u));
  EXPECT_THAT(assignment.spec().generation().contract().seeds(), ElementsAre(42u, 43u, 44u));

  const std::string run = "runs/" + RunIdOf(42);
  const TestStep large = MakeTestStep(42, 0, "k", (3 << 20) + 17);
  for (const TestStep& step : {large, MakeTestStep(42, 1), MakeTestStep(42, 2)}) {
    const absl::StatusOr<v1::PutStepResponse> put = Put(assignment.lease(), step);
    ASSERT_TRUE(put.ok()) << put.status();
    EXPECT_EQ(put->record().run(), run);
    EXPECT_EQ(put->record().worker(), "workers/one");
    EXPECT_EQ(put->record().attempt(), 1);
    EXPECT_TRUE(put->record().has_store_time());
  }
  for (int round = 0; round < 2; ++round) {
    EXPECT_THAT(Steps(run, 0, 10),
                ElementsAre(std::pair(0, All(large)), std::pair(1, All(MakeTestStep(42, 1))),
                            std::pair(2, All(MakeTestStep(42, 2)))));
    EXPECT_THAT(Steps(run, 1, 0), ElementsAre(std::pair(1, All(MakeTestStep(42, 1)))));
    EXPECT_TRUE(Steps(run, 3, 5).empty());
    EXPECT_TRUE(Steps("runs/" + std::string(64, '0'), 0, 1).empty());
    EXPECT_EQ(Get(job->name())->tasks(0).run(), run);
    EXPECT_THAT(GetRun(run.substr(0, 20))->jobs(), ElementsAre(job->name()));
    Restart();
  }
}

TEST_F(StepsTest, RefusesStepsOfALostLeaseAndOfBadStreams) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  ASSERT_TRUE(Create(Generation({42})).ok());
  v1::Lease lease = AcquireOne().lease();
  const absl::Status bad_trailer = Put(lease, MakeTestStep(42, 0), 1).status();
  EXPECT_EQ(GetReason(bad_trailer), "DIGEST_MISMATCH") << bad_trailer;
  TestStep bad = MakeTestStep(42, 0);
  bad.header.mutable_record()->set_index(99);
  EXPECT_EQ(GetFieldViolations(Put(lease, bad).status())[0].field, "header.record.index");
  v1::Lease stale = lease;
  ASSERT_TRUE(Register(kWorker, "next process").ok());
  lease = Acquire(kWorker, "next process")->assignment().lease();
  const absl::Status refused = Put(stale, MakeTestStep(42, 0)).status();
  EXPECT_TRUE(absl::IsAborted(refused)) << refused;
  EXPECT_EQ(GetReason(refused), kLeaseLostReason);
  EXPECT_TRUE(absl::IsNotFound(GetRun("runs/" + RunIdOf(42)).status()));
  EXPECT_TRUE(Put(lease, MakeTestStep(42, 0)).ok());
  EXPECT_EQ(GetRun("runs/" + RunIdOf(42))->steps(0).attempt(), 2);
}

TEST_F(StepsTest, CountsTheStepsOfAnAttempt) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  const absl::StatusOr<v1::Job> job = Create(Generation({42}));
  const v1::Lease lease = AcquireOne().lease();
  grpc::ClientContext context;
  SetDeadline(&context);
  v1::ReportEventsResponse response;
  const auto stream = workers_->ReportEvents(&context, &response);
  v1::ReportEventsRequest request;
  request.set_task(lease.task());
  request.set_fencing_token(lease.fencing_token());
  const std::pair<int32_t, v1::StepOrigin> steps[] = {{0, v1::STEP_ORIGIN_REPLAYED},
                                                      {1, v1::STEP_ORIGIN_REPLAYED},
                                                      {1, v1::STEP_ORIGIN_RECOMPUTED},
                                                      {2, v1::STEP_ORIGIN_COMPUTED},
                                                      {2, v1::STEP_ORIGIN_COMPUTED}};
  for (const auto& [step, origin] : steps) {
    auto& event = *request.add_events();
    event.set_client_sequence(request.events_size());
    event.mutable_event()->mutable_step()->set_step(step);
    event.mutable_event()->mutable_step()->set_origin(origin);
  }
  stream->Write(request);
  stream->WritesDone();
  ASSERT_TRUE(stream->Finish().ok());
  const v1::Attempt attempt = Get(job->name())->tasks(0).attempts(0);
  EXPECT_EQ(attempt.steps_replayed(), 2);
  EXPECT_EQ(attempt.steps_recomputed(), 1);
  EXPECT_EQ(attempt.steps_computed(), 1);
}

TEST_F(StepsTest, ACandidateNeedsAGateOrIsAPreflight) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  v1::CreateJobRequest request = Generation({42});
  request.mutable_spec()->set_composition("candidate");
  EXPECT_EQ(GetFieldViolations(Create(request).status())[0].field, "spec.generation.gate");
  request.mutable_spec()->mutable_generation()->set_preflight(true);
  EXPECT_TRUE(Create(request).ok());
  EXPECT_FALSE(AcquireOne().has_gate_identity());

  v1::GenerationSpec& generation = *request.mutable_spec()->mutable_generation();
  generation.set_gate("jobs/no-such-job");
  EXPECT_EQ(GetFieldViolations(Create(request).status())[0].field, "spec.generation.gate");
  generation.set_gate(RunGate("candidate", v1::OUTCOME_FAILED));
  EXPECT_EQ(GetReason(Create(request).status()), "GATE_NOT_PASSED");
  generation.set_gate(RunGate("candidate+golden:attention", v1::OUTCOME_PASSED));
  const absl::Status differs = Create(request).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(differs)) << differs;
  EXPECT_EQ(GetReason(differs), "IDENTITY_DIFFERS");
  ASSERT_EQ(GetPreconditions(differs).size(), 1u);
  EXPECT_THAT(GetPreconditions(differs)[0].subject, HasSubstr("composition"));

  generation.set_gate(RunGate("candidate", v1::OUTCOME_PASSED));
  ASSERT_TRUE(Create(request).ok()) << Create(request).status();
  EXPECT_EQ(AcquireOne().gate_identity().sha256(), std::string(64, 'e'));
}

TEST_F(StepsTest, AGenerationWaitsForAGateThatHasNotEndedAlsoOverARestart) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  v1::CreateJobRequest gate;
  gate.mutable_spec()->set_checkpoint("synthetic:tiny");
  gate.mutable_spec()->mutable_full_model();
  const absl::StatusOr<v1::Job> first = Create(gate);
  const absl::StatusOr<v1::Job> second = Create(gate);
  ASSERT_TRUE(first.ok() && second.ok());
  v1::CreateJobRequest request = Generation({42});
  request.mutable_spec()->set_composition("candidate");
  std::vector<std::string> waiting;
  for (const auto* const each : {&*first, &*second}) {
    request.mutable_spec()->mutable_generation()->set_gate(each->name());
    const absl::StatusOr<v1::Job> job = Create(request);
    ASSERT_TRUE(job.ok()) << job.status();
    EXPECT_EQ(job->tasks(0).waiting_reason().code(), v1::WaitingReason::CODE_DEPENDENCY);
    EXPECT_THAT(job->tasks(0).waiting_reason().message(), HasSubstr(each->name()));
    EXPECT_EQ(job->tasks(0).depends_on(0), each->name());
    waiting.push_back(job->name());
  }
  // What the gate's specification shows is refused at once.
  request.mutable_spec()->set_composition("candidate+golden:attention");
  EXPECT_EQ(GetReason(Create(request).status()), "IDENTITY_DIFFERS");
  Restart();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  v1::TaskReport report = Passed();
  report.mutable_identity()->set_sha256(std::string(64, 'e'));
  report.mutable_identity()->add_parts()->set_name("kernel");
  ASSERT_TRUE(Complete(AcquireOne().lease(), report).ok());
  report.mutable_verdict()->set_outcome(v1::OUTCOME_FAILED);
  ASSERT_TRUE(Complete(AcquireOne().lease(), report).ok());
  const v1::Assignment assignment = AcquireOne();
  EXPECT_EQ(assignment.lease().task(), waiting[0] + "/tasks/0");
  EXPECT_EQ(assignment.gate_identity().sha256(), std::string(64, 'e'));
  const absl::StatusOr<v1::Job> failed = Get(waiting[1]);
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->state(), v1::JOB_STATE_FAILED);
  EXPECT_THAT(failed->error().message(), HasSubstr("did not pass"));
}

TEST_F(StepsTest, ComparesWithTheRunOfTheSameSeed) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  const absl::StatusOr<v1::Job> reference = Create(Generation({42, 43}));
  ASSERT_TRUE(reference.ok());
  v1::CreateJobRequest request = Generation({43});
  request.mutable_spec()->mutable_generation()->set_against(reference->name());
  // One that is created too early waits until that seed is there.
  const absl::StatusOr<v1::Job> early = Create(request);
  ASSERT_TRUE(early.ok()) << early.status();
  EXPECT_EQ(early->tasks(0).waiting_reason().code(), v1::WaitingReason::CODE_DEPENDENCY);
  EXPECT_EQ(early->tasks(0).depends_on(0), reference->name() + "/tasks/1");
  for (const uint64_t seed : {42, 43}) {
    const v1::Assignment assignment = AcquireOne();
    ASSERT_TRUE(assignment.against_run().empty());
    ASSERT_TRUE(Put(assignment.lease(), MakeTestStep(seed, 0)).ok());
    ASSERT_TRUE(Complete(assignment.lease(), Passed()).ok());
  }
  EXPECT_EQ(AcquireOne().against_run(), "runs/" + RunIdOf(43));
  ASSERT_TRUE(Create(request).ok()) << Create(request).status();
  EXPECT_EQ(AcquireOne().against_run(), "runs/" + RunIdOf(43));
  // It is needed although its own job has finished.
  EXPECT_EQ(GetReason(DeleteRun("runs/" + RunIdOf(43))), "RUN_IN_USE");
  request.mutable_spec()->mutable_generation()->mutable_contract()->set_width(96);
  const absl::Status other = Create(request).status();
  EXPECT_EQ(GetFieldViolations(other)[0].field, "spec.generation.against");
  EXPECT_THAT(std::string(other.message()), HasSubstr("width"));
}

TEST_F(StepsTest, NamesEveryFieldOfABadContract) {
  Start();
  v1::CreateJobRequest request = Generation({42, 42});
  v1::JobSpec& spec = *request.mutable_spec();
  v1::GenerationContract& contract = *spec.mutable_generation()->mutable_contract();
  contract.set_num_frames(0);
  contract.set_height(33);
  contract.set_width(0);
  contract.set_num_inference_steps(1);
  contract.set_video_shift(-1);
  contract.set_rng("torch-cuda:0");
  contract.set_decoder("nonsense");
  contract.set_num_audio_latents(0);
  contract.mutable_bounds()->set_ssim_min(2);
  contract.set_checkpoint_sha256("abc");
  spec.mutable_generation()->add_seeds(7);
  spec.mutable_generation()->clear_conditioning();
  spec.mutable_generation()->set_against("nonsense");
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(Create(request).status())) {
    fields.push_back(violation.field);
  }
  const std::string c = "spec.generation.contract.";
  EXPECT_THAT(fields,
              UnorderedElementsAre(c + "seeds", c + "num_frames", c + "height", c + "width",
                                   c + "num_inference_steps", c + "video_shift", c + "rng",
                                   c + "decoder", c + "num_audio_latents", c + "bounds.ssim_min",
                                   c + "checkpoint_sha256", "spec.generation.seeds[0]",
                                   "spec.generation.conditioning", "spec.generation.against"));
}

TEST_F(StepsTest, AdoptsListsVerifiesAndDeletesRuns) {
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  const absl::StatusOr<v1::Job> job = Create(Generation({1, 2}));
  const v1::Lease lease = AcquireOne().lease();
  for (const int32_t index : {0, 1}) ASSERT_TRUE(Put(lease, MakeTestStep(1, index)).ok());
  ASSERT_TRUE(Complete(lease, Passed()).ok());
  const v1::Lease second = AcquireOne().lease();
  TestStep target = MakeTestStep(1, 0);
  *target.header.mutable_identity() = MakeIdentity({"kernel=other", "seed=1"});
  target.header.clear_record();
  ASSERT_TRUE(Put(second, target).ok()) << Put(second, target).status();
  EXPECT_EQ(GetRun("runs/" + target.header.identity().sha256())->steps_size(), 0);

  v1::AdoptRunRequest adopt;
  adopt.set_name("runs/" + target.header.identity().sha256());
  adopt.set_from(RunIdOf(1));
  const auto adopted = [&] {
    return Call(store_.get(), &v1::StoreService::Stub::AdoptRun, adopt).status();
  };
  EXPECT_EQ(GetReason(adopted()), "IDENTITY_DIFFERS");
  ASSERT_EQ(GetPreconditions(adopted()).size(), 1u);
  EXPECT_EQ(GetPreconditions(adopted())[0].subject, "runs/" + RunIdOf(1) + ": kernel");

  v1::ListRunsRequest list;
  list.set_page_size(1);
  const auto page = [&] {
    return Call(store_.get(), &v1::StoreService::Stub::ListRuns, list).value();
  };
  v1::ListRunsResponse runs = page();
  EXPECT_EQ(runs.total_size_bytes(), 2 * 25000);
  ASSERT_EQ(runs.runs_size(), 1);
  EXPECT_EQ(runs.runs(0).name(), adopt.name());
  list.set_page_token(runs.next_page_token());
  runs = page();
  ASSERT_EQ(runs.runs_size(), 1);
  EXPECT_EQ(runs.runs(0).name(), "runs/" + RunIdOf(1));
  EXPECT_EQ(runs.runs(0).saved_steps(), 2);
  EXPECT_EQ(runs.next_page_token(), "");
  list = {};
  list.set_job(job->name());
  EXPECT_EQ(page().runs_size(), 2);

  v1::VerifyRunRequest verify;
  verify.set_name("runs/" + RunIdOf(1));
  EXPECT_EQ(Call(store_.get(), &v1::StoreService::Stub::VerifyRun, verify)->steps_checked(), 2);
  EXPECT_EQ(GetReason(DeleteRun(verify.name())), "RUN_IN_USE");
  ASSERT_TRUE(Complete(second, Passed()).ok());
  EXPECT_TRUE(DeleteRun(verify.name()).ok());
  EXPECT_TRUE(absl::IsNotFound(GetRun(verify.name()).status()));
  EXPECT_TRUE(Call(store_.get(), &v1::StoreService::Stub::Compact, v1::CompactRequest()).ok());
  const auto backup = Call(store_.get(), &v1::StoreService::Stub::Backup, v1::BackupRequest());
  ASSERT_TRUE(backup.ok()) << backup.status();
  EXPECT_EQ(backup->backup_id(), 1);

  std::vector<std::string> methods;
  const v1::ListAuditEventsResponse audit =
      Call(admin_.get(), &v1::AdminService::Stub::ListAuditEvents, v1::ListAuditEventsRequest())
          .value();
  for (const v1::AuditEvent& event : audit.events()) methods.push_back(event.method());
  for (const char* const method : {"StoreService/DeleteRun", "StoreService/Compact",
                                   "StoreService/Backup", "WorkerService/PutStep"}) {
    EXPECT_THAT(methods, testing::Contains(absl::StrCat("plumbline.v1.", method)));
  }
}

TEST_F(StepsTest, TheBudgetSparesWhatLiveJobsNeed) {
  options_.step_budget_bytes = 60000;
  Start();
  ASSERT_TRUE(Register(kWorker, kProcess).ok());
  ASSERT_TRUE(Create(Generation({1})).ok());
  const v1::Lease first = AcquireOne().lease();
  for (const int32_t index : {0, 1}) ASSERT_TRUE(Put(first, MakeTestStep(1, index)).ok());
  ASSERT_TRUE(Complete(first, Passed()).ok());
  ASSERT_TRUE(Create(Generation({2})).ok());
  const v1::Lease second = AcquireOne().lease();
  for (const int32_t index : {0, 1, 2}) ASSERT_TRUE(Put(second, MakeTestStep(2, index)).ok());
  EXPECT_TRUE(absl::IsNotFound(GetRun("runs/" + RunIdOf(1)).status()));
  EXPECT_EQ(GetRun("runs/" + RunIdOf(2))->saved_steps(), 3);
}

}  // namespace
}  // namespace plumbline::server
