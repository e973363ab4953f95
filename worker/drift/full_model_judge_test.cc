// A candidate made of PyTorch's own figures at the released size, then spoiled in every way that a
// gate must find.
#include "worker/drift/full_model_judge.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/status.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"
#include "worker/drift/rule_freeze.h"
#include "worker/drift/rule_test_data.h"
#include "worker/drift/trace_check.h"

namespace plumbline::drift {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class JudgeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto rule = FreezeRule(PyTorchProviders(), TestBinds());
    ASSERT_TRUE(rule.ok()) << rule.status();
    rule_ = *std::move(rule);
    report_ = PyTorchReport(rule_);
    ASSERT_EQ(report_.tensors_size(), 764);
  }

  v1::FullModelTensor& Tensor(const std::string& name) {
    for (v1::FullModelTensor& tensor : *report_.mutable_tensors()) {
      if (tensor.name() == name) return tensor;
    }
    ADD_FAILURE() << name;
    return *report_.mutable_tensors(0);
  }

  v1::Verdict Judge(std::vector<std::string> qualifications = {}) {
    const auto verdict = JudgeFullModel(rule_, "small", std::move(qualifications), &report_);
    EXPECT_TRUE(verdict.ok()) << verdict.status();
    return *verdict;
  }

  void ExpectFailure(const v1::Verdict& verdict, const std::string& entry,
                     const std::string& gate) {
    EXPECT_EQ(verdict.outcome(), v1::OUTCOME_FAILED) << verdict.sentence();
    EXPECT_EQ(verdict.first_failure().entry(), entry);
    EXPECT_EQ(verdict.first_failure().gate(), gate);
    EXPECT_EQ(verdict.first_failure().where(), "small");
    EXPECT_THAT(verdict.sentence(), StartsWith("FAILED: small: first failure " + entry));
  }

  v1::Rule rule_;
  v1::FullModelReport report_;
};

TEST_F(JudgeTest, AProviderPassesItsOwnEnsemble) {
  const v1::Verdict verdict = Judge();
  EXPECT_EQ(verdict.outcome(), v1::OUTCOME_PASSED) << verdict.sentence();
  EXPECT_THAT(verdict.sentence(), HasSubstr("all 764 tensors pass; worst ratio 0."));
  EXPECT_THAT(verdict.qualifications(), IsEmpty());
  EXPECT_THAT(report_.failing(), IsEmpty());
  EXPECT_THAT(report_.missing(), IsEmpty());
  EXPECT_EQ(report_.firsts().first_drift(), "");
  EXPECT_EQ(report_.rule().sha256(), rule_.sha256());
  EXPECT_EQ(report_.rule().tensors_size(), 0);
  EXPECT_EQ(report_.rule().leave_one_out_size(), 10);
  EXPECT_EQ(report_.single_provider_verdict().outcome(), v1::OUTCOME_PASSED);
  double worst = 0;
  for (const v1::FullModelTensor& tensor : report_.tensors()) {
    EXPECT_TRUE(tensor.passed()) << tensor.name();
    EXPECT_EQ(tensor.bound_ratio(), tensor.candidate_error().relative_l2() / tensor.bound());
    worst = std::max(worst, tensor.bound_ratio());
  }
  EXPECT_EQ(report_.worst_ratio(), worst);
  EXPECT_EQ(Tensor(report_.worst_tensor()).bound_ratio(), worst);
}

TEST_F(JudgeTest, JudgingAgainChangesNothing) {
  Tensor("nodes.block.7").mutable_candidate_error()->set_relative_l2(1);
  Judge();
  const v1::FullModelReport once = report_;
  Judge();
  EXPECT_TRUE(MessageDifferencer::Equals(once, report_));
}

TEST_F(JudgeTest, ATensorOverItsBoundFailsAndOnlyThat) {
  v1::FullModelTensor& tensor = Tensor("nodes.block.7");
  Judge();
  tensor.mutable_candidate_error()->set_relative_l2(tensor.bound());
  EXPECT_EQ(Judge().outcome(), v1::OUTCOME_PASSED);
  tensor.mutable_candidate_error()->set_relative_l2(std::nextafter(tensor.bound(), 1));
  ExpectFailure(Judge(), "nodes.block.7", "ensemble");
  EXPECT_THAT(report_.failing(), ElementsAre("nodes.block.7"));
  EXPECT_EQ(report_.worst_tensor(), "nodes.block.7");
  EXPECT_GT(report_.worst_ratio(), 1);
}

TEST_F(JudgeTest, ATightenedManualRuleFailsThatTensorAlone) {
  for (v1::Rule::TensorBound& bound : *rule_.mutable_tensors()) {
    if (bound.name() != "nodes.block.31.grad") continue;
    bound.set_bound(0.9 * Tensor(bound.name()).candidate_error().relative_l2());
  }
  EXPECT_FALSE(ReadRule(RuleFileText(rule_), "rule.json").ok());
  auto sealed = SealRule(RuleFileText(rule_), "rule.json");
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  auto read = ReadRule(RuleFileText(*sealed), "rule.json");
  ASSERT_TRUE(read.ok()) << read.status();
  rule_ = *std::move(read);
  const v1::Verdict verdict = Judge();
  ExpectFailure(verdict, "nodes.block.31.grad", "ensemble");
  EXPECT_THAT(report_.failing(), ElementsAre("nodes.block.31.grad"));
  EXPECT_THAT(verdict.qualifications(), ElementsAre("manual rule"));
  EXPECT_THAT(verdict.sentence(), HasSubstr("(manual rule)"));
}

TEST_F(JudgeTest, FirstFailureIsTheFirstInExecutionOrder) {
  for (const char* name : {"parameter.transformer_blocks.0.attn.to_q.weight", "nodes.block.3.grad",
                           "nodes.block.20.grad", "input_gradients.hidden_states"}) {
    Tensor(name).mutable_candidate_error()->set_relative_l2(1);
  }
  Tensor("nodes.block.40").mutable_candidate_drift()->set_bitwise_equal(false);
  Tensor("nodes.block.2.grad").mutable_candidate_drift()->set_bitwise_equal(false);
  ExpectFailure(Judge(), "nodes.block.20.grad", "ensemble");
  EXPECT_THAT(report_.failing(), ElementsAre("nodes.block.20.grad", "nodes.block.3.grad",
                                             "parameter.transformer_blocks.0.attn.to_q.weight",
                                             "input_gradients.hidden_states"));
  EXPECT_EQ(report_.firsts().first_drift(), "nodes.block.40");
  Tensor("nodes.proj_in").mutable_candidate_error()->set_relative_l2(1);
  ExpectFailure(Judge(), "nodes.proj_in", "ensemble");
}

TEST_F(JudgeTest, AZeroGradientFailsWhateverItsBound) {
  const std::string name = "parameter.transformer_blocks.0.attn.to_q.weight";
  for (v1::Rule::TensorBound& bound : *rule_.mutable_tensors()) {
    if (bound.name() == name) bound.set_bound(2);
  }
  rule_.set_origin(v1::RULE_ORIGIN_MANUAL);
  v1::TensorComparison& error = *Tensor(name).mutable_candidate_error();
  error.set_norm(0);
  error.set_relative_l2(1);
  ExpectFailure(Judge(), name, "zero");
  error.set_reference_norm(0);  // zero as it should be
  error.set_relative_l2(0);
  EXPECT_EQ(Judge().outcome(), v1::OUTCOME_PASSED);
  // A forward tensor is held to its bound alone.
  Tensor("nodes.time_proj").mutable_candidate_error()->set_norm(0);
  EXPECT_EQ(Judge().outcome(), v1::OUTCOME_PASSED);
}

TEST_F(JudgeTest, WhatIsNotFiniteFailsOnEitherSide) {
  v1::TensorComparison& error = *Tensor("nodes.block.5").mutable_candidate_error();
  error.mutable_nonfinite()->set_nan(1);
  error.set_relative_l2(std::numeric_limits<double>::quiet_NaN());
  ExpectFailure(Judge(), "nodes.block.5", "finite");
  EXPECT_EQ(report_.worst_ratio(), std::numeric_limits<double>::infinity());
  error.clear_nonfinite();
  error.mutable_nonfinite()->set_reference_infinity(1);
  ExpectFailure(Judge(), "nodes.block.5", "finite");
  error.clear_nonfinite();
  ExpectFailure(Judge(), "nodes.block.5", "ensemble");  // a NaN is within no bound
  EXPECT_FALSE(Tensor("nodes.block.5").single_provider_passed());
}

TEST_F(JudgeTest, MissingMisshapenAndExtraTensorsFail) {
  report_.add_extra("nodes.block.50");
  ExpectFailure(Judge(), "nodes.block.50", "shape");
  EXPECT_THAT(report_.failing(), ElementsAre("nodes.block.50"));
  Tensor("output.audio").mutable_candidate_error()->set_incomparable("shape (2) against (3)");
  ExpectFailure(Judge(), "output.audio", "shape");
  Tensor("output.video").clear_candidate_error();
  const v1::Verdict verdict = Judge();
  ExpectFailure(verdict, "output.video", "shape");
  EXPECT_THAT(report_.missing(), ElementsAre("output.video"));
  EXPECT_THAT(report_.failing(), ElementsAre("output.video", "output.audio", "nodes.block.50"));
  EXPECT_THAT(verdict.sentence(), HasSubstr("3 of 765 tensors fail"));
}

TEST_F(JudgeTest, NodesThatDidNotExecuteFailWhereTheirWorkEnters) {
  report_.mutable_trace()->add_not_executed("block.13/attention");
  ExpectFailure(Judge(), "nodes.block.13", "executed");
  EXPECT_THAT(report_.failing(), ElementsAre("nodes.block.13"));
  report_.mutable_trace()->add_not_executed("refiner.1/swiglu");
  ExpectFailure(Judge(), "nodes.token_refiner.refiner_blocks.1", "executed");
  report_.mutable_trace()->add_not_executed("somewhere/else");
  ExpectFailure(Judge(), "nodes.proj_in", "executed");
}

TEST_F(JudgeTest, AFallbackFailsEveryBlock) {
  v1::ImplementationTrace::Group& group = *report_.mutable_trace()->add_groups();
  group.set_requested("candidate");
  group.set_actual("provider/default");
  group.add_nodes("block.*/swiglu");
  ExpectFailure(Judge(), "nodes.block.0", "executed");
  EXPECT_EQ(report_.failing_size(), 50);
}

TEST_F(JudgeTest, ATraceThatSaysNothingFailsEverything) {
  report_.clear_trace();
  ExpectFailure(Judge(), "nodes.proj_in", "executed");
  EXPECT_EQ(Tensor("nodes.block.49").gates(0).value(), 1);
}

TEST_F(JudgeTest, ACapturedCandidateIsPartial) {
  report_.clear_trace();
  report_.add_captured("candidate");
  const v1::Verdict verdict = Judge({"rule of another device class: a, not b"});
  EXPECT_EQ(verdict.outcome(), v1::OUTCOME_PARTIAL) << verdict.sentence();
  EXPECT_THAT(verdict.qualifications(),
              ElementsAre("rule of another device class: a, not b", "executed not measured"));
  EXPECT_THAT(verdict.sentence(), HasSubstr("(rule of another device class: a, not b; executed"));
  Tensor("nodes.block.5").mutable_candidate_error()->set_relative_l2(1);
  ExpectFailure(Judge(), "nodes.block.5", "ensemble");
}

TEST_F(JudgeTest, TheSingleProviderRuleStandsBeside) {
  v1::FullModelTensor& tensor = Tensor("nodes.block.9");
  const v1::TensorComparison& reference = tensor.provider_errors(0);
  Judge();
  EXPECT_EQ(tensor.single_provider_bound(), 1.5 * reference.relative_l2() + 0.001);
  EXPECT_EQ(tensor.single_provider_max_abs_bound(), 1.5 * reference.max_abs() + 0.001);
  EXPECT_EQ(Tensor("nodes.block.9.grad").single_provider_bound(),
            1.5 * Tensor("nodes.block.9.grad").provider_errors(0).relative_l2() + 0.005);
  // Largest differences are not gated by the ensemble.
  tensor.mutable_candidate_error()->set_max_abs(2 * reference.max_abs());
  EXPECT_EQ(Judge().outcome(), v1::OUTCOME_PASSED);
  EXPECT_EQ(report_.single_provider_verdict().outcome(), v1::OUTCOME_FAILED);
  EXPECT_THAT(report_.single_provider_verdict().sentence(),
              HasSubstr("1 of 764 tensors fail the single-provider rule, the first nodes.block.9"));
  report_.mutable_providers(0)->set_name("provider/other");
  Judge();
  EXPECT_EQ(report_.single_provider_verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
}

TEST_F(JudgeTest, ARuleOfOtherTensorsIsAnError) {
  report_.mutable_tensors(3)->set_name("nodes.unheard");
  const absl::Status status = JudgeFullModel(rule_, "small", {}, &report_).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nodes.unheard"));
}

TEST_F(JudgeTest, AReportHoldsWhatItsRuleWasMadeFrom) {
  const auto rule = FreezeRule(ProviderErrorsOf(report_), TestBinds());
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->sha256(), rule_.sha256());
  EXPECT_EQ(RuleFrozenVerdict(rule_, "small").sentence(),
            "NOT JUDGED: small: a rule was frozen from 5 providers, k 1.1 over 764 tensors.");
}

TEST(RanAsRequestedTest, AFusedOperationIsTheRequestedImplementation) {
  EXPECT_TRUE(RanAsRequested("candidate", "candidate"));
  EXPECT_TRUE(RanAsRequested("candidate", "candidate/norm1_q_proj"));
  EXPECT_FALSE(RanAsRequested("candidate", "candidate2"));
  EXPECT_FALSE(RanAsRequested("candidate", "provider/default"));
  EXPECT_FALSE(RanAsRequested("provider/default", "provider/sdpa-math"));
  EXPECT_FALSE(RanAsRequested("candidate", ""));
  EXPECT_FALSE(RanAsRequested("", ""));
}

}  // namespace
}  // namespace plumbline::drift
