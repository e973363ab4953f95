#include "worker/jobs/sweep.h"

#include <algorithm>
#include <set>

#include "worker/h3/transformer_graph.h"
#include "worker/jobs/block_replay_fixture.h"

namespace plumbline::jobs {
namespace {

class SweepTest : public BlockReplayTest {
 protected:
  absl::StatusOr<JobResult> RunSweepOf(const v1::JobSpec& spec) {
    const auto weights = h3::OpenCheckpoint("synthetic:tiny", {});
    if (!weights.ok()) return weights.status();
    kernel_identity_.sha256 = std::string(64, 'a');
    JobEnvironment environment;
    environment.context = context_;
    environment.kernel_identity = &kernel_identity_;
    environment.libraries = {{"openblas", "of the test"}};
    return RunSweep(spec, **weights, environment);
  }

  static v1::JobSpec Spec(std::vector<uint64_t> seeds) {
    v1::JobSpec spec;
    *spec.mutable_sweep()->add_layouts() = CaptureLayout();
    for (uint64_t seed : seeds) spec.mutable_sweep()->add_seeds(seed);
    return spec;
  }

  KernelIdentity kernel_identity_;
};

TEST_F(SweepTest, SeedZeroHasTheLeafErrorsOfABlockReplay) {
  const auto swept = RunSweepOf(Spec({0}));
  ASSERT_TRUE(swept.ok()) << swept.status();
  const auto replayed = Run(Request(CaptureLayout()), "synthetic:tiny");
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  const auto entries = ByName(*replayed);
  const v1::SweepReport& report = swept->report.sweep();
  EXPECT_EQ(report.samples_size(), 14);
  for (const v1::SweepReport::Sample& sample : report.samples()) {
    const v1::EntryReport& entry = entries.at(sample.leaf());
    EXPECT_EQ(sample.composition(), "candidate");
    EXPECT_EQ(sample.max_u(), entry.chained_error().max_u()) << sample.leaf();
    EXPECT_EQ(sample.relative_l2(), entry.chained_error().relative_l2()) << sample.leaf();
    EXPECT_EQ(sample.provider_max_u(), entry.provider_error().max_u()) << sample.leaf();
    EXPECT_TRUE(sample.passed()) << sample.leaf();
  }
  EXPECT_EQ(swept->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
}

TEST_F(SweepTest, DistributionsAreOfTheSamples) {
  const auto swept = RunSweepOf(Spec({3, 1, 2}));
  ASSERT_TRUE(swept.ok()) << swept.status();
  const v1::SweepReport& report = swept->report.sweep();
  ASSERT_EQ(report.samples_size(), 14 * 3);
  ASSERT_EQ(report.distributions_size(), 14);
  for (const v1::SweepReport::Distribution& distribution : report.distributions()) {
    std::vector<double> excess;
    for (const v1::SweepReport::Sample& sample : report.samples()) {
      if (sample.leaf() != distribution.leaf()) continue;
      excess.push_back(sample.max_u() - sample.provider_max_u());
    }
    std::sort(excess.begin(), excess.end());
    ASSERT_EQ(excess.size(), 3u);
    EXPECT_EQ(distribution.min(), excess[0]);
    EXPECT_EQ(distribution.p50(), excess[1]);
    EXPECT_NEAR(distribution.p90(), excess[1] + 0.8 * (excess[2] - excess[1]), 1e-12);
    EXPECT_EQ(distribution.max(), excess[2]);
    EXPECT_EQ(distribution.samples(), 3);
  }
  std::set<double> errors;  // seeds are different inputs
  for (const v1::SweepReport::Sample& sample : report.samples()) {
    if (sample.leaf() == "leaf.temb") errors.insert(sample.relative_l2());
  }
  EXPECT_EQ(errors.size(), 3u);
  EXPECT_EQ(progress_.total(), 3 * 3);
}

TEST_F(SweepTest, SwapsEachNodeInBothDirections) {
  v1::JobSpec spec = Spec({0});
  spec.mutable_sweep()->set_swap_each_node(true);
  const auto swept = RunSweepOf(spec);
  ASSERT_TRUE(swept.ok()) << swept.status();
  std::set<std::string> compositions;
  for (const v1::SweepReport::Sample& sample : swept->report.sweep().samples()) {
    compositions.insert(sample.composition());
  }
  EXPECT_EQ(compositions.size(), 1 + 2 * 17u);
  for (const std::string& node : h3::BlockRoles()) {
    EXPECT_EQ(compositions.count("candidate+provider/default:" + node), 1u) << node;
    EXPECT_EQ(compositions.count("provider/default+candidate:" + node), 1u) << node;
  }
}

TEST_F(SweepTest, RefusesABlockThatIsNotThere) {
  v1::JobSpec spec = Spec({0});
  spec.mutable_sweep()->set_block(2);
  const auto swept = RunSweepOf(spec);
  EXPECT_EQ(swept.status().message(), "sweep.block: there is no block 2; accepted: 0 to 1");
}

}  // namespace
}  // namespace plumbline::jobs
