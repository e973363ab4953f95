// What the coordinator makes of full-model, sweep, rule and verdict jobs: defaults, refusals,
// tasks.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/job_validation.h"

namespace plumbline::server {
namespace {

absl::Status Validate(v1::JobSpec* spec) {
  return ValidateSpec([](const std::string& name) { return name == "artifacts/known"; }, nullptr,
                      spec);
}

void ExpectRefused(v1::JobSpec spec, const std::string& field, const std::string& text) {
  const absl::Status status = Validate(&spec);
  bool found = false;
  for (const FieldViolation& violation : GetFieldViolations(status)) {
    found |= violation.field == field && absl::StrContains(violation.description, text);
  }
  EXPECT_TRUE(found) << field << ", " << text << ": " << status;
}

v1::JobSpec FullModel() {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  spec.mutable_full_model();
  return spec;
}

v1::JobSpec SweepOf(int seeds) {
  v1::JobSpec spec;
  spec.set_checkpoint("synthetic:tiny");
  v1::SweepSpec& sweep = *spec.mutable_sweep();
  for (int seed = 0; seed < seeds; ++seed) sweep.add_seeds(seed);
  return spec;
}

std::vector<store::TaskRecord> Plan(v1::JobSpec spec) {
  EXPECT_TRUE(CheckKind(spec).ok());
  EXPECT_TRUE(Validate(&spec).ok());
  v1::Job job;
  job.set_name("jobs/j");
  job.set_kind(KindOf(spec));
  *job.mutable_spec() = spec;
  return PlanTasks(job);
}

TEST(FullModelJobsTest, DefaultsAreFilledIn) {
  v1::JobSpec spec = FullModel();
  spec.set_composition("candidate+provider:block.49/swiglu,refiner.1/attention,proj_out");
  ASSERT_TRUE(Validate(&spec).ok()) << Validate(&spec);
  EXPECT_EQ(spec.composition(),
            "candidate+provider/default:block.49/swiglu,refiner.1/attention,proj_out");
  EXPECT_EQ(spec.full_model().layouts(0).name(), "tiny");
  ASSERT_EQ(spec.full_model().providers_size(), 5);
  EXPECT_EQ(spec.full_model().providers(0), "provider/default");

  v1::JobSpec captured = FullModel();
  captured.mutable_full_model()->mutable_captures()->mutable_inputs()->set_artifact(
      "artifacts/known");
  ASSERT_TRUE(Validate(&captured).ok());
  EXPECT_EQ(captured.full_model().layouts_size(), 0);

  v1::JobSpec sweep = SweepOf(0);
  ASSERT_TRUE(Validate(&sweep).ok());
  EXPECT_EQ(sweep.sweep().seeds_size(), 10);
  EXPECT_EQ(sweep.sweep().layouts_size(), 1);
}

TEST(FullModelJobsTest, BadRequestsAreRefusedByField) {
  v1::JobSpec spec = FullModel();
  spec.mutable_full_model()->add_layouts()->set_name("tiny");
  spec.mutable_full_model()->add_layouts()->set_name("small");
  ExpectRefused(spec, "spec.full_model.layouts", "one layout");

  spec = FullModel();
  spec.mutable_full_model()->add_providers("sdpa-cudnn");
  ExpectRefused(spec, "spec.full_model.providers[0]", "sdpa-efficient");
  ExpectRefused(spec, "spec.full_model.providers", "at least 3");

  spec = FullModel();
  spec.mutable_full_model()->add_providers("default");
  spec.mutable_full_model()->add_providers("provider/default");
  ExpectRefused(spec, "spec.full_model.providers[1]", "twice");

  spec = FullModel();
  spec.mutable_full_model()->set_allow_other_device(true);
  ExpectRefused(spec, "spec.full_model.allow_other_device", "with a rule");

  spec = FullModel();
  spec.mutable_full_model()->mutable_rule()->set_artifact("artifacts/unknown");
  ExpectRefused(spec, "spec.full_model.rule.artifact", "artifacts/unknown");

  spec = FullModel();
  spec.mutable_full_model()->set_freeze_rule(true);
  spec.mutable_full_model()->set_ablation(true);
  spec.set_inject("qk-heads");
  ExpectRefused(spec, "spec.full_model.ablation", "without a candidate");
  ExpectRefused(spec, "spec.inject", "without a candidate");

  spec = FullModel();
  spec.set_inject("split-by-rows");
  ExpectRefused(spec, "spec.inject", FaultNames("full-model"));

  spec = FullModel();
  spec.mutable_full_model()->add_keep("");
  ExpectRefused(spec, "spec.full_model.keep[0]", "1 to 256");

  spec = FullModel();
  spec.set_composition("candidate+provider:refiner.x/attention");
  ExpectRefused(spec, "spec.composition", "refiner.N/NODE");

  spec = SweepOf(2);
  spec.mutable_sweep()->add_seeds(1);
  ExpectRefused(spec, "spec.sweep.seeds", "each seed once");
  spec = SweepOf(41);
  spec.mutable_sweep()->set_swap_each_node(true);
  ExpectRefused(spec, "spec.sweep.seeds", "at most 40");
  spec = SweepOf(1);
  spec.set_inject("qk-heads");
  ExpectRefused(spec, "spec.inject", "nothing");

  spec.Clear();
  spec.mutable_rule();
  ExpectRefused(spec, "spec.rule", "show, seal or compare");
  spec.set_checkpoint("synthetic:tiny");
  spec.mutable_rule()->mutable_compare()->mutable_a()->set_artifact("artifacts/known");
  ExpectRefused(spec, "spec.checkpoint", "runs no model");
  ExpectRefused(spec, "spec.rule.compare.b", "names no file");

  spec.Clear();
  (*spec.mutable_verdict()->mutable_files())["folder/rule.json"].set_artifact("artifacts/known");
  ExpectRefused(spec, "spec.verdict.files", "report.json");
  ExpectRefused(spec, "spec.verdict.files", "folder/rule.json");
}

TEST(FullModelJobsTest, ReferencesNeedNoRule) {
  v1::JobSpec spec = FullModel();
  spec.set_composition("provider");
  spec.mutable_full_model()->add_providers("default");
  EXPECT_TRUE(Validate(&spec).ok());
  spec.mutable_full_model()->set_freeze_rule(true);
  ExpectRefused(spec, "spec.full_model.providers", "at least 3");
}

TEST(FullModelJobsTest, NothingIsThereTwice) {
  v1::JobSpec sweep = SweepOf(2);
  sweep.mutable_sweep()->add_layouts()->set_name("tiny");
  v1::Layout& sizes = *sweep.mutable_sweep()->add_layouts();
  sizes = ResolveLayout(sweep.sweep().layouts(0));
  sizes.clear_name();
  ExpectRefused(sweep, "spec.sweep.layouts[1]",
                "104,2,12,16,8,first is there twice, as tiny too; accepted: each layout once");
  sizes.clear_keyframes();
  EXPECT_TRUE(Validate(&sweep).ok());
  sweep.mutable_sweep()->add_seeds(1);
  ExpectRefused(sweep, "spec.sweep.seeds", "twice");

  v1::JobSpec comparison;
  v1::ComparisonSpec::GenerationPair& pair =
      *comparison.mutable_comparison()->mutable_generations();
  pair.set_a("jobs/a");
  pair.set_b("jobs/b");
  for (const char* const job : {"jobs/c", "jobs/d", "jobs/c"}) pair.add_spread(job);
  ExpectRefused(comparison, "spec.comparison.generations.spread[2]", "jobs/c is there twice");
}

TEST(FullModelJobsTest, JobsBecomeTasks) {
  std::vector<store::TaskRecord> tasks = Plan(FullModel());
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].task().title(), "layout tiny");
  EXPECT_EQ(tasks[0].task().kind(), v1::JOB_KIND_FULL_MODEL);

  v1::JobSpec sweep = SweepOf(2);
  sweep.mutable_sweep()->add_layouts()->set_name("tiny");
  sweep.mutable_sweep()->add_layouts()->set_name("small");
  tasks = Plan(sweep);
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[1].task().title(), "layout small");
  EXPECT_EQ(tasks[1].spec().sweep().layouts_size(), 1);
  EXPECT_EQ(tasks[1].spec().sweep().layouts(0).name(), "small");
  EXPECT_EQ(tasks[1].spec().sweep().seeds_size(), 2);

  v1::JobSpec rule;
  rule.mutable_rule()->mutable_show()->set_artifact("artifacts/known");
  EXPECT_EQ(Plan(rule).size(), 1u);
  v1::JobSpec verdict;
  (*verdict.mutable_verdict()->mutable_files())["report.json"].set_artifact("artifacts/known");
  EXPECT_EQ(Plan(verdict).size(), 1u);
  verdict.clear_verdict();
  (*verdict.mutable_verdict()->mutable_files())["SHA256SUMS"].set_artifact("artifacts/known");
  EXPECT_EQ(Plan(verdict).size(), 1u);
}

TEST(FullModelJobsTest, TheReleasedModelAsksForMemoryByItsCompositions) {
  v1::JobSpec spec = FullModel();
  spec.set_checkpoint("synthetic:released");
  const int64_t six = Plan(spec)[0].task().placement().memory_bytes();
  spec.mutable_full_model()->set_freeze_rule(true);
  const int64_t five = Plan(spec)[0].task().placement().memory_bytes();
  // The rows between 50 blocks of width 5376 and the values of one block, in bfloat16.
  const int64_t values = 6 * 5376 + 8 * 7168 + 3 * 14336 + 50 * 5376;
  EXPECT_EQ(six - five, 264 * values * 2);
}

}  // namespace
}  // namespace plumbline::server
