// Freezing a rule, against a naive computation from the capture, and what a rule may judge.
#include "worker/drift/rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/drift/rule_freeze.h"
#include "worker/drift/rule_report.h"
#include "worker/drift/rule_test_data.h"

namespace plumbline::drift {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// The specification read straight off the file, without the code under test.
class Naive {
 public:
  Naive() {
    const auto text = ReadFile("tests/golden/full_model_h200.json", 1 << 20);
    EXPECT_TRUE(text.ok()) << text.status();
    tensors_ = nlohmann::json::parse(*text)["tensors"];
  }

  static double Floor(const std::string& name) {
    const bool gradient = name.find(".grad") != std::string::npos || name.find("parameter.") == 0 ||
                          name.find("input_gradients.") == 0;
    return gradient ? 0.005 : 0.001;
  }

  double Max(const std::string& name, const std::string& without) const {
    double max = 0;
    for (const std::string& column : kColumns) {
      if (column != without) max = std::max(max, tensors_[name][column][0].get<double>());
    }
    return max;
  }

  int Failing(const std::string& held, double k) const {
    int failing = 0;
    for (const auto& [name, tensor] : tensors_.items()) {
      failing += tensor[held][0].get<double>() > k * Max(name, held) + Floor(name);
    }
    return failing;
  }

  bool AllPass(double k) const {
    return std::all_of(kColumns.begin(), kColumns.end(),
                       [&](const std::string& held) { return Failing(held, k) == 0; });
  }

  const nlohmann::json& tensors() const { return tensors_; }

  const std::vector<std::string> kColumns = {"default", "sdpa-flash", "sdpa-efficient", "sdpa-math",
                                             "blas-cublaslt"};

 private:
  nlohmann::json tensors_;
};

TEST(FreezeRuleTest, PyTorchColumnsGiveTheFactorOfTheFile) {
  const Naive naive;
  ASSERT_EQ(naive.tensors().size(), 764u);
  ASSERT_FALSE(naive.AllPass(1.0));
  ASSERT_TRUE(naive.AllPass(1.1));

  const auto rule = FreezeRule(PyTorchProviders(), TestBinds());
  ASSERT_TRUE(rule.ok()) << rule.status();
  EXPECT_EQ(rule->k(), 1.1);
  EXPECT_EQ(rule->origin(), v1::RULE_ORIGIN_FROZEN);
  ASSERT_EQ(rule->tensors_size(), 764);
  for (const v1::Rule::TensorBound& tensor : rule->tensors()) {
    EXPECT_EQ(tensor.bound(), 1.1 * naive.Max(tensor.name(), "") + Naive::Floor(tensor.name()))
        << tensor.name();
    ASSERT_EQ(tensor.relative_l2_size(), 5);
    EXPECT_EQ(tensor.max_abs(3), naive.tensors()[tensor.name()]["sdpa-math"][1]);
  }
  ASSERT_EQ(rule->leave_one_out_size(), 10);
  for (const v1::Rule::HoldOut& held : rule->leave_one_out()) {
    const std::string column = held.provider().substr(held.provider().find('/') + 1);
    EXPECT_EQ(held.failing(), naive.Failing(column, held.k())) << column << " " << held.k();
    EXPECT_EQ(held.passed(), held.failing() == 0);
    EXPECT_EQ(held.passed(), held.worst_ratio() <= 1);
    const double own = naive.tensors()[held.worst_tensor()][column][0];
    EXPECT_EQ(held.worst_ratio(), own / (held.k() * naive.Max(held.worst_tensor(), column) +
                                         Naive::Floor(held.worst_tensor())));
  }
}

TEST(FreezeRuleTest, ProvidersThatAreTheSameAreDroppedAndListed) {
  std::vector<ProviderErrors> providers = PyTorchProviders();
  ProviderErrors same_errors = providers[1];
  same_errors.name = "provider/again";
  same_errors.identity.mutable_parts(0)->set_value("other implementations");
  ProviderErrors same_implementations = providers[2];
  same_implementations.name = "provider/not-run";
  same_implementations.errors.clear();
  ProviderErrors capture = providers[3];
  capture.name = "capture";
  capture.identity.Clear();
  capture.errors.begin()->second.max_abs *= 2;
  providers.insert(providers.begin() + 3, {same_errors, same_implementations, capture});

  const auto rule = FreezeRule(providers, TestBinds());
  ASSERT_TRUE(rule.ok()) << rule.status();
  ASSERT_EQ(rule->providers_size(), 8);
  EXPECT_EQ(rule->providers(3).dropped_because(), "errors equal provider/sdpa-flash");
  EXPECT_EQ(rule->providers(4).dropped_because(), "implementations equal provider/sdpa-efficient");
  EXPECT_TRUE(rule->providers(5).kept());
  EXPECT_FALSE(rule->providers(5).has_identity());
  EXPECT_EQ(rule->tensors(0).relative_l2_size(), 6);
}

TEST(FreezeRuleTest, ThreeProvidersMustBeLeft) {
  std::vector<ProviderErrors> providers = PyTorchProviders();
  providers.resize(3);
  EXPECT_TRUE(FreezeRule(providers, TestBinds()).ok());
  providers[2].errors = providers[0].errors;
  const absl::Status status = FreezeRule(providers, TestBinds()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("2 of 3 providers are left and a rule needs 3"),
                    HasSubstr("provider/sdpa-efficient (errors equal provider/default)")));
}

TEST(FreezeRuleTest, NoFactorIsEnoughForAProviderThatIsBroken) {
  std::vector<ProviderErrors> providers = PyTorchProviders();
  for (ProviderErrors& provider : providers) provider.errors["nodes.block.7"] = {0, 0};
  providers[4].errors["nodes.block.7"] = {0.002, 1};
  const absl::Status status = FreezeRule(providers, TestBinds()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("provider/blas-cublaslt"), HasSubstr("nodes.block.7")));
}

TEST(FreezeRuleTest, TablesThatAreNoneAreRefused) {
  const auto message = [](const std::vector<ProviderErrors>& providers) {
    const absl::Status status = FreezeRule(providers, TestBinds()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  };
  std::vector<ProviderErrors> providers = PyTorchProviders();
  providers[1].errors["nodes.block.3"].relative_l2 = std::nan("");
  EXPECT_THAT(message(providers),
              AllOf(HasSubstr("nodes.block.3"), HasSubstr("provider/sdpa-flash")));
  providers = PyTorchProviders();
  providers[1].errors["nodes.block.3"].max_abs = std::numeric_limits<double>::infinity();
  EXPECT_THAT(message(providers), HasSubstr("nodes.block.3"));
  providers = PyTorchProviders();
  providers[2].errors.erase("output.video");
  EXPECT_THAT(message(providers), HasSubstr("lacks \"output.video\""));
  providers = PyTorchProviders();
  providers[2].errors["output.smell"] = {};
  EXPECT_THAT(message(providers), HasSubstr("has \"output.smell\""));
  providers = PyTorchProviders();
  providers[3].name = providers[0].name;
  EXPECT_THAT(message(providers), HasSubstr("twice"));
  providers = PyTorchProviders();
  providers[3].errors.clear();
  EXPECT_THAT(message(providers), HasSubstr("no errors"));
}

class CheckBindsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto rule = FreezeRule(PyTorchProviders(), TestBinds());
    ASSERT_TRUE(rule.ok()) << rule.status();
    rule_ = *std::move(rule);
    names_ = NamesOf(rule_);
  }

  std::string Refusal(const v1::Rule::Binds& binds, bool allow_other_device = false) {
    const absl::Status status = CheckBinds(rule_, binds, names_, allow_other_device);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  v1::Rule rule_;
  std::vector<std::string> names_;
};

TEST_F(CheckBindsTest, ItsOwnRunIsAccepted) {
  std::reverse(names_.begin(), names_.end());
  EXPECT_TRUE(CheckBinds(rule_, TestBinds(), names_, false).ok());
  EXPECT_EQ(OtherDeviceQualification(rule_, TestBinds()), "");
}

TEST_F(CheckBindsTest, AnotherRunIsRefusedWithWhatDiffers) {
  v1::Rule::Binds binds = TestBinds();
  binds.set_checkpoint_sha256(Sha256Hex("another"));
  EXPECT_THAT(Refusal(binds), AllOf(HasSubstr("checkpoint_sha256"), HasSubstr(Sha256Hex("another")),
                                    HasSubstr(Sha256Hex("checkpoint")), Not(HasSubstr("inputs"))));
  binds.set_inputs_sha256(Sha256Hex("another layout"));
  EXPECT_THAT(Refusal(binds), AllOf(HasSubstr("checkpoint_sha256"), HasSubstr("inputs_sha256")));

  names_.back() = "nodes.block.99";
  EXPECT_THAT(Refusal(TestBinds()), AllOf(HasSubstr("1 tensors of the rule are not in this job"),
                                          HasSubstr("nodes.block.99")));
}

TEST_F(CheckBindsTest, AnotherDeviceIsRefusedUnlessAllowedAndThenStated) {
  v1::Rule::Binds binds = TestBinds();
  binds.set_device_class("cpu-x86_64-avx2");
  EXPECT_THAT(Refusal(binds), AllOf(HasSubstr("device_class"), HasSubstr("sm_90a NVIDIA H200"),
                                    HasSubstr("cpu-x86_64-avx2")));
  EXPECT_TRUE(CheckBinds(rule_, binds, names_, /*allow_other_device=*/true).ok());
  EXPECT_EQ(OtherDeviceQualification(rule_, binds),
            "rule of another device class: sm_90a NVIDIA H200 132, not cpu-x86_64-avx2");
  binds.set_inputs_sha256(Sha256Hex("another layout"));
  EXPECT_THAT(Refusal(binds, true), AllOf(HasSubstr("inputs_sha256"), Not(HasSubstr("device"))));
}

TEST_F(CheckBindsTest, ComparingSetsTheFarthestBoundsFirst) {
  v1::Rule other = rule_;
  other.mutable_tensors(10)->set_bound(other.tensors(10).bound() / 3);
  other.mutable_tensors(20)->set_bound(other.tensors(20).bound() * 2);
  other.mutable_tensors(30)->set_name("zebra");
  const v1::RuleReport report = CompareRules(rule_, other);
  EXPECT_EQ(report.rule().sha256(), rule_.sha256());
  ASSERT_EQ(report.bounds_size(), 765);
  EXPECT_EQ(report.bounds(0).tensor(), rule_.tensors(30).name());
  EXPECT_FALSE(report.bounds(0).has_other_bound());
  EXPECT_EQ(report.bounds(1).tensor(), "zebra");
  EXPECT_FALSE(report.bounds(1).has_bound());
  EXPECT_EQ(report.bounds(2).tensor(), rule_.tensors(10).name());
  EXPECT_EQ(report.bounds(3).tensor(), rule_.tensors(20).name());
  EXPECT_EQ(report.bounds(4).tensor(), rule_.tensors(0).name());
}

}  // namespace
}  // namespace plumbline::drift
