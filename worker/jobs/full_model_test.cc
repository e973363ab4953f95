// A full model in lockstep: against the captures of the real code, and the rule's way to a verdict.
#include <cmath>

#include "absl/strings/match.h"
#include "common/safetensors.h"
#include "common/vocabulary.h"
#include "nlohmann/json.hpp"
#include "worker/jobs/full_model_fixture.h"

namespace plumbline::jobs {
namespace {

bool IsGradient(const std::string& name) {
  return absl::EndsWith(name, ".grad") || absl::StartsWith(name, "parameter.") ||
         absl::StartsWith(name, "input_gradients.");
}

TEST_F(FullModelTest, GoldenReproducesTheCapturedTransformer) {
  v1::JobSpec spec;
  spec.set_composition("golden");
  spec.mutable_full_model()->add_providers("default");
  FullModelFiles files;
  files.inputs = kCapturedInputs;
  files.golden = kFloat32Capture;
  const auto result = Run(spec, files, kCheckpoint);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::FullModelReport& report = result->report.full_model();
  ASSERT_EQ(report.tensors_size(), 92);
  EXPECT_EQ(report.captured_size(), 1);
  for (const v1::FullModelTensor& tensor : report.tensors()) {
    ASSERT_TRUE(tensor.has_candidate_error()) << tensor.name();
    EXPECT_EQ(tensor.candidate_error().incomparable(), "") << tensor.name();
    EXPECT_GT(tensor.golden_norm(), 0) << tensor.name();
    EXPECT_LE(tensor.candidate_error().relative_l2(), IsGradient(tensor.name()) ? 5e-5 : 1e-5)
        << tensor.name();
  }
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
}

TEST_F(FullModelTest, ProvidersErrorsHaveTheCapturedSizes) {
  v1::JobSpec spec;
  spec.mutable_full_model()->set_freeze_rule(true);
  FullModelFiles files;
  files.inputs = kCapturedInputs;
  const auto result = Run(spec, files, kCheckpoint);
  ASSERT_TRUE(result.ok()) << result.status();
  const nlohmann::json captured = nlohmann::json::parse(
      ReadFile("tests/golden/transformer_variant_errors.json", 1 << 20).value());
  const v1::FullModelReport& report = result->report.full_model();
  ASSERT_EQ(report.providers_size(), 5);
  int checked = 0;
  for (const v1::FullModelTensor& tensor : report.tensors()) {
    const double reference = captured["default"][tensor.name()];
    for (int i = 0; i < report.providers_size(); ++i) {
      const double error = tensor.provider_errors(i).relative_l2();
      ++checked;
      if (reference <= 1e-4) {
        EXPECT_LE(error, 1e-5) << tensor.name() << " " << report.providers(i).name();
      } else {
        EXPECT_LE(error, 1.5 * reference) << tensor.name() << " " << report.providers(i).name();
        EXPECT_GE(error, reference / 1.5) << tensor.name() << " " << report.providers(i).name();
      }
    }
  }
  EXPECT_EQ(checked, 5 * 92);
}

TEST_F(FullModelTest, TheCandidatePassesARuleMadeBeforeItsFiguresAreShown) {
  const auto result = Run(Spec());
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_PASSED) << Summary(*result);
  const v1::FullModelReport& report = result->report.full_model();
  EXPECT_TRUE(report.rule_made_here());
  ASSERT_EQ(log_.size(), 1 + 92u);
  EXPECT_EQ(log_.front(), absl::StrCat("frozen ", report.rule().sha256()));
  EXPECT_EQ(log_.back(), absl::StrCat("node ", report.tensors(91).name()));
  EXPECT_EQ(progress_.done(), progress_.total());
  EXPECT_EQ(progress_.total(), 7 * 92);
}

TEST_F(FullModelTest, EveryFaultIsFoundWhereItWasPut) {
  int faults = 0;
  for (const FaultInfo& fault : Faults()) {
    if (fault.job != "full-model") continue;
    ++faults;
    v1::JobSpec spec = Spec();
    spec.set_inject(std::string(fault.name));
    const auto result = Run(spec);
    ASSERT_TRUE(result.ok()) << fault.name << ": " << result.status();
    EXPECT_TRUE(result->report.control().caught()) << fault.name << "\n" << Summary(*result);
    EXPECT_EQ(result->report.verdict().first_failure().entry(), fault.expected_entry);
  }
  EXPECT_EQ(faults, 7);
}

}  // namespace
}  // namespace plumbline::jobs
