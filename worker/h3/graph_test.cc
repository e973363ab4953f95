#include "worker/h3/graph.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "worker/h3/config.h"
#include "worker/h3/parameters.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

TEST(Graph, BlockHasTheSeventeenNodesInOrder) {
  const Graph graph = BuildBlockGraph(TinyConfig(), 3);
  ASSERT_EQ(graph.nodes().size(), 17u);
  for (size_t i = 0; i < graph.nodes().size(); ++i) {
    EXPECT_EQ(graph.nodes()[i].role, BlockRoles()[i]);
    EXPECT_EQ(graph.nodes()[i].name, "block.3/" + BlockRoles()[i]);
  }
}

TEST(Graph, TransformerReadsEveryParameterOnce) {
  const TransformerConfig config = TinyConfig();
  const Graph graph = BuildTransformerGraph(config);
  std::multiset<std::string> read;
  for (const Node& node : graph.nodes())
    read.insert(node.parameters.begin(), node.parameters.end());
  std::multiset<std::string> expected;
  for (const ParameterSpec& parameter : TransformerParameters(config)) {
    expected.insert(parameter.name);
  }
  EXPECT_EQ(read, expected);
}

TEST(Graph, NodesReadOnlyWhatIsThere) {
  const Graph graph = BuildTransformerGraph(TinyConfig());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes().size()); ++id) {
    for (const Use& use : graph.nodes()[id].inputs) {
      EXPECT_LT(graph.values()[use.value].producer, id) << graph.nodes()[id].name;
    }
  }
}

TEST(Graph, OnlyTheResidualStreamAndTembCrossSegments) {
  const Graph graph = BuildTransformerGraph(TinyConfig());
  std::set<std::string> persistent;
  for (size_t id = 0; id < graph.values().size(); ++id) {
    const Value& value = graph.values()[id];
    if (value.producer != kNoNode && graph.IsPersistent(id)) persistent.insert(value.name);
  }
  EXPECT_EQ(persistent,
            (std::set<std::string>{"scatter", "time_embedder", "block.0/residual_mlp",
                                   "block.1/residual_mlp", "output.video", "output.audio"}));
}

TEST(Graph, ModulationTablesAreReadInSlices) {
  const Graph graph = BuildTransformerGraph(TinyConfig());
  for (const char* name :
       {"block.0/adaln_projection", "block.1/adaln_projection", "norm_out/linear"}) {
    const auto id = graph.FindValue(name);
    ASSERT_TRUE(id.ok());
    EXPECT_TRUE(graph.IsReadInSlices(*id)) << name;
  }
  EXPECT_FALSE(graph.IsReadInSlices(*graph.FindValue("block.0/norm1")));
}

TEST(Graph, UnknownValueNamesTheInputs) {
  const auto id = BuildBlockGraph(TinyConfig(), 0).FindValue("block.inputs");
  ASSERT_FALSE(id.ok());
  EXPECT_NE(id.status().message().find("block.temb"), std::string::npos);
}

}  // namespace
}  // namespace plumbline::h3
