// Rule files: what was written reads back, what was changed is refused.
#include "worker/drift/rule_file.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/evidence/canonical_json.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_freeze.h"
#include "worker/drift/rule_test_data.h"

namespace plumbline::drift {
namespace {

using ::google::protobuf::util::MessageDifferencer;
using ::nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

v1::Rule Frozen() {
  auto rule = FreezeRule(PyTorchProviders(), TestBinds());
  EXPECT_TRUE(rule.ok()) << rule.status();
  return *std::move(rule);
}

// A rule of three providers whose errors are random, over tensors of both kinds.
v1::Rule RandomRule(std::mt19937_64& random) {
  std::uniform_real_distribution<double> error(0, 0.05);
  std::uniform_int_distribution<int> exponent(-12, 0);
  std::vector<ProviderErrors> providers(3);
  for (size_t i = 0; i < providers.size(); ++i) providers[i].name = absl::StrCat("p", i);
  const int tensors = std::uniform_int_distribution<int>(1, 20)(random);
  for (int t = 0; t < tensors; ++t) {
    const std::string name = absl::StrCat("nodes.block.", t, t % 2 == 0 ? "" : ".grad");
    const double size = std::ldexp(error(random), exponent(random));
    for (ProviderErrors& provider : providers) {
      provider.errors[name] = {size * (1 + error(random)), error(random)};
    }
  }
  auto rule = FreezeRule(providers, TestBinds());
  EXPECT_TRUE(rule.ok()) << rule.status();
  return *std::move(rule);
}

std::string Refusal(const std::string& text) {
  const absl::Status status = ReadRule(text, "rule.json").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

// Written by another program: Python's json.dumps of the same content, and its hashlib.
constexpr char kPythonRule[] =
    R"({"binds":{"checkpoint_sha256":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",)"
    R"("device_class":"cpu-x86_64-avx2",)"
    R"("inputs_sha256":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",)"
    R"("tensor_names_sha256":"9af380bba9d5ef63f75c281bf28b60f6cc46f43fe94b0fc20bbdd748d1280f23"},)"
    R"("floors":{"forward":0.001,"gradient":0.005},"format":"plumbline-rule-1","k":1.2,)"
    R"("origin":"frozen","providers":[{"dropped_because":"","kept":true,"name":"a"},)"
    R"({"dropped_because":"","kept":true,"name":"b"},{"dropped_because":"","kept":true,"name":"c"}],)"
    R"("sha256":"8a2d14d16635bb08a956b04d811eb7e0993c92ea89681077b0c05019cfe137cf","tensors":{)"
    R"("nodes.block.0":{"bound":0.013000000000000001,"errors":{"a":[0.01,0.5],"b":[0.008,1e-05],"c":[0.0075,2.0]}},)"
    R"("nodes.block.0.grad":{"bound":0.0302,"errors":{"a":[0.02,0.5],"b":[0.021,0.25],"c":[1e-06,0.0]}}}})";

TEST(RuleFileTest, ARuleOfAnotherProgramIsRead) {
  const auto rule = ReadRule(kPythonRule, "rule.json");
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->k(), 1.2);
  EXPECT_EQ(rule->tensors(0).max_abs(1), 1e-5);
  EXPECT_EQ(CanonicalJson(json::parse(RuleFileText(*rule))), kPythonRule);
}

TEST(RuleFileTest, ReadsBackWhatWasWritten) {
  const v1::Rule rule = Frozen();
  const auto again = ReadRule(RuleFileText(rule), "rule.json");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*again, rule));
}

TEST(RuleFileTest, RandomRulesReadBackAndEveryChangedCharacterIsRefused) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 10; ++round) {
    const v1::Rule rule = RandomRule(random);
    const std::string text = RuleFileText(rule);
    const auto again = ReadRule(text, "rule.json");
    ASSERT_TRUE(again.ok()) << again.status();
    ASSERT_TRUE(MessageDifferencer::Equals(*again, rule));
    for (int i = 0; i < 100; ++i) {
      std::string changed = text;
      const size_t at = random() % text.size();
      changed[at] = static_cast<char>('0' + random() % 10);
      if (std::isspace(text[at]) || changed == text) continue;
      EXPECT_FALSE(ReadRule(changed, "rule.json").ok()) << "byte " << at << "\n" << changed;
    }
    for (int i = 0; i < 100; ++i) {
      std::string changed = text;
      const size_t at = random() % text.size();
      changed[at] = static_cast<char>(random());
      if (std::isspace(text[at]) || changed == text) continue;
      EXPECT_FALSE(ReadRule(changed, "rule.json").ok()) << "byte " << at;
      (void)SealRule(changed, "rule.json");  // whatever it says, it returns
    }
  }
}

TEST(RuleFileTest, EveryDigitOfABoundCounts) {
  const std::string text = RuleFileText(Frozen());
  const size_t bound = text.find("\"bound\": ") + 9;
  for (size_t at = bound; text[at] != ','; ++at) {
    if (!std::isdigit(text[at])) continue;
    std::string changed = text;
    changed[at] = changed[at] == '9' ? '8' : static_cast<char>(changed[at] + 1);
    EXPECT_FALSE(ReadRule(changed, "rule.json").ok()) << at - bound;
  }
}

TEST(RuleFileTest, WhiteSpaceIsFree) {
  const v1::Rule rule = Frozen();
  const std::string compact = json::parse(RuleFileText(rule)).dump();
  EXPECT_TRUE(ReadRule(CanonicalJson(json::parse(compact)) + "\n", "rule.json").ok());
  EXPECT_TRUE(ReadRule(ReadableJson(json::parse(compact), 5), "rule.json").ok());
}

TEST(RuleFileTest, AFrozenBoundThatIsNotTheRulesIsNamedWithBothValues) {
  v1::Rule rule = Frozen();
  v1::Rule::TensorBound& tensor = *rule.mutable_tensors(123);
  const double bound = tensor.bound();
  tensor.set_bound(0.25);
  rule.set_sha256(RuleSha256(rule));  // by somebody who knows how
  EXPECT_THAT(Refusal(RuleFileText(rule)),
              AllOf(HasSubstr(tensor.name()), HasSubstr("is 0.25"),
                    HasSubstr(absl::StrCat("k * max + floor is ", CanonicalDouble(bound)))));
}

TEST(RuleFileTest, AFrozenRuleIsWhatItsErrorsGive) {
  const auto refusal = [](const std::function<void(v1::Rule*)>& change) {
    v1::Rule rule = Frozen();
    change(&rule);
    rule.set_sha256(RuleSha256(rule));
    return Refusal(RuleFileText(rule));
  };
  const auto set_bounds = [](v1::Rule* rule) {
    for (v1::Rule::TensorBound& tensor : *rule->mutable_tensors()) {
      double largest = 0;
      for (double error : tensor.relative_l2()) largest = std::max(largest, error);
      tensor.set_bound(EnsembleBound(rule->k(), largest, FloorOf(rule->floors(), tensor.name())));
    }
  };
  EXPECT_THAT(refusal([&](v1::Rule* rule) {
                rule->set_k(1.5);
                set_bounds(rule);
              }),
              AllOf(HasSubstr("k: is 1.5"), HasSubstr("passes is 1.1")));
  EXPECT_THAT(refusal([&](v1::Rule* rule) {
                rule->mutable_floors()->set_forward(0.01);
                set_bounds(rule);
              }),
              HasSubstr("floors"));
  EXPECT_THAT(refusal([&](v1::Rule* rule) {
                rule->mutable_binds()->set_tensor_names_sha256(Sha256Hex(""));
              }),
              HasSubstr("tensor_names_sha256"));
}

TEST(RuleFileTest, AWrongDigestIsRefused) {
  v1::Rule rule = Frozen();
  rule.set_sha256(Sha256Hex("something else"));
  EXPECT_THAT(Refusal(RuleFileText(rule)),
              AllOf(HasSubstr("sha256"), HasSubstr(Sha256Hex("something else"))));
  rule = Frozen();
  rule.mutable_binds()->set_device_class("sm_80");
  EXPECT_THAT(Refusal(RuleFileText(rule)), HasSubstr("sha256"));
}

TEST(RuleFileTest, AManualRuleIsValidOnceSealed) {
  const v1::Rule frozen = Frozen();
  v1::Rule edited = frozen;
  edited.set_origin(v1::RULE_ORIGIN_MANUAL);
  edited.mutable_tensors(0)->set_bound(1e-4);
  EXPECT_THAT(Refusal(RuleFileText(edited)), HasSubstr("plumbline rule seal"));
  // As a person leaves it, without a digest, and still called frozen.
  json file = json::parse(RuleFileText(edited));
  file.erase("sha256");
  file["origin"] = "frozen";
  EXPECT_THAT(Refusal(file.dump(2)), HasSubstr("sha256: is missing"));

  const auto sealed = SealRule(file.dump(2), "rule.json");
  ASSERT_TRUE(sealed.ok()) << sealed.status();
  const auto read = ReadRule(RuleFileText(*sealed), "rule.json");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->origin(), v1::RULE_ORIGIN_MANUAL);
  EXPECT_EQ(read->tensors(0).bound(), 1e-4);
  EXPECT_EQ(read->tensors(1).bound(), frozen.tensors(1).bound());
  EXPECT_NE(read->sha256(), frozen.sha256());

  // Fewer tensors are a rule for fewer tensors.
  file["tensors"].erase(frozen.tensors(5).name());
  const auto fewer = SealRule(file.dump(), "rule.json");
  ASSERT_TRUE(fewer.ok()) << fewer.status();
  EXPECT_TRUE(ReadRule(RuleFileText(*fewer), "rule.json").ok());
  EXPECT_FALSE(CheckBinds(*fewer, TestBinds(), NamesOf(frozen), false).ok());
}

TEST(RuleFileTest, HostileFilesAreRefusedByField) {
  struct Case {
    std::function<void(json*)> change;
    std::string expected;
  };
  const std::string first = Frozen().tensors(0).name();
  const std::vector<Case> cases = {
      {[](json* f) { *f = json::array(); }, "no object"},
      {[](json* f) { *f = 3; }, "no object"},
      {[](json* f) { f->erase("floors"); }, "lacks floors"},
      {[](json* f) { (*f)["extra"] = 1; }, "unknown key \"extra\""},
      {[](json* f) { (*f)["format"] = "plumbline-rule-2"; }, "plumbline-rule-1"},
      {[](json* f) { (*f)["origin"] = "divine"; }, "frozen, manual"},
      {[](json* f) { (*f)["k"] = 0.9; }, "k: is 0.9"},
      {[](json* f) { (*f)["k"] = 1.15; }, "a multiple of 0.1"},
      {[](json* f) { (*f)["k"] = 1e300; }, "k: is 1e+300"},
      {[](json* f) { (*f)["k"] = "1.1"; }, "k: is \"1.1\""},
      {[](json* f) { (*f)["floors"]["forward"] = -1; }, "forward: is -1"},
      {[](json* f) { (*f)["floors"]["sideways"] = 1; }, "sideways"},
      {[](json* f) { (*f)["binds"]["checkpoint_sha256"] = "../../etc/passwd"; }, "64 lower-case"},
      {[](json* f) { (*f)["binds"]["inputs_sha256"] = std::string(64, 'A'); }, "64 lower-case"},
      {[](json* f) { (*f)["binds"]["device_class"] = ""; }, "device_class: is empty"},
      {[](json* f) { (*f)["binds"]["device_class"] = "sm\x1b[2J"; }, "printable"},
      {[](json* f) { (*f)["binds"]["device_class"] = std::string(5000, 'x'); }, "printable"},
      {[](json* f) { (*f)["providers"] = json::array(); }, "list of providers"},
      {[](json* f) { (*f)["providers"] = json(std::vector<int>(1000)); }, "list of providers"},
      {[](json* f) { (*f)["providers"][1] = (*f)["providers"][0]; }, "is the second"},
      {[](json* f) { (*f)["providers"][1]["kept"] = false; }, "providers[1]"},
      {[](json* f) { (*f)["providers"][1]["kept"] = 1; }, "kept: is 1"},
      {[](json* f) { (*f)["providers"][0]["identity"]["parts"]["x"] = 1; }, "parts.x"},
      {[](json* f) { (*f)["providers"][0]["identity"]["sha256"] = "12"; }, "64 lower-case"},
      {[](json* f) { (*f)["tensors"] = json::object(); }, "object of tensors"},
      {[](json* f) { (*f)["tensors"] = json::array({1}); }, "object of tensors"},
      {[](json* f) { (*f)["tensors"]["\n"] = (*f)["tensors"]["output.video"]; }, "no tensor's"},
      {[&](json* f) { (*f)["tensors"][first]["bound"] = -0.5; }, first + "\": bound: is -0.5"},
      {[&](json* f) { (*f)["tensors"][first]["bound"] = nullptr; }, first},
      {[&](json* f) { (*f)["tensors"][first]["errors"].erase("provider/default"); }, first},
      {[&](json* f) { (*f)["tensors"][first]["errors"]["provider/default"] = 1; }, "no pair"},
      {[&](json* f) { (*f)["tensors"][first]["errors"]["provider/default"][1] = -1; },
       "[1]: is no error"},
      {[&](json* f) { (*f)["tensors"][first]["errors"]["provider/default"][0] = "x"; },
       "[0]: is no error"},
      {[](json* f) { (*f)["sha256"] = 5; }, "sha256: is 5"},
  };
  const json valid = json::parse(RuleFileText(Frozen()));
  for (const Case& c : cases) {
    json file = valid;
    c.change(&file);
    EXPECT_THAT(Refusal(file.dump()), HasSubstr(c.expected));
    const absl::Status sealed = SealRule(file.dump(), "rule.json").status();
    EXPECT_EQ(sealed.code(), absl::StatusCode::kInvalidArgument) << c.expected;
  }
  EXPECT_THAT(Refusal(std::string(1000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(Refusal("{\"k\":1e999}"), HasSubstr("out of range"));
  EXPECT_THAT(Refusal("{\"k\":1.1,\"k\":1.2}"), HasSubstr("twice"));
  EXPECT_THAT(Refusal(""), HasSubstr("not valid JSON"));
}

}  // namespace
}  // namespace plumbline::drift
