// Verdicts recomputed from files: a bundle agrees with itself, and every change of a file shows.
#include "worker/drift/bundle_verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/evidence/combine_verdicts.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/drift/full_model_judge.h"
#include "worker/drift/generation_verdict.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"
#include "worker/drift/rule_freeze.h"
#include "worker/drift/rule_test_data.h"
#include "worker/jobs/block_replay_fixture.h"

namespace plumbline::drift {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Files that are not as SHA256SUMS says.
std::vector<std::string> Failed(const v1::VerdictReport& report) {
  std::vector<std::string> paths;
  for (const v1::VerdictReport::File& file : report.files()) {
    if (!file.passed()) paths.push_back(file.path());
  }
  return paths;
}

void Combine(v1::Report* report) {
  std::vector<std::pair<std::string, v1::Verdict>> verdicts;
  for (const v1::TaskReport& task : report->tasks()) {
    verdicts.emplace_back(task.title(), task.verdict());
  }
  *report->mutable_verdict() = CombineVerdicts(verdicts);
}

// As somebody would who wants a changed file to be believed.
void FixSums(const std::string& path, BundleFiles* files) {
  std::string& sums = files->at(kBundleSums);
  const size_t at = sums.find("  " + path + "\n") - 64;
  sums.replace(at, 64, Sha256Hex(files->at(path)));
  // The first line ends in the digest of the others.
  const size_t end = sums.find('\n');
  sums.replace(end - 64, 64, Sha256Hex(sums.substr(end + 1)));
}

v1::VerdictReport Recompute(const BundleFiles& files) {
  const auto report = RecomputeVerdict(files);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *report : v1::VerdictReport();
}

class FullModelBundleTest : public testing::Test {
 protected:
  void SetUp() override {
    auto rule = FreezeRule(PyTorchProviders(), TestBinds());
    ASSERT_TRUE(rule.ok()) << rule.status();
    rule_ = *std::move(rule);
    report_.set_kind(v1::JOB_KIND_FULL_MODEL);
    report_.mutable_spec()->mutable_full_model();
    v1::TaskReport& task = *report_.add_tasks();
    task.set_title("layout small");
    task.set_composition("candidate");
    *task.mutable_full_model() = PyTorchReport(rule_);
    task.mutable_full_model()->set_rule_made_here(true);
  }

  v1::FullModelReport& full_model() { return *report_.mutable_tasks(0)->mutable_full_model(); }

  void Judge(std::vector<std::string> qualifications = {}) {
    const auto verdict = JudgeFullModel(rule_, "small", std::move(qualifications), &full_model());
    ASSERT_TRUE(verdict.ok()) << verdict.status();
    *report_.mutable_tasks(0)->mutable_verdict() = *verdict;
    Combine(&report_);
  }

  BundleFiles Bundle() {
    auto files = MakeBundle(report_, {RuleFileText(rule_)});
    EXPECT_TRUE(files.ok()) << files.status();
    return *std::move(files);
  }

  v1::Rule rule_;
  v1::Report report_;
};

TEST_F(FullModelBundleTest, AgreesWithItself) {
  Judge();
  const v1::VerdictReport passed = Recompute(Bundle());
  EXPECT_TRUE(passed.agrees());
  EXPECT_EQ(passed.recomputed().outcome(), v1::OUTCOME_PASSED);
  EXPECT_THAT(Failed(passed), IsEmpty());
  EXPECT_EQ(passed.files_size(), 8);  // With two figures.
}

TEST_F(FullModelBundleTest, AFailureIsFoundAgainAtItsPlace) {
  full_model().mutable_tensors(9)->mutable_candidate_error()->set_relative_l2(0.5);
  full_model().mutable_tensors(40)->mutable_candidate_error()->set_relative_l2(std::nan(""));
  Judge({"hybrid composition: diagnostic only"});
  const v1::VerdictReport report = Recompute(Bundle());
  EXPECT_TRUE(report.agrees());
  EXPECT_EQ(report.recomputed().outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(report.recomputed().first_failure().entry(), full_model().tensors(9).name());
  EXPECT_THAT(report.recomputed().qualifications(),
              ElementsAre("hybrid composition: diagnostic only"));
}

TEST_F(FullModelBundleTest, AVerdictThatItsFiguresDoNotGiveIsFound) {
  full_model().mutable_tensors(9)->mutable_candidate_error()->set_relative_l2(0.5);
  Judge();
  // Claims to have passed.
  v1::TaskReport& task = *report_.mutable_tasks(0);
  task.mutable_verdict()->set_outcome(v1::OUTCOME_PASSED);
  task.mutable_verdict()->clear_first_failure();
  task.mutable_verdict()->set_sentence("PASSED: small: all 764 tensors pass; worst ratio 0.9.");
  Combine(&report_);
  v1::VerdictReport report = Recompute(Bundle());
  EXPECT_FALSE(report.agrees());
  EXPECT_EQ(report.recorded().outcome(), v1::OUTCOME_PASSED);
  EXPECT_EQ(report.recomputed().outcome(), v1::OUTCOME_FAILED);

  // Claims that of one gate.
  Judge();
  full_model().mutable_tensors(9)->set_passed(true);
  EXPECT_FALSE(Recompute(Bundle()).agrees());
  // Claims it in verdict.json alone.
  Judge();
  BundleFiles files = Bundle();
  std::string& verdict = files.at(kBundleVerdict);
  verdict = absl::StrReplaceAll(verdict, {{"OUTCOME_FAILED", "OUTCOME_PASSED"}});
  FixSums(kBundleVerdict, &files);
  report = Recompute(files);
  EXPECT_THAT(Failed(report), IsEmpty());
  EXPECT_FALSE(report.agrees());
}

TEST_F(FullModelBundleTest, AnyChangedByteNamesItsFile) {
  Judge();
  const BundleFiles bundle = Bundle();
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (const auto& [path, contents] : bundle) {
    BundleFiles files = bundle;
    files[path][random() % contents.size()] ^= static_cast<char>(1 + random() % 255);
    v1::VerdictReport checked;
    EXPECT_TRUE(CheckBundleFiles(files, "", &checked).ok());
    if (path == kBundleSums) {  // What it says of the others is void.
      EXPECT_THAT(Failed(checked), testing::Contains(path));
      continue;
    }
    EXPECT_THAT(Failed(checked), ElementsAre(path));
    // Whether it can still be judged depends on what was changed; either way it says so.
    const auto report = RecomputeVerdict(files);
    if (report.ok()) {
      EXPECT_THAT(Failed(*report), ElementsAre(path));
    }
  }
}

TEST_F(FullModelBundleTest, TheRuleMustBeTheOneThatJudged) {
  Judge();
  const auto refusal = [](const BundleFiles& files) {
    const absl::Status status = RecomputeVerdict(files).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  BundleFiles files = Bundle();
  files.erase("rule.json");
  EXPECT_THAT(refusal(files), HasSubstr(rule_.sha256()));

  files = Bundle();
  v1::Rule loose = rule_;
  for (v1::Rule::TensorBound& tensor : *loose.mutable_tensors()) tensor.set_bound(1);
  loose.set_sha256(RuleSha256(loose));
  files["rule.json"] = RuleFileText(loose);
  EXPECT_THAT(refusal(files), HasSubstr("k * max + floor"));

  // A valid rule with looser bounds, which the providers' figures in the report do not give.
  std::vector<ProviderErrors> providers = PyTorchProviders();
  for (ProviderErrors& provider : providers) {
    for (auto& [name, error] : provider.errors) error.relative_l2 *= 2;
  }
  auto doubled = FreezeRule(providers, TestBinds());
  ASSERT_TRUE(doubled.ok()) << doubled.status();
  rule_ = *std::move(doubled);
  Judge();
  EXPECT_THAT(refusal(Bundle()), HasSubstr("the providers' errors give the rule"));

  // One of another run.
  full_model().set_rule_made_here(false);
  Judge();
  EXPECT_TRUE(Recompute(Bundle()).agrees());
  full_model().set_inputs_sha256(Sha256Hex("another layout"));
  EXPECT_THAT(refusal(Bundle()), HasSubstr("inputs_sha256"));
}

TEST_F(FullModelBundleTest, ARuleThatWasOnlyFrozenIsNotJudged) {
  report_.mutable_spec()->mutable_full_model()->set_freeze_rule(true);
  for (v1::FullModelTensor& tensor : *full_model().mutable_tensors()) {
    tensor.clear_candidate_error();
    tensor.clear_candidate_drift();
  }
  *full_model().mutable_rule() = rule_;
  full_model().mutable_rule()->clear_tensors();
  *report_.mutable_tasks(0)->mutable_verdict() = RuleFrozenVerdict(rule_, "small");
  Combine(&report_);
  const v1::VerdictReport report = Recompute(Bundle());
  EXPECT_TRUE(report.agrees());
  EXPECT_EQ(report.recomputed().outcome(), v1::OUTCOME_NOT_JUDGED);
}

TEST_F(FullModelBundleTest, HostileReportsAreRefused) {
  Judge();
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"nonsense\": 1}"),
        std::string(200000, '['), std::string("{\"tasks\": [{\"title\": 5}]}")}) {
    BundleFiles files = Bundle();
    files[kBundleReport] = text;
    EXPECT_EQ(RecomputeVerdict(files).status().code(), absl::StatusCode::kInvalidArgument)
        << text.substr(0, 40);
  }
  BundleFiles files = Bundle();
  files.erase(kBundleReport);
  EXPECT_FALSE(RecomputeVerdict(files).ok());
  files = Bundle();
  files[kBundleReport] = "{\"kind\": \"JOB_KIND_DECODE\", \"tasks\": [{\"title\": \"x\"}]}";
  EXPECT_THAT(std::string(RecomputeVerdict(files).status().message()),
              HasSubstr("JOB_KIND_DECODE"));
}

// Of a generation and of kinds that only say whether something fails.
TEST(OtherBundleTest, VerdictsFollowFromTheFigures) {
  v1::Report report;
  report.set_kind(v1::JOB_KIND_GENERATION);
  v1::TaskReport& task = *report.add_tasks();
  v1::GenerationReport& generation = *task.mutable_generation();
  generation.set_seed(42);
  for (int i = 0; i < 5; ++i) generation.add_steps()->set_index(i);
  v1::SensitivityCheck& text = *generation.add_sensitivity();
  text.set_input("text");
  text.set_video_change(0.5);
  text.set_audio_change(0.25);
  text.set_passed(true);
  *task.mutable_verdict() = GenerationVerdict(42, 5, std::nullopt, {"preflight: not citable"});
  const auto recompute = [&] {
    Combine(&report);
    return Recompute(*MakeBundle(report, {}));
  };
  EXPECT_TRUE(recompute().agrees());
  // Claims to read its prompt.
  text.set_audio_change(0);
  v1::VerdictReport judged = recompute();
  EXPECT_FALSE(judged.agrees());
  EXPECT_EQ(judged.recomputed().first_failure().entry(), "text");
  EXPECT_EQ(judged.recomputed().first_failure().gate(), "sensitivity");

  report.set_kind(v1::JOB_KIND_CHECKPOINT);
  task.mutable_checkpoint()->add_findings()->set_kind(v1::CheckpointFinding::KIND_NONFINITE);
  judged = recompute();
  EXPECT_FALSE(judged.agrees());
  EXPECT_EQ(judged.recomputed().outcome(), v1::OUTCOME_FAILED);
  task.mutable_checkpoint()->clear_findings();
  EXPECT_TRUE(recompute().agrees());

  report.set_kind(v1::JOB_KIND_COMPARISON);
  v1::GateResult& psnr = *task.mutable_media()->add_gates();
  psnr.set_gate("psnr");
  psnr.set_value(31);
  psnr.set_bound(30);
  psnr.set_passed(true);
  EXPECT_TRUE(recompute().agrees());
  psnr.set_value(29);
  EXPECT_FALSE(recompute().agrees());

  report.set_kind(v1::JOB_KIND_SELFTEST);
  task.mutable_selftest()->add_rows()->set_passed(true);
  task.mutable_selftest()->add_rows()->set_skipped("no device");
  EXPECT_TRUE(recompute().agrees());
  task.mutable_selftest()->mutable_rows(0)->set_passed(false);
  EXPECT_FALSE(recompute().agrees());
}

// With real replays: what the job found is what its bundle gives.
class BlockReplayBundleTest : public jobs::BlockReplayTest {
 protected:
  v1::Report Report(const jobs::BlockReplayRequest& request) {
    const auto result = Run(request, "synthetic:tiny");
    EXPECT_TRUE(result.ok()) << result.status();
    v1::Report report;
    report.set_kind(v1::JOB_KIND_BLOCK_REPLAY);
    v1::TaskReport& task = *report.add_tasks();
    task.set_title("layout tiny");
    task.set_composition(result->composition);
    *task.mutable_verdict() = result->verdict;
    *task.mutable_block_replay() = result->report;
    Combine(&report);
    return report;
  }

  v1::VerdictReport Again(const v1::Report& report) {
    const auto files = MakeBundle(report, {});
    EXPECT_TRUE(files.ok()) << files.status();
    return Recompute(*files);
  }
};

TEST_F(BlockReplayBundleTest, ReplaysAgree) {
  struct Case {
    const char* composition;
    const char* fault;
    v1::Outcome outcome;
    const char* first_failure;
  };
  for (const Case& c :
       {Case{"candidate", "", v1::OUTCOME_PASSED, ""},
        Case{"golden", "", v1::OUTCOME_NOT_JUDGED, ""},
        Case{"candidate+provider:attention", "", v1::OUTCOME_PASSED, ""},
        Case{"candidate", "qk-heads", v1::OUTCOME_FAILED, "q_proj"},
        Case{"candidate", "unordered-gradient", v1::OUTCOME_FAILED, "adaln_projection.grad"},
        Case{"candidate", "split-by-rows", v1::OUTCOME_FAILED, "q_proj"}}) {
    jobs::BlockReplayRequest request = Request(Named("tiny"));
    request.spec.set_composition(c.composition);
    request.spec.set_inject(c.fault);
    const v1::Report report = Report(request);
    const v1::VerdictReport again = Again(report);
    EXPECT_TRUE(again.agrees()) << c.composition << " " << c.fault << "\n"
                                << again.recomputed().sentence() << "\n"
                                << again.recorded().sentence();
    EXPECT_EQ(again.recomputed().outcome(), c.outcome) << c.composition << " " << c.fault;
    EXPECT_EQ(again.recomputed().first_failure().entry(), c.first_failure);
  }
}

TEST_F(BlockReplayBundleTest, AFigureBeyondItsBoundIsFound) {
  v1::Report report = Report(Request(Named("tiny")));
  report.mutable_tasks(0)
      ->mutable_block_replay()
      ->mutable_entries(4)
      ->mutable_chained_error()
      ->set_relative_l2(1);
  const v1::VerdictReport again = Again(report);
  EXPECT_FALSE(again.agrees());
  EXPECT_EQ(again.recomputed().first_failure().entry(), "v_proj");
  EXPECT_EQ(again.recomputed().first_failure().gate(), "chained_error");
}

}  // namespace
}  // namespace plumbline::drift
