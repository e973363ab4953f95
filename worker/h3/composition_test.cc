#include "worker/h3/composition.h"

#include <set>
#include <string>
#include <vector>

#include "common/status.h"
#include "common/vocabulary.h"
#include "gtest/gtest.h"
#include "kernels/builtin.h"
#include "worker/h3/config.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

class CompositionTest : public testing::Test {
 protected:
  absl::StatusOr<ResolvedComposition> Resolve(absl::string_view text) const {
    PLUMBLINE_ASSIGN_OR_RETURN(const Composition composition, ParseComposition(text));
    return ResolveComposition(composition, graph_, registry_, DeviceKind::kCpu);
  }
  std::string ImplementationOf(const ResolvedComposition& resolved, absl::string_view node) const {
    return resolved.nodes[*graph_.FindNode(node)]->implementation;
  }

  const Graph graph_ = BuildTransformerGraph(TinyConfig());
  const Registry registry_ = MakeBuiltinRegistry();
};

// What the server accepts without linking a kernel must be what a worker can run.
TEST_F(CompositionTest, TheVocabularyIsTheRegistrys) {
  const std::vector<std::string> registered = registry_.Implementations(DeviceKind::kCpu);
  EXPECT_EQ(std::set<std::string>(registered.begin(), registered.end()),
            std::set<std::string>(Implementations().begin(), Implementations().end()));
  EXPECT_EQ(CompositionGroups(),
            std::vector<std::string>(NodeGroups().begin(), NodeGroups().end()));
  EXPECT_EQ(BlockRoles(), std::vector<std::string>(BlockNodes().begin(), BlockNodes().end()));
  for (absl::string_view node : BoundaryNodes()) EXPECT_TRUE(graph_.FindNode(node).ok()) << node;
}

TEST_F(CompositionTest, EveryImplementationServesEveryNode) {
  for (absl::string_view name : Implementations()) {
    const auto resolved = Resolve(name);
    ASSERT_TRUE(resolved.ok()) << resolved.status();
    for (const Node& node : graph_.nodes()) EXPECT_EQ(ImplementationOf(*resolved, node.name), name);
  }
}

TEST_F(CompositionTest, OverridesNameRolesGroupsAndSingleNodes) {
  const auto resolved = Resolve("candidate+provider:attention,norms+golden:block.1/swiglu");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_TRUE(resolved->composition.IsHybrid());
  EXPECT_EQ(resolved->composition.ToString(),
            "candidate+provider/default:attention,norms+golden:block.1/swiglu");
  EXPECT_EQ(ImplementationOf(*resolved, "block.0/attention"), "provider/default");
  EXPECT_EQ(ImplementationOf(*resolved, "refiner.0/attention"), "provider/default");
  EXPECT_EQ(ImplementationOf(*resolved, "block.1/norm2"), "provider/default");
  EXPECT_EQ(ImplementationOf(*resolved, "block.0/swiglu"), "candidate");
  EXPECT_EQ(ImplementationOf(*resolved, "block.1/swiglu"), "golden");
  EXPECT_EQ(resolved->base_precision, Precision::kMixed);
}

TEST_F(CompositionTest, ACandidateWithPluginsIsNoHybrid) {
  const struct {
    const char* text;
    bool hybrid;
  } cases[] = {
      {"candidate", false},
      {"candidate+plugin/a:swiglu+plugin/b:attention", false},
      {"candidate+plugin/a:swiglu+provider:attention", true},
      {"provider+plugin/a:swiglu", true},
      {"provider", false},
  };
  for (const auto& each : cases) {
    const auto composition = ParseComposition(each.text);
    ASSERT_TRUE(composition.ok()) << composition.status();
    EXPECT_EQ(composition->IsHybrid(), each.hybrid) << each.text;
  }
}

// Where a refiner's node of the role is another operation, a plug-in that has the block's alone
// leaves it what it was.
TEST_F(CompositionTest, APluginNamesTheNodesOfARoleThatItHas) {
  Registry registry = MakeBuiltinRegistry();
  OperationRegistration norm =
      *registry.Find("candidate", OpKind::kModulatedRmsNorm, "norm1", DeviceKind::kCpu).value();
  norm.implementation = "plugin/norm";
  norm.nodes = {"norm1"};
  ASSERT_TRUE(registry.Register(norm).ok());
  const auto resolve = [&](absl::string_view text) {
    return ResolveComposition(ParseComposition(text).value(), graph_, registry, DeviceKind::kCpu);
  };
  const auto resolved = resolve("candidate+plugin/norm:norm1");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(ImplementationOf(*resolved, "block.0/norm1"), "plugin/norm");
  EXPECT_EQ(ImplementationOf(*resolved, "refiner.0/norm1"), "candidate");
  for (const char* refused : {"candidate+plugin/norm:norms", "candidate+plugin/norm:swiglu",
                              "candidate+plugin/norm:refiner.0/norm1", "plugin/norm"}) {
    EXPECT_EQ(resolve(refused).status().code(), absl::StatusCode::kInvalidArgument) << refused;
  }
}

TEST_F(CompositionTest, AnEmptyGroupIsReported) {
  const auto resolved = Resolve("candidate+provider:interim");
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->empty_overrides, std::vector<std::string>{"provider/default:interim"});
}

TEST_F(CompositionTest, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the base"},
      {"candidate+", "IMPLEMENTATION:NODE"},
      {"candidate+provider", "IMPLEMENTATION:NODE"},
      {"candidate+provider:", "IMPLEMENTATION:NODE"},
      {"candidate+provider:attention,", "no node name"},
      {"candidat", "candidate"},
      {"candidate+acme:swiglu", "acme"},
      {"candidate+provider:attentoin", "attention"},
      {"candidate+provider:block.9/attention", "block.9/attention"},
  };
  for (const auto& [text, says] : cases) {
    const auto resolved = Resolve(text);
    ASSERT_EQ(resolved.status().code(), absl::StatusCode::kInvalidArgument) << text;
    ASSERT_EQ(GetFieldViolations(resolved.status()).size(), 1u) << text;
    EXPECT_EQ(GetFieldViolations(resolved.status())[0].field, "composition") << text;
    EXPECT_NE(resolved.status().message().find(says), std::string::npos)
        << text << ": " << resolved.status();
  }
}

}  // namespace
}  // namespace plumbline::h3
