// The rule's way through a full model: made, given, changed, sealed, refused.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "nlohmann/json.hpp"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"
#include "worker/jobs/full_model_fixture.h"

namespace plumbline::jobs {
namespace {

class FullModelRuleTest : public FullModelTest {
 protected:
  // Judges the candidate, or what `spec` says, by a rule file with this text.
  absl::StatusOr<JobResult> JudgeBy(const std::string& rule, v1::JobSpec spec = Spec(),
                                    const std::string& checkpoint = "synthetic:tiny") {
    FullModelFiles files;
    files.rule = WriteTemporary("rule.json", rule);
    spec.mutable_full_model()->mutable_rule()->set_worker_path("rule.json");
    return Run(spec, files, checkpoint);
  }

  void ExpectRefused(const absl::StatusOr<JobResult>& result, const std::string& text) {
    ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    EXPECT_TRUE(absl::StrContains(result.status().message(), text)) << result.status();
    EXPECT_TRUE(absl::StrContains(result.status().message(), "rule")) << result.status();
    EXPECT_TRUE(nodes_.empty());
  }

  // `rule` with the bound of one tensor set, as a person would edit the file.
  static std::string WithBound(const std::string& rule, const std::string& tensor, double bound) {
    nlohmann::json json = nlohmann::json::parse(rule);
    json["tensors"][tensor]["bound"] = bound;
    json["origin"] = "manual";
    return json.dump();
  }
};

TEST_F(FullModelRuleTest, FreezingRunsNoCandidateAndItsRuleJudgesLikeOneMadeHere) {
  v1::JobSpec spec = Spec();
  spec.mutable_full_model()->set_freeze_rule(true);
  const auto frozen = Run(spec);
  ASSERT_TRUE(frozen.ok()) << frozen.status();
  EXPECT_EQ(frozen->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
  EXPECT_TRUE(nodes_.empty());
  ASSERT_EQ(log_.size(), 1u);
  for (const v1::FullModelTensor& tensor : frozen->report.full_model().tensors()) {
    EXPECT_FALSE(tensor.has_candidate_error());
    EXPECT_GT(tensor.bound(), 0);
    EXPECT_EQ(tensor.provider_errors_size(), 5);
  }
  const std::string rule = ReadFile(RuleFile(*frozen), 1 << 24).value();

  const auto judged = JudgeBy(rule);
  ASSERT_TRUE(judged.ok()) << judged.status();
  EXPECT_FALSE(judged->report.full_model().rule_made_here());
  EXPECT_EQ(judged->report.verdict().outcome(), v1::OUTCOME_PASSED);
  EXPECT_EQ(ReadFile(RuleFile(*judged), 1 << 24).value(), rule);
  EXPECT_FALSE(absl::StrContains(absl::StrCat(log_.front()), "frozen"));

  const auto made = Run(Spec());
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(ReadFile(RuleFile(*made), 1 << 24).value(), rule);
  EXPECT_EQ(made->report.full_model().rule().sha256(), judged->report.full_model().rule().sha256());
  EXPECT_EQ(made->report.verdict().sentence(), judged->report.verdict().sentence());
}

TEST_F(FullModelRuleTest, NoFigureOfTheCandidateIsShownUnlessTheRuleIsDurable) {
  frozen_answer_ = absl::CancelledError("the lease is lost");
  const auto result = Run(Spec());
  EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(nodes_.empty());
}

TEST_F(FullModelRuleTest, TheKOfARuleIsTheSmallestAtWhichEveryProviderPasses) {
  const auto rule = drift::ReadRule(FrozenRule(), "rule");
  ASSERT_TRUE(rule.ok()) << rule.status();
  // By the definition, from the errors alone.
  const auto passes = [&](double k) {
    for (const v1::Rule::TensorBound& tensor : rule->tensors()) {
      const double floor = drift::IsGradientTensor(tensor.name()) ? 5e-3 : 1e-3;
      for (int held_out = 0; held_out < 5; ++held_out) {
        double largest = 0;
        for (int other = 0; other < 5; ++other) {
          if (other != held_out) largest = std::max(largest, tensor.relative_l2(other));
        }
        if (tensor.relative_l2(held_out) > k * largest + floor) return false;
      }
    }
    return true;
  };
  EXPECT_TRUE(passes(rule->k()));
  if (rule->k() > 1.0) {
    EXPECT_FALSE(passes(rule->k() - 0.1));
  }
}

TEST_F(FullModelRuleTest, ATightenedManualRuleFailsThatTensorAlone) {
  const std::string rule = FrozenRule();
  const auto passed = JudgeBy(rule);
  ASSERT_TRUE(passed.ok()) << passed.status();
  const std::string tensor = "nodes.block.1.grad";
  const double error = ByName(*passed).at(tensor).candidate_error().relative_l2();
  const std::string tightened = WithBound(rule, tensor, error / 2);
  ExpectRefused(JudgeBy(tightened), "sha256");

  const auto sealed = drift::SealRule(tightened, "rule");
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  const auto failed = JudgeBy(drift::RuleFileText(*sealed));
  ASSERT_TRUE(failed.ok()) << failed.status();
  const v1::Verdict& verdict = failed->report.verdict();
  EXPECT_EQ(verdict.outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(verdict.first_failure().entry(), tensor);
  EXPECT_EQ(verdict.first_failure().gate(), "ensemble");
  ASSERT_EQ(failed->report.full_model().failing_size(), 1);
  EXPECT_EQ(failed->report.full_model().failing(0), tensor);
  ASSERT_EQ(verdict.qualifications_size(), 1);
  EXPECT_EQ(verdict.qualifications(0), "manual rule");
  for (const v1::NodeEvent& node : nodes_) {
    EXPECT_EQ(node.failed_gates_size(), node.entry() == tensor ? 1 : 0) << node.entry();
  }
}

TEST_F(FullModelRuleTest, RefusesARuleWithOneDigitChanged) {
  const std::string rule = FrozenRule();
  const size_t at = rule.find("\"bound\":") + 12;
  std::string changed = rule;
  const size_t digit = changed.find_first_of("123456789", at);
  changed[digit] = changed[digit] == '9' ? '8' : static_cast<char>(changed[digit] + 1);
  ExpectRefused(JudgeBy(changed), "full_model.rule");
}

TEST_F(FullModelRuleTest, RefusesARuleOfAnotherCheckpointLayoutOrDevice) {
  const std::string rule = FrozenRule();
  ExpectRefused(JudgeBy(rule, Spec(), "synthetic:tiny:2"), "checkpoint");

  v1::JobSpec other_layout = Spec();
  other_layout.mutable_full_model()->mutable_layouts(0)->set_text_rows(8);
  ExpectRefused(JudgeBy(rule, other_layout), "inputs");

  // Only the device's name is changed, and the file made valid again.
  auto other = drift::ReadRule(rule, "rule");
  ASSERT_TRUE(other.ok());
  other->mutable_binds()->set_device_class("sm_90a");
  other->set_sha256(drift::RuleSha256(*other));
  const std::string text = drift::RuleFileText(*other);
  ExpectRefused(JudgeBy(text), "sm_90a");
  v1::JobSpec allowing = Spec();
  allowing.mutable_full_model()->set_allow_other_device(true);
  const auto allowed = JudgeBy(text, allowing);
  ASSERT_TRUE(allowed.ok()) << allowed.status();
  ASSERT_EQ(allowed->report.verdict().qualifications_size(), 1);
  EXPECT_TRUE(absl::StrContains(allowed->report.verdict().qualifications(0), "device"));
}

TEST_F(FullModelRuleTest, TooFewProvidersMakeNoRule) {
  v1::JobSpec spec = Spec();
  spec.mutable_full_model()->add_providers("default");
  spec.mutable_full_model()->add_providers("sdpa-math");
  const auto result = Run(spec);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
  ASSERT_FALSE(GetFieldViolations(result.status()).empty());
  EXPECT_EQ(GetFieldViolations(result.status())[0].field, "full_model.providers");
}

}  // namespace
}  // namespace plumbline::jobs
