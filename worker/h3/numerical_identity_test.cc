#include "worker/h3/numerical_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "common/sha256.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

KernelIdentity Kernel(const std::string& sha256 = "abc") {
  KernelIdentity kernel;
  kernel.sha256 = sha256;
  return kernel;
}

NumericalFacts Facts() {
  NumericalFacts facts;
  facts.composition = "candidate";
  facts.plugins = {{"fast", "123"}};
  facts.libraries = {{"openblas", "0.3.21 Haswell, 2 threads"}, {"cublas", "13.0"}};
  facts.device_class = "cpu-x86_64-avx2";
  facts.checkpoint = "def";
  return facts;
}

TEST(NumericalIdentityTest, DigestIsOfTheCanonicalJson) {
  const NumericalIdentity identity = *MakeNumericalIdentity(Kernel(), Facts());
  EXPECT_EQ(CanonicalIdentityJson(identity.parts),
            R"({"checkpoint":"def","composition":"candidate","device_class":"cpu-x86_64-avx2",)"
            R"("kernel":"abc","library.cublas":"13.0",)"
            R"("library.openblas":"0.3.21 Haswell, 2 threads","plugin.fast":"123"})");
  EXPECT_EQ(identity.sha256, Sha256Hex(CanonicalIdentityJson(identity.parts)));
  EXPECT_EQ(CanonicalIdentityJson({{"a", "\"\\\n\xc3\xa9/"}}), "{\"a\":\"\\\"\\\\\\n\xc3\xa9/\"}");
}

TEST(NumericalIdentityTest, EveryPartCountsAndIsNamed) {
  const NumericalIdentity first = *MakeNumericalIdentity(Kernel(), Facts());
  const std::pair<std::string, std::function<void(NumericalFacts*)>> changes[] = {
      {"composition", [](NumericalFacts* f) { f->composition = "golden"; }},
      {"device_class", [](NumericalFacts* f) { f->device_class = "sm_90a"; }},
      {"checkpoint", [](NumericalFacts* f) { f->checkpoint = "fed"; }},
      {"plugin.fast", [](NumericalFacts* f) { f->plugins["fast"] = "124"; }},
      {"plugin.slow", [](NumericalFacts* f) { f->plugins["slow"] = "123"; }},
      {"library.cublas", [](NumericalFacts* f) { f->libraries.erase("cublas"); }},
      {"library.openblas", [](NumericalFacts* f) { f->libraries["openblas"] = "0.3.22"; }},
  };
  std::set<std::string> digests = {first.sha256};
  for (const auto& [name, change] : changes) {
    NumericalFacts facts = Facts();
    change(&facts);
    const NumericalIdentity other = *MakeNumericalIdentity(Kernel(), facts);
    EXPECT_TRUE(digests.insert(other.sha256).second) << name;
    EXPECT_THAT(DifferingParts(first.parts, other.parts), ElementsAre(name));
    EXPECT_THAT(DifferingParts(other.parts, first.parts), ElementsAre(name));
  }
  const NumericalIdentity rebuilt = *MakeNumericalIdentity(Kernel("abd"), Facts());
  EXPECT_TRUE(digests.insert(rebuilt.sha256).second);
  EXPECT_THAT(DifferingParts(first.parts, rebuilt.parts), ElementsAre("kernel"));
  EXPECT_THAT(DifferingParts(first.parts, first.parts), IsEmpty());
}

TEST(NumericalIdentityTest, RefusesWhatNobodyFilledIn) {
  EXPECT_THAT(MakeNumericalIdentity(Kernel(""), Facts()).status().message(),
              HasSubstr("identity.kernel: is empty"));
  NumericalFacts facts = Facts();
  facts.checkpoint.clear();
  EXPECT_THAT(MakeNumericalIdentity(Kernel(), facts).status().message(),
              HasSubstr("identity.checkpoint: is empty"));
  facts = Facts();
  facts.libraries["cublas"] = "\xff";
  EXPECT_THAT(MakeNumericalIdentity(Kernel(), facts).status().message(),
              HasSubstr("not valid UTF-8"));
}

}  // namespace
}  // namespace plumbline::h3
