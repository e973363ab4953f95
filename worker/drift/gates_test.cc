#include "worker/drift/gates.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace plumbline::drift {
namespace {

BlockEntry Entry(const std::string& name, v1::EntryKind kind, bool sums_rows = false) {
  BlockEntry entry;
  entry.name = name;
  entry.role = name;
  entry.kind = kind;
  entry.sums_rows = sums_rows;
  return entry;
}

v1::TensorComparison Comparison(double relative_l2) {
  v1::TensorComparison comparison;
  comparison.set_relative_l2(relative_l2);
  comparison.set_bitwise_equal(relative_l2 == 0);
  comparison.set_norm(1);
  comparison.set_reference_norm(1);
  comparison.set_dtype("BF16");
  return comparison;
}

// A report in which everything is as near as can be: provider's error 4e-3.
v1::EntryReport Good(const BlockEntry& entry) {
  v1::EntryReport report;
  report.set_name(entry.name);
  report.set_kind(entry.kind);
  report.mutable_repeat()->set_result(v1::EQUALITY_EQUAL);
  if (!entry.sums_rows) report.mutable_batch()->set_result(v1::EQUALITY_EQUAL);
  *report.mutable_chained() = Comparison(0);
  *report.mutable_isolated() = Comparison(0);
  *report.mutable_chained_error() = Comparison(4e-3);
  *report.mutable_isolated_error() = Comparison(4e-3);
  *report.mutable_provider_error() = Comparison(4e-3);
  return report;
}

std::vector<std::string> Gates(const v1::EntryReport& report) {
  std::vector<std::string> names;
  for (const v1::GateResult& gate : report.gates()) names.push_back(gate.gate());
  return names;
}

// The first gate that fails, "" if the entry passes.
std::string FirstFailed(const BlockEntry& entry, v1::EntryReport report, bool executed = true) {
  JudgeEntry(entry, CandidateKind::kExecuted, executed, &report);
  const v1::Verdict verdict = JudgeReplay({report}, "tiny", {});
  EXPECT_EQ(report.passed(), verdict.outcome() == v1::OUTCOME_PASSED);
  return verdict.first_failure().gate();
}

TEST(Gates, AreTriedInTheListedOrder) {
  using Names = std::vector<std::string>;
  const BlockEntry norm = Entry("norm1", v1::ENTRY_KIND_FORWARD);
  v1::EntryReport report = Good(norm);
  JudgeEntry(norm, CandidateKind::kExecuted, true, &report);
  EXPECT_EQ(Gates(report), (Names{"executed", "repeat", "batch", "finite", "isolated_bitwise",
                                  "isolated_error", "chained_error"}));
  const BlockEntry product = Entry("q_proj", v1::ENTRY_KIND_FORWARD);
  report = Good(product);
  JudgeEntry(product, CandidateKind::kExecuted, true, &report);
  EXPECT_EQ(Gates(report), (Names{"executed", "repeat", "batch", "finite", "isolated_relative_l2",
                                  "isolated_error", "chained_error"}));
  const BlockEntry gradient = Entry("adaln_projection.grad", v1::ENTRY_KIND_GRADIENT, true);
  report = Good(gradient);
  JudgeEntry(gradient, CandidateKind::kExecuted, true, &report);
  EXPECT_EQ(Gates(report),
            (Names{"executed", "repeat", "finite", "zero", "isolated_error", "chained_error"}));
  const BlockEntry leaf = Entry("leaf.input", v1::ENTRY_KIND_LEAF);
  report = Good(leaf);
  JudgeEntry(leaf, CandidateKind::kExecuted, true, &report);
  EXPECT_EQ(Gates(report), (Names{"executed", "repeat", "batch", "finite", "zero", "leaf_error"}));
  EXPECT_TRUE(report.passed());
}

TEST(Gates, InvarianceComesBeforeAccuracy) {
  const BlockEntry entry = Entry("q_proj", v1::ENTRY_KIND_FORWARD);
  v1::EntryReport report = Good(entry);
  *report.mutable_isolated() = Comparison(0.5);
  *report.mutable_chained_error() = Comparison(0.5);
  EXPECT_EQ(FirstFailed(entry, report), "isolated_relative_l2");
  report.mutable_batch()->set_result(v1::EQUALITY_DIFFERENT);
  EXPECT_EQ(FirstFailed(entry, report), "batch");
  report.mutable_repeat()->set_result(v1::EQUALITY_DIFFERENT);
  EXPECT_EQ(FirstFailed(entry, report), "repeat");
  EXPECT_EQ(FirstFailed(entry, report, /*executed=*/false), "executed");
}

TEST(Gates, HoldNodesToTheBoundsOfTheSpecification) {
  for (const char* role : {"norm1", "norm2", "q_norm", "k_norm", "rope_q", "rope_k",
                           "residual_attn", "residual_mlp"}) {
    const BlockEntry entry = Entry(role, v1::ENTRY_KIND_FORWARD);
    v1::EntryReport report = Good(entry);
    *report.mutable_isolated() = Comparison(1e-9);
    EXPECT_EQ(FirstFailed(entry, report), "isolated_bitwise") << role;
  }
  for (const char* role : {"adaln_projection", "q_proj", "k_proj", "v_proj", "o_proj",
                           "ffn_gate_up", "ffn_down", "swiglu"}) {
    const BlockEntry entry = Entry(role, v1::ENTRY_KIND_FORWARD);
    v1::EntryReport report = Good(entry);
    *report.mutable_isolated() = Comparison(1e-3);
    EXPECT_EQ(FirstFailed(entry, report), "") << role;
    *report.mutable_isolated() = Comparison(1.001e-3);
    EXPECT_EQ(FirstFailed(entry, report), "isolated_relative_l2") << role;
  }
  // Attention may differ from the provider as long as it errs no more: 1.25 * 4e-3 + 1e-3 = 6e-3.
  const BlockEntry attention = Entry("attention", v1::ENTRY_KIND_FORWARD);
  v1::EntryReport report = Good(attention);
  *report.mutable_isolated() = Comparison(0.5);
  *report.mutable_chained_error() = Comparison(5.999e-3);
  EXPECT_EQ(FirstFailed(attention, report), "");
  *report.mutable_chained_error() = Comparison(6.001e-3);
  EXPECT_EQ(FirstFailed(attention, report), "chained_error");
  *report.mutable_isolated_error() = Comparison(6.001e-3);
  EXPECT_EQ(FirstFailed(attention, report), "isolated_error");
}

TEST(Gates, HoldGradientsToTheBoundsOfTheSpecification) {
  // 1.5 * 4e-3 + 5e-3 = 1.1e-2.
  const BlockEntry gradient = Entry("q_proj.grad", v1::ENTRY_KIND_GRADIENT);
  v1::EntryReport report = Good(gradient);
  *report.mutable_chained_error() = Comparison(1.0999e-2);
  EXPECT_EQ(FirstFailed(gradient, report), "");
  *report.mutable_chained_error() = Comparison(1.1001e-2);
  EXPECT_EQ(FirstFailed(gradient, report), "chained_error");
}

TEST(Gates, ABfloat16LeafHasASecondChance) {
  const BlockEntry leaf = Entry("leaf.norm1.weight", v1::ENTRY_KIND_LEAF, true);
  v1::EntryReport report = Good(leaf);
  report.mutable_provider_error()->set_max_abs(0.25);
  v1::TensorComparison& error = *report.mutable_chained_error();
  error.set_relative_l2(0.5);
  // u = 1/128: up to 0.25 + 6 / 128.
  error.set_max_abs(0.25 + 6.0 / 128);
  error.set_max_u(error.max_abs() * 128);
  JudgeEntry(leaf, CandidateKind::kExecuted, true, &report);
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.gates(4).passed_by(), "max_abs <= provider + 6u");
  error.set_max_abs(0.25 + 6.5 / 128);
  error.set_max_u(error.max_abs() * 128);
  EXPECT_EQ(FirstFailed(leaf, report), "leaf_error");
  // Not for float32.
  error.set_max_abs(0.25);
  error.set_max_u(32);
  error.set_dtype("F32");
  EXPECT_EQ(FirstFailed(leaf, report), "leaf_error");
}

TEST(Gates, NothingThatIsNotFiniteOrZeroPasses) {
  const BlockEntry gradient = Entry("norm2.grad", v1::ENTRY_KIND_GRADIENT);
  v1::EntryReport report = Good(gradient);
  report.mutable_isolated_error()->mutable_nonfinite()->set_nan(1);
  EXPECT_EQ(FirstFailed(gradient, report), "finite");
  report = Good(gradient);
  report.mutable_chained_error()->set_relative_l2(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(FirstFailed(gradient, report), "chained_error");
  report = Good(gradient);
  report.mutable_chained_error()->set_norm(0);
  EXPECT_EQ(FirstFailed(gradient, report), "zero");
  report.mutable_chained_error()->set_reference_norm(0);
  EXPECT_EQ(FirstFailed(gradient, report), "");
}

TEST(Gates, ACapturedCandidateIsPartial) {
  const BlockEntry entry = Entry("norm1", v1::ENTRY_KIND_FORWARD);
  v1::EntryReport report = Good(entry);
  report.clear_isolated();
  report.clear_isolated_error();
  report.mutable_repeat()->set_result(v1::EQUALITY_NOT_MEASURED);
  report.mutable_batch()->set_result(v1::EQUALITY_NOT_MEASURED);
  JudgeEntry(entry, CandidateKind::kCaptured, true, &report);
  EXPECT_TRUE(report.passed());
  const v1::Verdict verdict = JudgeReplay({report}, "tiny", {});
  EXPECT_EQ(verdict.outcome(), v1::OUTCOME_PARTIAL);
  ASSERT_EQ(verdict.qualifications_size(), 3);
  EXPECT_EQ(verdict.qualifications(2), "isolated not measured");

  *report.mutable_chained_error() = Comparison(1);
  JudgeEntry(entry, CandidateKind::kCaptured, true, &report);
  EXPECT_EQ(JudgeReplay({report}, "tiny", {}).outcome(), v1::OUTCOME_FAILED);
}

TEST(Verdict, NamesTheFirstFailureInExecutionOrder) {
  const BlockEntry norm = Entry("norm1", v1::ENTRY_KIND_FORWARD);
  const BlockEntry product = Entry("q_proj", v1::ENTRY_KIND_FORWARD);
  std::vector<v1::EntryReport> entries = {Good(norm), Good(product), Good(product)};
  for (size_t i : {1, 2}) *entries[i].mutable_isolated() = Comparison(0.25);
  for (v1::EntryReport& entry : entries) {
    JudgeEntry(entry.name() == "norm1" ? norm : product, CandidateKind::kExecuted, true, &entry);
  }
  const v1::Verdict verdict = JudgeReplay(entries, "tiny", {"hybrid composition: diagnostic only"});
  EXPECT_EQ(verdict.sentence(),
            "FAILED: tiny: first failure q_proj (isolated_relative_l2: 0.25 where 0.001 is "
            "allowed); 2 of 3 tensors fail (hybrid composition: diagnostic only).");
  EXPECT_EQ(verdict.first_failure().where(), "tiny");
}

TEST(Firsts, AreTheFirstEntriesWhoseBytesDiffer) {
  const BlockEntry norm = Entry("norm1", v1::ENTRY_KIND_FORWARD);
  const BlockEntry gradient = Entry("norm1.grad", v1::ENTRY_KIND_GRADIENT);
  std::vector<v1::EntryReport> entries = {Good(norm), Good(gradient)};
  *entries[1].mutable_chained() = Comparison(0.1);
  entries[1].mutable_repeat()->set_result(v1::EQUALITY_DIFFERENT);
  v1::Firsts firsts = FindFirsts(entries, CandidateKind::kExecuted, /*backward=*/true);
  EXPECT_EQ(firsts.first_drift(), "norm1.grad");
  EXPECT_EQ(firsts.first_isolated_drift(), "");
  EXPECT_EQ(firsts.first_repeat_drift(), "");
  EXPECT_EQ(firsts.first_grad_repeat_drift(), "norm1.grad");
  EXPECT_EQ(firsts.first_grad_batch_drift(), "");
  firsts = FindFirsts(entries, CandidateKind::kCaptured, true);
  EXPECT_FALSE(firsts.has_first_isolated_drift());
  EXPECT_FALSE(firsts.has_first_batch_drift());
}

}  // namespace
}  // namespace plumbline::drift
