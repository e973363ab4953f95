// The inventory against the names of the captures, and the two namings against each other.
#include "worker/h3/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/json.h"
#include "common/safetensors.h"
#include "worker/h3/inventory_names.h"
#include "worker/h3/transformer_graph.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;

std::vector<InventoryTensor> Inventory(const TransformerConfig& config, const RowCounts& rows) {
  return MakeInventory(config, BuildTransformerGraph(config), rows);
}

std::set<std::string> Names(const std::vector<InventoryTensor>& inventory) {
  std::set<std::string> names;
  for (const InventoryTensor& tensor : inventory) names.insert(tensor.name);
  return names;
}

TEST(InventoryTest, NamesAreThoseOfTheReleasedSizesCapture) {
  const auto text = ReadFile("tests/golden/full_model_h200.json", 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto capture = ParseJson(*text, "full_model_h200.json");
  ASSERT_TRUE(capture.ok()) << capture.status();
  std::set<std::string> captured;
  for (const auto& [name, figures] : (*capture)["tensors"].items()) captured.insert(name);
  const std::vector<InventoryTensor> inventory =
      Inventory(ReleasedConfig(), {925, 291, 560, 74, 3});
  EXPECT_EQ(inventory.size(), 764u);
  EXPECT_EQ(Names(inventory), captured);
}

TEST(InventoryTest, NamesAndShapesAreThoseOfTheSmallCapture) {
  const auto capture = SafetensorsFile::Open("tests/golden/transformer_fp32_cpu.safetensors");
  ASSERT_TRUE(capture.ok()) << capture.status();
  std::map<std::string, std::vector<int64_t>> captured;
  for (const TensorInfo& info : capture->tensors()) captured[info.name] = info.shape;
  std::map<std::string, std::vector<int64_t>> ours;
  const std::vector<InventoryTensor> inventory = Inventory(TinyConfig(), {53, 7, 36, 10, 3});
  for (const InventoryTensor& tensor : inventory) ours[tensor.name] = tensor.shape;
  EXPECT_EQ(inventory.size(), 92u);
  EXPECT_EQ(ours, captured);
}

TEST(InventoryTest, IsInExecutionOrder) {
  std::vector<std::string> forward, gradients, leaves;
  for (const InventoryTensor& tensor : Inventory(TinyConfig(), {53, 7, 36, 10, 3})) {
    switch (tensor.kind) {
      case TapKind::kForward:
        ASSERT_TRUE(gradients.empty() && leaves.empty()) << tensor.name;
        EXPECT_FALSE(tensor.IsGradient());
        forward.push_back(tensor.name);
        break;
      case TapKind::kGradient:
        ASSERT_TRUE(leaves.empty()) << tensor.name;
        EXPECT_TRUE(tensor.IsGradient());
        gradients.push_back(tensor.name);
        break;
      default:
        EXPECT_TRUE(tensor.IsGradient());
        leaves.push_back(tensor.name);
    }
  }
  EXPECT_THAT(forward, ElementsAre("nodes.proj_in", "nodes.audio_proj_in", "nodes.context_embedder",
                                   "nodes.token_refiner.refiner_blocks.0",
                                   "nodes.token_refiner.refiner_blocks.1", "nodes.token_refiner",
                                   "nodes.time_proj", "nodes.time_embedder", "nodes.block.0",
                                   "nodes.block.1", "nodes.norm_out", "nodes.proj_out",
                                   "nodes.audio_proj_out", "output.video", "output.audio"));
  EXPECT_THAT(
      gradients,
      ElementsAre("nodes.audio_proj_out.grad", "nodes.proj_out.grad", "nodes.norm_out.grad",
                  "nodes.block.1.grad", "nodes.block.0.grad", "nodes.time_embedder.grad",
                  "nodes.token_refiner.grad", "nodes.token_refiner.refiner_blocks.1.grad",
                  "nodes.token_refiner.refiner_blocks.0.grad", "nodes.context_embedder.grad",
                  "nodes.audio_proj_in.grad", "nodes.proj_in.grad"));
  ASSERT_EQ(leaves.size(), 65u);
  EXPECT_EQ(leaves.front(), "parameter.audio_proj_out.weight");
  EXPECT_EQ(leaves.back(), "input_gradients.hidden_states");
}

TEST(InventoryTest, TapsAreNamedByTheGraph) {
  const TransformerConfig config = TinyConfig();
  const Graph graph = BuildTransformerGraph(config);
  for (const InventoryTensor& tensor : MakeInventory(config, graph, {53, 7, 36, 10, 3})) {
    EXPECT_EQ(TapOfInventoryName(tensor.name), tensor.tap);
    if (tensor.kind == TapKind::kParameterGradient) continue;
    const bool gradient = tensor.kind != TapKind::kForward;
    const std::string value = tensor.tap.substr(0, tensor.tap.size() - (gradient ? 5 : 0));
    EXPECT_TRUE(graph.FindValue(value).ok()) << value;
  }
}

// What a node failed to compute shows no earlier than in the tensor that is said to be behind it.
TEST(InventoryTest, EveryNodeHasATensorBehindIt) {
  for (const TransformerConfig& config : {TinyConfig(), ReleasedConfig()}) {
    const Graph graph = BuildTransformerGraph(config);
    std::map<std::string, NodeId> tapped_at;
    for (const InventoryTensor& tensor : MakeInventory(config, graph, {53, 7, 36, 10, 3})) {
      if (tensor.kind == TapKind::kForward) tapped_at[tensor.name] = *graph.FindNode(tensor.tap);
    }
    for (size_t id = 0; id < graph.nodes().size(); ++id) {
      const auto behind = tapped_at.find(FirstTensorBehind(graph.nodes()[id].name));
      ASSERT_NE(behind, tapped_at.end()) << graph.nodes()[id].name;
      if (graph.nodes()[id].name == "norm_out/float32") continue;  // a part of norm_out, behind it
      EXPECT_GE(behind->second, static_cast<NodeId>(id)) << graph.nodes()[id].name;
    }
  }
}

TEST(InventoryNamesTest, InnerNodesAreNotInTheInventory) {
  EXPECT_EQ(InventoryNameOfNode("block.3/q_proj"), "");
  EXPECT_EQ(InventoryNameOfNode("refiner.0/attention"), "");
  EXPECT_EQ(InventoryNameOfNode("scatter"), "");
  EXPECT_EQ(InventoryNameOfNode("norm_out/linear"), "");
}

}  // namespace
}  // namespace plumbline::h3
