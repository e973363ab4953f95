// Jobs as clients see them, through gRPC.
#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "common/status.h"
#include "server/testing/coordinator_fixture.h"

namespace plumbline::server {
namespace {

using JobsTest = CoordinatorTest;

std::vector<std::string> ViolatedFields(const absl::Status& status) {
  std::vector<std::string> fields;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    fields.push_back(violation.field);
  }
  return fields;
}

TEST_F(JobsTest, RunsFromCreationToReport) {
  Start();
  const v1::Job job = Create(Replay({"tiny", "small"})).value();
  EXPECT_EQ(job.state(), v1::JOB_STATE_QUEUED);
  EXPECT_EQ(job.tasks_size(), 2);
  EXPECT_EQ(job.waiting_reason().code(), v1::WaitingReason::CODE_NO_WORKER);
  ASSERT_TRUE(Register("one", "i1").ok());
  for (int i = 0; i < 2; ++i) {
    const v1::Assignment task = Acquire("one", "i1")->assignment();
    ASSERT_EQ(task.lease().task(), absl::StrCat(job.name(), "/tasks/", i));
    EXPECT_EQ(task.spec().block_replay().layouts_size(), 1);
    EXPECT_EQ(Report(task.lease(), 1, 3).value(), 3);
    v1::TaskReport report = Passed();
    if (i == 1) {
      report.mutable_verdict()->set_outcome(v1::OUTCOME_FAILED);
      report.mutable_verdict()->set_sentence("FAILED: first failure q_proj (batch).");
      report.mutable_verdict()->mutable_first_failure()->set_entry("q_proj");
    }
    ASSERT_TRUE(Complete(task.lease(), report, 3).ok());
    // The same call again, as after a lost answer.
    EXPECT_TRUE(Complete(task.lease(), report, 3).ok());
  }
  const v1::Job done = Get(job.name()).value();
  EXPECT_EQ(done.state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(done.verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(done.verdict().sentence(), "layout small: FAILED: first failure q_proj (batch).");
  EXPECT_EQ(done.progress().done(), 2);

  v1::GetReportRequest ask;
  ask.set_name(job.name());
  const v1::Report report = Call(jobs_.get(), &v1::JobService::Stub::GetReport, ask)->report();
  ASSERT_EQ(report.tasks_size(), 2);
  EXPECT_EQ(report.tasks(1).title(), "layout small");
  EXPECT_EQ(report.tasks(1).attempts_size(), 1);
  EXPECT_EQ(report.verdict().outcome(), v1::OUTCOME_FAILED);
  ask.set_name(job.name() + "/tasks/0");
  EXPECT_EQ(Call(jobs_.get(), &v1::JobService::Stub::GetReport, ask)->report().tasks_size(), 1);

  const std::vector<v1::JobEvent> events = Watch(job.name(), 0);
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence(), static_cast<int64_t>(i) + 1);
  }
  EXPECT_EQ(events.back().job_state().state(), v1::JOB_STATE_SUCCEEDED);
  EXPECT_EQ(done.last_sequence(), events.back().sequence());
}

TEST_F(JobsTest, MakesOneJobForOneRequestId) {
  Start();
  const std::string name = Create(Replay({"tiny"}, "request"))->name();
  EXPECT_EQ(Create(Replay({"tiny"}, "request"))->name(), name);
  // Defaults are no difference.
  EXPECT_EQ(Create(Replay({}, "request"))->name(), name);
  EXPECT_NE(Create(Replay({"tiny"}, "another"))->name(), name);
  EXPECT_NE(Create(Replay({"tiny"}))->name(), Create(Replay({"tiny"}))->name());
  const absl::Status reused = Create(Replay({"small"}, "request")).status();
  EXPECT_TRUE(absl::IsAlreadyExists(reused)) << reused;
  EXPECT_EQ(GetReason(reused), "REQUEST_ID_REUSED");
  Restart();
  EXPECT_EQ(Create(Replay({"tiny"}, "request"))->name(), name);
}

TEST_F(JobsTest, MakesOneJobForOneRequestIdFromManyClients) {
  Start();
  std::vector<std::thread> clients;
  absl::Mutex mutex;
  std::set<std::string> names;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      const absl::StatusOr<v1::Job> job = Create(Replay({"tiny"}, "same"));
      ASSERT_TRUE(job.ok()) << job.status();
      absl::MutexLock lock(&mutex);
      names.insert(job->name());
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(names.size(), 1u);
}

TEST_F(JobsTest, RefusesBadRequestsAndLeavesNothing) {
  Start();
  struct Case {
    const char* field;
    std::function<void(v1::JobSpec*)> spoil;
  };
  const Case cases[] = {
      {"spec.block_replay.layouts[0].name",
       [](v1::JobSpec* spec) {
         spec->mutable_block_replay()->mutable_layouts(0)->set_name("enormous");
       }},
      {"spec.block_replay.layouts[1].height",
       [](v1::JobSpec* spec) {
         v1::Layout& layout = *spec->mutable_block_replay()->add_layouts();
         layout.set_text_rows(7);
         layout.set_frames(2);
         layout.set_height(-6);
         layout.set_width(8);
         layout.set_audio_latents(5);
       }},
      {"spec.block_replay.layouts[1]",
       [](v1::JobSpec* spec) { spec->mutable_block_replay()->add_layouts()->set_name("tiny"); }},
      {"spec.composition", [](v1::JobSpec* spec) { spec->set_composition("mine"); }},
      {"spec.composition",
       [](v1::JobSpec* spec) {
         spec->set_composition("candidate+plugin/" + std::string(64, 'x') + ":swiglu");
       }},
      {"spec.composition",
       [](v1::JobSpec* spec) { spec->set_composition("candidate+provider:q_prog"); }},
      {"spec.composition", [](v1::JobSpec* spec) { spec->set_composition("candidate+provider"); }},
      {"spec.inject", [](v1::JobSpec* spec) { spec->set_inject("no-such-fault"); }},
      {"spec.checkpoint", [](v1::JobSpec* spec) { spec->clear_checkpoint(); }},
      {"spec.checkpoint", [](v1::JobSpec* spec) { spec->set_checkpoint("synthetic:huge"); }},
      {"spec.checkpoint", [](v1::JobSpec* spec) { spec->set_checkpoint("a/../../etc"); }},
      {"spec.priority", [](v1::JobSpec* spec) { spec->set_priority(101); }},
      {"spec.labels", [](v1::JobSpec* spec) { (*spec->mutable_labels())["a b"] = "c"; }},
      {"spec.block_replay.block",
       [](v1::JobSpec* spec) { spec->mutable_block_replay()->set_block(-1); }},
      {"spec.block_replay.captures.golden.artifact",
       [](v1::JobSpec* spec) {
         spec->mutable_block_replay()->mutable_captures()->mutable_golden()->set_artifact(
             "artifacts/none");
       }},
      {"spec", [](v1::JobSpec* spec) { spec->clear_block_replay(); }},
  };
  for (const Case& each : cases) {
    v1::CreateJobRequest request = Replay({"tiny"});
    each.spoil(request.mutable_spec());
    const absl::Status status = Create(request).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << each.field << ": " << status;
    const std::vector<std::string> fields = ViolatedFields(status);
    EXPECT_EQ(std::count(fields.begin(), fields.end(), each.field), 1) << status;
    for (const FieldViolation& violation : GetFieldViolations(status)) {
      EXPECT_TRUE(absl::StrContains(violation.description, "accepted: ")) << status;
    }
  }
  // All at once.
  v1::CreateJobRequest request = Replay({"enormous"});
  request.mutable_spec()->set_inject("no-such-fault");
  request.mutable_spec()->set_priority(-101);
  EXPECT_EQ(ViolatedFields(Create(request).status()).size(), 3u);

  v1::ListJobsResponse jobs =
      Call(jobs_.get(), &v1::JobService::Stub::ListJobs, v1::ListJobsRequest()).value();
  EXPECT_TRUE(jobs.jobs().empty());
  const auto audit =
      Call(admin_.get(), &v1::AdminService::Stub::ListAuditEvents, v1::ListAuditEventsRequest());
  EXPECT_TRUE(audit->events().empty());
}

TEST_F(JobsTest, ChecksOnlyWhenAskedTo) {
  Start();
  v1::CreateJobRequest request = Replay({"tiny"});
  request.set_validate_only(true);
  request.mutable_spec()->set_composition("candidate+provider:attention,swiglu");
  const v1::Job job = Create(request).value();
  EXPECT_EQ(job.name(), "");
  EXPECT_EQ(job.spec().composition(), "candidate+provider/default:attention,swiglu");
  EXPECT_TRUE(
      Call(jobs_.get(), &v1::JobService::Stub::ListJobs, v1::ListJobsRequest())->jobs().empty());
}

TEST_F(JobsTest, ListsNewestFirstInPagesAndFilters) {
  Start();
  std::vector<std::string> names;
  for (int i = 0; i < 7; ++i) {
    v1::CreateJobRequest request = Replay({"tiny"});
    (*request.mutable_spec()->mutable_labels())["parity"] = i % 2 == 0 ? "even" : "odd";
    names.push_back(Create(request)->name());
  }
  v1::ListJobsRequest request;
  request.set_page_size(3);
  std::vector<std::string> listed;
  do {
    const v1::ListJobsResponse page =
        Call(jobs_.get(), &v1::JobService::Stub::ListJobs, request).value();
    EXPECT_LE(page.jobs_size(), 3);
    for (const v1::Job& job : page.jobs()) {
      listed.push_back(job.name());
      EXPECT_TRUE(job.tasks().empty());
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  std::reverse(listed.begin(), listed.end());
  EXPECT_EQ(listed, names);

  v1::ListJobsRequest odd;
  (*odd.mutable_filter()->mutable_labels())["parity"] = "odd";
  EXPECT_EQ(Call(jobs_.get(), &v1::JobService::Stub::ListJobs, odd)->jobs_size(), 3);
  v1::ListJobsRequest none;
  none.mutable_filter()->add_states(v1::JOB_STATE_FAILED);
  EXPECT_EQ(Call(jobs_.get(), &v1::JobService::Stub::ListJobs, none)->jobs_size(), 0);
  v1::ListJobsRequest text;
  text.mutable_filter()->set_text("SYNTHETIC:T");
  EXPECT_EQ(Call(jobs_.get(), &v1::JobService::Stub::ListJobs, text)->jobs_size(), 7);
  v1::ListJobsRequest bad;
  bad.set_page_size(1001);
  EXPECT_EQ(ViolatedFields(Call(jobs_.get(), &v1::JobService::Stub::ListJobs, bad).status()),
            std::vector<std::string>{"page_size"});
}

TEST_F(JobsTest, CancelsAndDeletes) {
  Start();
  const std::string name = Create(Replay({"tiny", "small"}))->name();
  ASSERT_TRUE(Register("one", "i1").ok());
  const v1::Lease lease = Acquire("one", "i1")->assignment().lease();
  v1::DeleteJobRequest deletion;
  deletion.set_name(name);
  absl::Status status = Call(jobs_.get(), &v1::JobService::Stub::DeleteJob, deletion).status();
  EXPECT_EQ(GetReason(status), "JOB_NOT_FINISHED") << status;

  v1::CancelJobRequest cancel;
  cancel.set_name(name);
  cancel.set_reason("no longer wanted");
  const v1::Job cancelled = Call(jobs_.get(), &v1::JobService::Stub::CancelJob, cancel).value();
  EXPECT_TRUE(cancelled.cancel_requested());
  EXPECT_EQ(cancelled.state(), v1::JOB_STATE_RUNNING);
  EXPECT_EQ(cancelled.tasks(1).state(), v1::JOB_STATE_CANCELLED);

  v1::HeartbeatRequest beat;
  beat.set_worker("workers/one");
  beat.set_incarnation("i1");
  v1::HeartbeatRequest::Held& held = *beat.add_held();
  held.set_task(lease.task());
  held.set_fencing_token(lease.fencing_token());
  EXPECT_EQ(Call(workers_.get(), &v1::WorkerService::Stub::Heartbeat, beat)->directives(0).action(),
            v1::HeartbeatResponse::Directive::ACTION_CANCEL);
  v1::CompleteTaskRequest stopped;
  stopped.set_task(lease.task());
  stopped.set_fencing_token(lease.fencing_token());
  stopped.mutable_failure()->set_failure_class(v1::FAILURE_CLASS_CANCELLED);
  stopped.mutable_failure()->mutable_status()->set_code(1);
  ASSERT_TRUE(Call(workers_.get(), &v1::WorkerService::Stub::CompleteTask, stopped).ok());
  EXPECT_EQ(Get(name)->state(), v1::JOB_STATE_CANCELLED);
  // Once more is fine.
  EXPECT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::CancelJob, cancel).ok());

  ASSERT_TRUE(Call(jobs_.get(), &v1::JobService::Stub::DeleteJob, deletion).ok());
  EXPECT_TRUE(absl::IsNotFound(Get(name).status()));
  EXPECT_TRUE(Watch(name, 0).empty());
}

TEST_F(JobsTest, ComparesTwoJobs) {
  Start();
  ASSERT_TRUE(Register("one", "i1").ok());
  std::vector<std::string> names;
  for (int i = 0; i < 2; ++i) {
    v1::CreateJobRequest request = Replay({"tiny"});
    request.mutable_spec()->mutable_block_replay()->set_block(i);
    if (i == 1) {
      (*request.mutable_spec()->mutable_labels())["team"] = "kernels";
      request.mutable_spec()->mutable_block_replay()->add_layouts()->set_name("small");
    }
    names.push_back(Create(request)->name());
    v1::TaskReport report = Passed();
    v1::IdentityPart& part = *report.mutable_identity()->add_parts();
    part.set_name("kernel");
    part.set_value(absl::StrCat("build ", i));
    v1::EntryReport& entry = *report.mutable_block_replay()->add_entries();
    entry.set_name("q_proj");
    entry.set_sha256("same");
    entry.mutable_chained_error()->set_relative_l2(0.25 * (i + 1));
    report.mutable_block_replay()->add_entries()->set_name(absl::StrCat("only", i));
    ASSERT_TRUE(Complete(Acquire("one", "i1")->assignment().lease(), report).ok());
  }
  v1::CompareJobsRequest request;
  request.set_a(names[0]);
  request.set_b(names[1]);
  const v1::JobComparison comparison =
      Call(jobs_.get(), &v1::JobService::Stub::CompareJobs, request).value();
  std::map<std::string, std::string> in_b;
  for (const auto& difference : comparison.spec_differences()) {
    in_b[difference.field()] = difference.b();
    EXPECT_NE(difference.a(), difference.b()) << difference.field();
  }
  EXPECT_EQ(in_b["block_replay.block"], "1");
  EXPECT_TRUE(absl::StrContains(in_b["block_replay.layouts[1].name"], "small"));
  EXPECT_TRUE(absl::StrContains(in_b["labels.team"], "kernels"));
  EXPECT_EQ(in_b.size(), 3u) << comparison.DebugString();
  ASSERT_EQ(comparison.identity_differences_size(), 1);
  EXPECT_EQ(comparison.identity_differences(0).b(), "build 1");
  ASSERT_GE(comparison.rows_size(), 1);
  EXPECT_EQ(comparison.rows(0).measure(), "chained_error.relative_l2");
  EXPECT_EQ(comparison.rows(0).a(), 0.25);
  EXPECT_EQ(comparison.rows(0).b(), 0.5);
  EXPECT_TRUE(comparison.rows(0).bytes_equal());
  EXPECT_EQ(comparison.only_a(0), "layout tiny: only0");
  EXPECT_EQ(comparison.only_b(0), "layout tiny: only1");
}

}  // namespace
}  // namespace plumbline::server
