// Bundles as files, and what never enters one.
#include "common/evidence/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/evidence/redact.h"
#include "common/evidence/signature.h"
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
  EXPECT_THAT(files, ElementsAre(Key("SHA256SUMS"), Key("error_by_block.svg"), Key("errors.csv"),
                                 Key("identity.json"), Key("report.json"), Key("rule.json"),
                                 Key("verdict.json")));
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

TEST_F(BundleTest, WhatCannotBeWrittenWholeIsNotThere) {
  BundleFiles files = SmallBundle();
  files["no/such/folder"] = "as little room as on a full disk";
  EXPECT_FALSE(WriteBundle(files, folder_).ok());
  EXPECT_FALSE(std::filesystem::exists(folder_));
  // A folder that was there stays, empty.
  std::filesystem::create_directories(folder_);
  EXPECT_FALSE(WriteBundle(files, folder_).ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  EXPECT_TRUE(WriteBundle(SmallBundle(), folder_).ok());
}

TEST_F(BundleTest, OnlyPlainFilesAreRead) {
  ASSERT_TRUE(WriteBundle(SmallBundle(), folder_).ok());
  std::filesystem::create_directory(folder_ + "/folder");
  EXPECT_FALSE(ReadBundle(folder_).ok());
  std::filesystem::remove(folder_ + "/folder");
  EXPECT_TRUE(ReadBundle(folder_).ok());
  // Neither waited for...
  ASSERT_EQ(mkfifo((folder_ + "/fifo.json").c_str(), 0600), 0);
  EXPECT_THAT(std::string(ReadBundle(folder_).status().message()),
              HasSubstr("fifo.json: is no regular file; accepted: a regular file"));
  std::filesystem::remove(folder_ + "/fifo.json");
  // ... nor followed, even to what would pass.
  std::filesystem::rename(folder_ + "/report.json", folder_ + ".outside");
  std::filesystem::create_symlink(folder_ + ".outside", folder_ + "/report.json");
  EXPECT_THAT(std::string(ReadBundle(folder_).status().message()),
              HasSubstr("report.json: is a symbolic link; accepted: a regular file"));
  std::filesystem::rename(folder_ + ".outside", folder_ + "/report.json");
  EXPECT_TRUE(ReadBundle(folder_).ok());
  std::ofstream(folder_ + "/.hidden") << "x";
  EXPECT_FALSE(ReadBundle(folder_).ok());
}

TEST_F(BundleTest, SumsFindWhatWasChangedAddedAndTakenAway) {
  const auto check = [](const BundleFiles& files) {
    v1::VerdictReport report;
    EXPECT_TRUE(CheckBundleFiles(files, "", &report).ok());
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
  EXPECT_EQ(failed(check(files)).size(), 6u);

  const std::string sums = SmallBundle().at("SHA256SUMS");
  for (const std::string& damaged :
       {sums.substr(0, sums.size() - 1), sums + "\n", "x" + sums, sums + sums,
        sums + std::string(64, 'a') + "  ../../etc/passwd\n", std::string()}) {
    files = SmallBundle();
    files["SHA256SUMS"] = damaged;
    EXPECT_THAT(failed(check(files)), testing::Contains("SHA256SUMS")) << damaged;
  }
}

// Every byte of every file, one at a time: the file is named, and it alone.
TEST_F(BundleTest, OneChangedByteIsNamed) {
  const BundleFiles files = SmallBundle();
  for (const auto& [path, contents] : files) {
    const size_t step = std::max<size_t>(1, contents.size() / 200);
    for (size_t at = 0; at < contents.size(); at += step) {
      BundleFiles changed = files;
      changed[path][at] = static_cast<char>(changed[path][at] ^ 1);
      v1::VerdictReport report;
      ASSERT_TRUE(CheckBundleFiles(changed, "", &report).ok());
      std::vector<std::string> bad;
      for (const v1::VerdictReport::File& file : report.files()) {
        if (!file.passed()) bad.push_back(file.path());
      }
      EXPECT_THAT(bad, testing::Contains(path)) << "byte " << at;
      if (path == "SHA256SUMS") continue;
      EXPECT_THAT(bad, ElementsAre(path)) << "byte " << at;
    }
  }
}

// openssl genpkey -algorithm ed25519
constexpr char kPrivateKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIAnHIjllpKePgtvh9o5A3mFRZP1On/bcj018x8DJtSD9\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kOtherPrivateKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIF4jgbGS+YPJgrn8KMlKq1iNKq6dwWcr+FcwwRj+Anmd\n"
    "-----END PRIVATE KEY-----\n";

TEST_F(BundleTest, SignatureIsCheckedUnderItsOwnKeyAndAGivenOne) {
  const auto files = MakeBundle(SmallReport(), {}, kPrivateKey);
  ASSERT_TRUE(files.ok()) << files.status();
  const std::string key = files->at(kBundlePublicKey);
  EXPECT_EQ(key, *PublicKeyOf(kPrivateKey));
  EXPECT_EQ(files->at(kBundleSignature).size(), kSignatureBytes);
  // Equal bytes are signed equally.
  EXPECT_EQ(*MakeBundle(SmallReport(), {}, kPrivateKey), *files);

  const auto check = [](const BundleFiles& bundle, const std::string& public_key) {
    v1::VerdictReport report;
    EXPECT_TRUE(CheckBundleFiles(bundle, public_key, &report).ok());
    return report;
  };
  const auto bad = [](const v1::VerdictReport& report) {
    std::vector<std::string> paths(report.missing().begin(), report.missing().end());
    for (const v1::VerdictReport::File& file : report.files()) {
      if (!file.passed()) paths.push_back(file.path());
    }
    return paths;
  };
  v1::VerdictReport report = check(*files, key);
  EXPECT_TRUE(report.signature_present());
  EXPECT_TRUE(report.signature_valid());
  EXPECT_THAT(bad(report), IsEmpty());
  report = check(*files, "");
  EXPECT_FALSE(report.signature_valid());
  EXPECT_THAT(bad(report), IsEmpty());
  EXPECT_THAT(bad(check(*files, *PublicKeyOf(kOtherPrivateKey))), ElementsAre(kBundleSignature));
  // Signed again by somebody else.
  const auto forged = MakeBundle(SmallReport(), {}, kOtherPrivateKey);
  EXPECT_THAT(bad(check(*forged, "")), IsEmpty());
  EXPECT_THAT(bad(check(*forged, key)), ElementsAre(kBundleSignature));
  for (size_t i = 0; i < kSignatureBytes; ++i) {
    BundleFiles changed = *files;
    changed[kBundleSignature][i] ^= 4;
    EXPECT_THAT(bad(check(changed, "")), ElementsAre(kBundleSignature));
  }
  BundleFiles unsigned_files = *files;
  unsigned_files.erase(kBundleSignature);
  EXPECT_THAT(bad(check(unsigned_files, "")), ElementsAre(kBundleSignature));
  EXPECT_THAT(bad(check(SmallBundle(), key)), ElementsAre(kBundleSignature));

  v1::VerdictReport unused;
  EXPECT_EQ(CheckBundleFiles(*files, "no key", &unused).code(), absl::StatusCode::kInvalidArgument);
  const absl::Status refused = MakeBundle(SmallReport(), {}, "secret").status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("secret")));
}

// Fills every text of every message within reach.
void PlantEverywhere(google::protobuf::Message* message, int depth) {
  const google::protobuf::Reflection& reflection = *message->GetReflection();
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = type.field(i);
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
      const std::string text = absl::StrCat("/home/", kPlanted, "/x");
      if (field->is_repeated()) {
        reflection.AddString(message, field, text);
      } else {
        reflection.SetString(message, field, text);
      }
    } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      if (depth == 0 || field->message_type()->full_name().find("plumbline") != 0) continue;
      // Members of a oneof push each other out: the last one stays, and each has its own turn in
      // the test below.
      PlantEverywhere(field->is_repeated() ? reflection.AddMessage(message, field)
                                           : reflection.MutableMessage(message, field),
                      depth - 1);
    }
  }
}

// Every text that a report can hold has been spoken for; those taken out and free texts let no path
// through.
TEST_F(BundleTest, EveryTextHasAFate) {
  std::vector<const google::protobuf::Descriptor*> types = {v1::Report::descriptor()};
  for (size_t i = 0; i < types.size(); ++i) {
    for (int f = 0; f < types[i]->field_count(); ++f) {
      const google::protobuf::FieldDescriptor* const field = types[i]->field(f);
      const std::string name = field->full_name().substr(strlen("plumbline.v1."));
      if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING) {
        EXPECT_NE(FateOf(name), TextFate::kUnknown)
            << name << ": can it hold a host, a user, an address or a path? (redact.cc)";
      } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
        const auto* const type = field->message_type();
        if (type->full_name().find("plumbline.v1.") == 0 &&
            std::find(types.begin(), types.end(), type) == types.end()) {
          types.push_back(type);
        }
      }
    }
  }
  EXPECT_GT(types.size(), 60u);
  // What is not kept word for word lets nothing through, wherever it stands.
  v1::Report report;
  PlantEverywhere(&report, 6);
  Redact(&report);
  const std::function<void(const google::protobuf::Message&)> check =
      [&](const google::protobuf::Message& message) {
        std::vector<const google::protobuf::FieldDescriptor*> fields;
        const google::protobuf::Reflection& reflection = *message.GetReflection();
        reflection.ListFields(message, &fields);
        for (const auto* field : fields) {
          const std::string name = field->full_name().substr(strlen("plumbline.v1."));
          const bool kept = FateOf(name) == TextFate::kKept;
          for (int i = 0; i < (field->is_repeated() ? reflection.FieldSize(message, field) : 1);
               ++i) {
            if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_STRING && !kept) {
              EXPECT_THAT(field->is_repeated() ? reflection.GetRepeatedString(message, field, i)
                                               : reflection.GetString(message, field),
                          Not(HasSubstr(kPlanted)))
                  << name;
            } else if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
              check(field->is_repeated() ? reflection.GetRepeatedMessage(message, field, i)
                                         : reflection.GetMessage(message, field));
            }
          }
        }
      };
  check(report);
}

TEST(WithoutPathsTest, OnlyPathsAndAddressesGo) {
  EXPECT_EQ(WithoutPaths("a/b, 3 / 4 and 1/2 stay: worst 0.5 (q_proj)"),
            "a/b, 3 / 4 and 1/2 stay: worst 0.5 (q_proj)");
  EXPECT_EQ(WithoutPaths("/home/me/x: no such file; ~/y, file:///z (/a) \"/b c\""),
            "(path) no such file; (path), (path) ((path)) \"(path) c\"");
  EXPECT_EQ(WithoutPaths(""), "");
}

}  // namespace
}  // namespace plumbline
