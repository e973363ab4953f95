// Bundles as files, and what never enters one.
#include "common/evidence/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;

// Stands for every name that must not get out.
constexpr char kPlanted[] = "planted-secret";

v1::Report SmallReport() {
  v1::Report report;
  report.set_job("jobs/7");
  report.set_kind(v1::JOB_KIND_FULL_MODEL);
  v1::JobSpec& spec = *report.mutable_spec();
  spec.set_checkpoint("synthetic:tiny:1");
  spec.mutable_full_model()->add_providers("provider/default");
  v1::TaskReport& task = *report.add_tasks();
  task.set_title("layout 7,2,6,8,5,first");
  task.set_composition("candidate");
  task.mutable_identity()->set_sha256(Sha256Hex("identity"));
  (*task.mutable_reference_identities())["golden"].set_sha256(Sha256Hex("golden"));
  task.mutable_verdict()->set_outcome(v1::OUTCOME_PASSED);
  v1::FullModelReport& full = *task.mutable_full_model();
  full.add_providers()->set_name("provider/\"odd\"");
  v1::FullModelTensor& tensor = *full.add_tensors();
  tensor.set_name("nodes.block.0");
  tensor.add_provider_errors()->set_relative_l2(0.25);
  tensor.mutable_candidate_error()->set_relative_l2(1e-5);
  tensor.mutable_candidate_error()->set_max_abs(2);
  tensor.set_bound(0.5);
  tensor.set_bound_ratio(2e-5);
  tensor.set_passed(true);
  report.mutable_verdict()->set_outcome(v1::OUTCOME_PASSED);
  return report;
}

BundleFiles SmallBundle() {
  auto files = MakeBundle(SmallReport(), {"{\"rule\": 1}\n"});
  EXPECT_TRUE(files.ok()) << files.status();
  return *std::move(files);
}

class BundleTest : public testing::Test {
 protected:
  BundleTest() : folder_(absl::StrCat(testing::TempDir(), "/bundle.", getpid())) {
    std::filesystem::remove_all(folder_);
  }
  ~BundleTest() override { std::filesystem::remove_all(folder_); }

  const std::string folder_;
};

TEST_F(BundleTest, HoldsReportVerdictIdentityErrorsAndRule) {
  const BundleFiles files = SmallBundle();
  EXPECT_THAT(files, ElementsAre(Key("SHA256SUMS"), Key("errors.csv"), Key("identity.json"),
                                 Key("report.json"), Key("rule.json"), Key("verdict.json")));
  // Proto field names, and defaults printed.
  const auto report = nlohmann::json::parse(files.at("report.json"));
  EXPECT_EQ(report["tasks"][0]["full_model"]["rule_made_here"], false);
  EXPECT_EQ(nlohmann::json::parse(files.at("verdict.json"))["verdict"]["outcome"],
            "OUTCOME_PASSED");
  const auto identities = nlohmann::json::parse(files.at("identity.json"));
  EXPECT_EQ(identities["tasks"][0]["reference_identities"]["golden"]["sha256"],
            Sha256Hex("golden"));
  EXPECT_EQ(files.at("errors.csv"),
            "task,order,tensor,side,relative_l2,max_abs,bound,bound_ratio,passed\r\n"
            "\"layout 7,2,6,8,5,first\",0,nodes.block.0,\"provider/\"\"odd\"\"\",0.25,0.0,,,\r\n"
            "\"layout 7,2,6,8,5,first\",0,nodes.block.0,candidate,1e-05,2.0,0.5,2e-05,true\r\n");
  const auto again = ReportOfBundle(files);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->SerializeAsString(), SmallReport().SerializeAsString());
}

TEST_F(BundleTest, SeveralRulesAreNumbered) {
  const auto files = MakeBundle(SmallReport(), {"1", "2"});
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->at("rule-1.json"), "1");
  EXPECT_EQ(files->at("rule-2.json"), "2");
  EXPECT_EQ(files->count("rule.json"), 0u);
}

TEST_F(BundleTest, NothingPlantedGetsOut) {
  v1::Report report = SmallReport();
  v1::JobSpec& spec = *report.mutable_spec();
  spec.set_checkpoint(absl::StrCat("/data/", kPlanted, "/h3"));
  (*spec.mutable_labels())["user"] = kPlanted;
  (*spec.mutable_placement()->mutable_worker_labels())["host"] = kPlanted;
  spec.add_plugins()->set_worker_path(absl::StrCat(kPlanted, ".so"));
  v1::FullModelSpec& full = *spec.mutable_full_model();
  full.mutable_rule()->set_worker_path(absl::StrCat("/home/", kPlanted, "/rule.json"));
  v1::CaptureSet& captures = *full.mutable_captures();
  captures.mutable_inputs()->set_worker_path(kPlanted);
  captures.mutable_golden()->set_worker_path(kPlanted);
  captures.mutable_candidate()->set_worker_path(kPlanted);
  (*captures.mutable_providers())["mine"].set_worker_path(kPlanted);
  (*captures.mutable_providers())["uploaded"].set_artifact("artifacts/5");
  v1::Attempt& attempt = *report.mutable_tasks(0)->add_attempts();
  attempt.set_number(3);
  attempt.set_worker(absl::StrCat("workers/", kPlanted));
  attempt.set_incarnation(kPlanted);
  attempt.set_message(absl::StrCat("connection to ", kPlanted, ":443 lost"));
  (*attempt.mutable_labels())["slurm_node"] = kPlanted;

  const auto files = MakeBundle(report, {});
  ASSERT_TRUE(files.ok()) << files.status();
  for (const auto& [path, contents] : *files) {
    EXPECT_THAT(contents, Not(HasSubstr(kPlanted))) << path;
  }
  const auto redacted = ReportOfBundle(*files);
  ASSERT_TRUE(redacted.ok()) << redacted.status();
  EXPECT_EQ(redacted->tasks(0).attempts(0).number(), 3);
  EXPECT_EQ(redacted->spec().full_model().captures().providers().at("uploaded").artifact(),
            "artifacts/5");
  for (const char* checkpoint : {"synthetic:tiny", "synthetic:released:9"}) {
    report.mutable_spec()->set_checkpoint(checkpoint);
    EXPECT_EQ(ReportOfBundle(*MakeBundle(report, {}))->spec().checkpoint(), checkpoint);
  }
  report.mutable_spec()->set_checkpoint(absl::StrCat("synthetic:", kPlanted, "/config.json:1"));
  EXPECT_EQ(ReportOfBundle(*MakeBundle(report, {}))->spec().checkpoint(), "");
}

TEST_F(BundleTest, IsWrittenAndReadWhole) {
  const BundleFiles files = SmallBundle();
  ASSERT_TRUE(WriteBundle(files, folder_).ok());
  const auto again = ReadBundle(folder_);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, files);
  EXPECT_EQ(WriteBundle(files, folder_).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(ReadBundle(folder_ + "/nowhere").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(BundleTest, OnlyPlainFilesAreRead) {
  ASSERT_TRUE(WriteBundle(SmallBundle(), folder_).ok());
  std::filesystem::create_directory(folder_ + "/folder");
  EXPECT_FALSE(ReadBundle(folder_).ok());
  std::filesystem::remove(folder_ + "/folder");
  EXPECT_TRUE(ReadBundle(folder_).ok());
  std::ofstream(folder_ + "/.hidden") << "x";
  EXPECT_FALSE(ReadBundle(folder_).ok());
}

TEST_F(BundleTest, SumsFindWhatWasChangedAddedAndTakenAway) {
  const auto check = [](const BundleFiles& files) {
    v1::VerdictReport report;
    CheckBundleFiles(files, &report);
    return report;
  };
  const auto failed = [](const v1::VerdictReport& report) {
    std::vector<std::string> paths;
    for (const v1::VerdictReport::File& file : report.files()) {
      if (!file.passed()) paths.push_back(file.path());
    }
    return paths;
  };
  EXPECT_THAT(failed(check(SmallBundle())), IsEmpty());
  EXPECT_THAT(check(SmallBundle()).missing(), IsEmpty());

  BundleFiles files = SmallBundle();
  files["errors.csv"] += " ";
  EXPECT_THAT(failed(check(files)), ElementsAre("errors.csv"));
  files = SmallBundle();
  files["video.mp4"] = "x";
  EXPECT_THAT(failed(check(files)), ElementsAre("video.mp4"));
  files = SmallBundle();
  files.erase("identity.json");
  EXPECT_THAT(check(files).missing(), ElementsAre("identity.json"));
  files = SmallBundle();
  files.erase("SHA256SUMS");
  EXPECT_THAT(check(files).missing(), ElementsAre("SHA256SUMS"));
  EXPECT_EQ(failed(check(files)).size(), 5u);

  const std::string sums = SmallBundle().at("SHA256SUMS");
  for (const std::string& damaged :
       {sums.substr(0, sums.size() - 1), sums + "\n", "x" + sums, sums + sums,
        sums + std::string(64, 'a') + "  ../../etc/passwd\n", std::string()}) {
    files = SmallBundle();
    files["SHA256SUMS"] = damaged;
    EXPECT_THAT(failed(check(files)), testing::Contains("SHA256SUMS")) << damaged;
  }
}

}  // namespace
}  // namespace plumbline
