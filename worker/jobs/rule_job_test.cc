#include "worker/jobs/rule_job.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/evidence/bundle.h"
#include "nlohmann/json.hpp"
#include "worker/drift/rule_file.h"
#include "worker/jobs/full_model_fixture.h"

namespace plumbline::jobs {
namespace {

class RuleJobTest : public FullModelTest {
 protected:
  absl::StatusOr<JobResult> RunOperation(const v1::RuleSpec& spec, const std::string& a,
                                         const std::string& b = "") {
    return RunRule(spec, a, b, environment_.output_folder);
  }

  // A finished full model's bundle, each file where a worker would have fetched it.
  std::map<std::string, std::string> Bundle(const v1::JobSpec& spec) {
    const auto result = Run(spec);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    v1::Report report;
    report.set_job("jobs/j");
    report.set_kind(v1::JOB_KIND_FULL_MODEL);
    report.set_state(v1::JOB_STATE_SUCCEEDED);
    *report.mutable_spec() = spec;
    *report.mutable_verdict() = result->report.verdict();
    *report.add_tasks() = result->report;
    report.mutable_tasks(0)->set_title("layout of the captures");
    std::vector<std::string> rules;
    const std::string rule = RuleFile(*result);
    if (!rule.empty()) rules.push_back(ReadFile(rule, 1 << 24).value());
    const auto files = MakeBundle(report, rules);
    EXPECT_TRUE(files.ok()) << files.status();
    std::map<std::string, std::string> paths;
    for (const auto& [name, text] : *files) paths[name] = WriteTemporary(name, text);
    return paths;
  }
};

TEST_F(RuleJobTest, ShowsSealsAndCompares) {
  const std::string text = FrozenRule();
  const std::string rule = WriteTemporary("a.json", text);
  v1::RuleSpec show, seal, compare;
  show.mutable_show();
  seal.mutable_seal();
  compare.mutable_compare();

  const auto shown = RunOperation(show, rule);
  ASSERT_TRUE(shown.ok()) << shown.status();
  EXPECT_EQ(shown->report.rule().rule().tensors_size(), 92);
  EXPECT_EQ(shown->report.rule().rule().origin(), v1::RULE_ORIGIN_FROZEN);

  nlohmann::json json = nlohmann::json::parse(text);
  json["tensors"]["nodes.block.0"]["bound"] = 0.5;
  const std::string edited = WriteTemporary("b.json", json.dump());
  const auto refused = RunOperation(show, edited);
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(absl::StartsWith(refused.status().message(), "rule.show")) << refused.status();

  const auto sealed = RunOperation(seal, edited);
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  EXPECT_EQ(sealed->report.rule().rule().origin(), v1::RULE_ORIGIN_MANUAL);
  ASSERT_EQ(sealed->files.size(), 1u);
  EXPECT_EQ(sealed->files[0].role, v1::ARTIFACT_ROLE_RULE);

  const auto compared = RunOperation(compare, rule, sealed->files[0].path);
  ASSERT_TRUE(compared.ok()) << compared.status();
  const v1::RuleReport& report = compared->report.rule();
  ASSERT_EQ(report.bounds_size(), 92);
  EXPECT_EQ(report.bounds(0).tensor(), "nodes.block.0");
  EXPECT_EQ(report.bounds(0).other_bound(), 0.5);
}

TEST_F(RuleJobTest, AVerdictIsRecomputedFromFilesAlone) {
  for (const char* fault : {"", "rope-128"}) {
    v1::JobSpec spec = Spec();
    spec.set_inject(fault);
    const auto paths = Bundle(spec);
    const auto result = RunVerdict(paths);
    ASSERT_TRUE(result.ok()) << result.status();
    const v1::VerdictReport& report = result->report.recomputed_verdict();
    EXPECT_TRUE(report.agrees()) << result->report.verdict().sentence();
    EXPECT_EQ(result->report.verdict().outcome(),
              *fault == 0 ? v1::OUTCOME_PASSED : v1::OUTCOME_FAILED);
    EXPECT_EQ(result->report.verdict().sentence(), report.recorded().sentence());
  }
}

TEST_F(RuleJobTest, FrozenRulesAndReferencesAgreeToo) {
  v1::JobSpec frozen = Spec();
  frozen.mutable_full_model()->set_freeze_rule(true);
  v1::JobSpec golden = Spec();
  golden.set_composition("golden");
  for (const v1::JobSpec& spec : {frozen, golden}) {
    const auto result = RunVerdict(Bundle(spec));
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->report.recomputed_verdict().agrees());
    EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
  }
}

TEST_F(RuleJobTest, ABundleWhoseVerdictWasChangedFails) {
  v1::JobSpec spec = Spec();
  spec.set_inject("rope-128");
  auto paths = Bundle(spec);
  const std::string text = ReadFile(paths.at(kBundleReport), 1 << 26).value();
  paths[kBundleReport] = WriteTemporary(
      "forged.json", absl::StrReplaceAll(text, {{"OUTCOME_FAILED", "OUTCOME_PASSED"}}));
  const auto result = RunVerdict(paths);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_FALSE(result->report.recomputed_verdict().agrees());
  EXPECT_EQ(result->report.verdict().first_failure().entry(), kBundleReport);
}

}  // namespace
}  // namespace plumbline::jobs
