// Plug-ins as their authors build them, in block replays of the small checkpoint: the right ones
// pass their gates, each wrong one is caught and named.
#include "worker/plugin/plugins.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/plugin/fault.h"
#include "kernels/plugin/nodes.h"
#include "worker/h3/config.h"
#include "worker/h3/transformer_graph.h"
#include "worker/jobs/block_replay_fixture.h"

namespace plumbline::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kSwiGlu[] = "examples/plugin/swiglu.so";
constexpr char kFusedNorm[] = "examples/plugin/fused_norm.so";

std::string Wrong(const std::string& name) {
  return absl::StrCat("examples/plugin/wrong/", name, ".so");
}

class PluginsTest : public jobs::BlockReplayTest {
 protected:
  PluginsTest() {
    options_.copies_folder = testing::TempDir() + "/plugins";
    options_.probe.program = "worker/plugin/probe_main";
    plugins_.emplace(options_);
  }

  void Load(const std::string& path) {
    const absl::Status added = plugins_->Add(path);
    ASSERT_TRUE(added.ok()) << path << ": " << added;
    auto registry = plugins_->MakeRegistry();
    ASSERT_TRUE(registry.ok()) << registry.status();
    with_plugins_.emplace(*std::move(registry));
    context_.registry = &*with_plugins_;
  }

  absl::StatusOr<jobs::BlockReplayResult> Replay(const std::string& composition, bool backward) {
    jobs::BlockReplayRequest request = Request(CaptureLayout());
    request.spec.set_composition(composition);
    request.spec.mutable_block_replay()->set_backward(backward);
    return Run(request);
  }

  PluginOptions options_;
  std::optional<Plugins> plugins_;
  std::optional<Registry> with_plugins_;
};

TEST_F(PluginsTest, ACpuKernelInCPassesForwardAndBackward) {
  Load(kSwiGlu);
  const auto result = Replay("candidate+plugin/example_swiglu:swiglu", /*backward=*/true);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->verdict.outcome(), v1::OUTCOME_PASSED) << jobs::Summary(*result);
  EXPECT_FALSE(result->hybrid);
  EXPECT_TRUE(result->verdict.qualifications().empty());
  const v1::EntryReport entry = jobs::ByName(*result).at("swiglu");
  EXPECT_EQ(entry.implementation().requested(), "plugin/example_swiglu");
  EXPECT_EQ(entry.implementation().actual(), "plugin/example_swiglu");
  EXPECT_EQ(entry.implementation().owner(), "Plumbline examples");
  EXPECT_EQ(entry.implementation().status(), v1::NODE_STATUS_BOUND);
  EXPECT_EQ(entry.repeat().result(), v1::EQUALITY_EQUAL);
  EXPECT_EQ(entry.batch().result(), v1::EQUALITY_EQUAL);
  const v1::EntryReport gradient = jobs::ByName(*result).at("ffn_gate_up.grad");
  EXPECT_EQ(gradient.implementation().requested(), "plugin/example_swiglu");
}

TEST_F(PluginsTest, AKernelOfSeveralNodesPassesWithItsIntermediateOutput) {
  Load(kFusedNorm);
  const auto result =
      Replay("candidate+plugin/example_norm:norm1,residual_attn,norm2", /*backward=*/false);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->verdict.outcome(), v1::OUTCOME_PASSED) << jobs::Summary(*result);
  const auto entries = jobs::ByName(*result);
  EXPECT_EQ(entries.at("norm1").implementation().actual(), "plugin/example_norm");
  for (const char* node : {"residual_attn", "norm2"}) {
    EXPECT_EQ(entries.at(node).implementation().actual(),
              "plugin/example_norm/residual_attn+norm2");
    // The gate: the provider's bytes.
    EXPECT_TRUE(entries.at(node).isolated().bitwise_equal()) << node;
  }
}

TEST_F(PluginsTest, OneThreadOrManyGiveTheSameBytes) {
  Load(kSwiGlu);
  Load(kFusedNorm);
  std::vector<std::string> digests;
  for (int threads : {1, 3}) {
    UseThreads(threads);
    context_.registry = &*with_plugins_;
    const auto result =
        Replay("candidate+plugin/example_swiglu:swiglu+plugin/example_norm:residual_attn,norm2",
               /*backward=*/false);
    ASSERT_TRUE(result.ok()) << result.status();
    digests.push_back(jobs::ByName(*result).at("residual_mlp").sha256());
  }
  EXPECT_EQ(digests[0], digests[1]);
}

struct Caught {
  std::string file;
  std::string nodes;
  bool backward;
  std::string reason;
  std::string message;
};

TEST_F(PluginsTest, EveryGuardCatchesAndNamesWhatIsWrong) {
  // 53 rows: 7 of text, 5 of sound in each of 2 channels, 3 frames of 12.
  const Caught cases[] = {
      {"unwritten", "swiglu", false, plugin::kViolationReason,
       "block.0/swiglu: plugin/unwritten: did not write the output at (0, 52, "},
      {"overrun", "swiglu", false, plugin::kViolationReason,
       "block.0/swiglu: plugin/overrun: wrote outside the output, 4 bytes behind its end, at (0, "
       "53, 2)"},
      {"underrun", "swiglu", false, plugin::kViolationReason,
       "block.0/swiglu: plugin/underrun: wrote outside the output, 2 bytes before its beginning"},
      {"changes_input", "swiglu", false, plugin::kViolationReason,
       "block.0/swiglu: plugin/changes_input: changed its input gate_up at (0, 3, 5)"},
      {"scratch_overrun", "swiglu", false, plugin::kViolationReason,
       "block.0/swiglu: plugin/scratch_overrun: wrote outside the workspace, 0 bytes behind its "
       "end"},
      {"between_rows", "norm1", false, plugin::kViolationReason,
       "block.0/norm1: plugin/between_rows: wrote between the rows of scale, at (0, 0, "},
      {"tapped", "residual_attn,norm2", false, plugin::kViolationReason,
       "block.0/residual_attn: plugin/tapped: gives other bytes for the output of norm2 when its "
       "intermediate outputs are not asked for, at (0, 0, 7)"},
      {"bad_backward", "swiglu", true, plugin::kViolationReason,
       "block.0/swiglu backward: plugin/bad_backward: did not write the gradient of gate_up at "
       "(0, 0, 0)"},
      {"fails", "swiglu", false, plugin::kFailedReason,
       "block.0/swiglu: plugin/fails: failed with code 1: no tile configuration for this shape"},
  };
  for (const Caught& wrong : cases) {
    Load(Wrong(wrong.file));
    const auto result =
        Replay(absl::StrCat("candidate+plugin/", wrong.file, ":", wrong.nodes), wrong.backward);
    ASSERT_FALSE(result.ok()) << wrong.file << "\n" << jobs::Summary(*result);
    EXPECT_THAT(result.status().message(), HasSubstr(wrong.message)) << wrong.file;
    EXPECT_EQ(GetReason(result.status()), wrong.reason) << wrong.file;
  }
  // None of them did any harm.
  Load(kSwiGlu);
  const auto after = Replay("candidate+plugin/example_swiglu:swiglu", /*backward=*/true);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->verdict.outcome(), v1::OUTCOME_PASSED) << jobs::Summary(*after);
}

TEST_F(PluginsTest, GatesHoldKernelsToTheirPromises) {
  const struct {
    const char* file;
    const char* gate;
    const char* promise;
  } cases[] = {
      {"neighbours", "batch",
       "plugin/neighbours promises to be row-invariant and is not, at swiglu"},
      {"unrepeatable", "repeat",
       "plugin/unrepeatable promises to be repeatable and is not, at swiglu"},
      {"halves", "isolated_relative_l2", nullptr},
  };
  for (const auto& wrong : cases) {
    Load(Wrong(wrong.file));
    const auto result =
        Replay(absl::StrCat("candidate+plugin/", wrong.file, ":swiglu"), /*backward=*/false);
    ASSERT_TRUE(result.ok()) << wrong.file << ": " << result.status();
    EXPECT_EQ(result->verdict.outcome(), v1::OUTCOME_FAILED) << jobs::Summary(*result);
    EXPECT_EQ(result->verdict.first_failure().entry(), "swiglu") << jobs::Summary(*result);
    EXPECT_EQ(result->verdict.first_failure().gate(), wrong.gate) << jobs::Summary(*result);
    if (wrong.promise != nullptr) {
      EXPECT_THAT(result->verdict.sentence(), HasSubstr(wrong.promise));
    } else {
      EXPECT_THAT(result->verdict.sentence(), Not(HasSubstr("promises")));
    }
  }
}

TEST_F(PluginsTest, TheProbeRefusesWhatCannotBeLoaded) {
  options_.probe.limit = absl::Seconds(2);
  plugins_.emplace(options_);
  const std::string text = testing::TempDir() + "/text.so";
  ASSERT_TRUE(WriteFileAtomically(text, "not a shared object\n").ok());
  const struct {
    std::string file;
    const char* message;
  } cases[] = {
      {Wrong("crashes_when_loaded"), "crashes while it is loaded: signal 11"},
      {Wrong("hangs_when_loaded"), "hangs: it was not loaded within 2s"},
      {Wrong("other_abi"), "plugin.abi_version: is 99; accepted: 1"},
      {Wrong("unknown_node"), "there is no node \"swigloo\"; accepted: adaln_projection, norm1"},
      {text, "cannot be loaded: "},
      {"worker/plugin/none.so", "none.so"},
  };
  for (const auto& wrong : cases) {
    const absl::Status added = plugins_->Add(wrong.file);
    EXPECT_FALSE(added.ok()) << wrong.file;
    EXPECT_THAT(added.message(), HasSubstr(wrong.message)) << wrong.file;
    // What a client is told has no path of this machine.
    if (wrong.file != "worker/plugin/none.so") {
      EXPECT_THAT(added.message(), Not(HasSubstr(testing::TempDir()))) << wrong.file;
    }
  }
  EXPECT_TRUE(plugins_->empty());
}

TEST_F(PluginsTest, AFolderDescribesWhatItLoadsAndWhatItRefuses) {
  const std::string folder = testing::TempDir() + "/folder";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(std::filesystem::canonical(kSwiGlu), folder + "/a.so");
  std::filesystem::copy_file(std::filesystem::canonical(Wrong("other_abi")), folder + "/b.so");
  // Another file with the first one's name.
  std::filesystem::copy_file(std::filesystem::canonical(kSwiGlu), folder + "/c.so");
  ASSERT_TRUE(WriteFileAtomically(folder + "/README", "no plug-in").ok());
  // A name that no message of the API can hold.
  ASSERT_TRUE(WriteFileAtomically(folder + "/d\xff.so", "nonsense").ok());
  ASSERT_TRUE(plugins_->AddFolder(folder).ok());
  ASSERT_EQ(plugins_->descriptions().size(), 3);
  const v1::Plugin& swiglu = plugins_->descriptions()[0];
  EXPECT_EQ(swiglu.name(), "example_swiglu");
  EXPECT_EQ(swiglu.sha256(), Sha256Hex(*ReadFile(kSwiGlu, 1 << 20)));
  EXPECT_EQ(swiglu.abi_version(), 1);
  EXPECT_EQ(swiglu.owner(), "Plumbline examples");
  EXPECT_EQ(swiglu.device_kind(), v1::DEVICE_KIND_CPU);
  EXPECT_TRUE(swiglu.repeatable());
  EXPECT_TRUE(swiglu.row_invariant());
  ASSERT_EQ(swiglu.nodes_size(), 1);
  EXPECT_EQ(swiglu.nodes(0), "swiglu");
  EXPECT_EQ(plugins_->descriptions()[1].name(), "b");
  EXPECT_THAT(plugins_->descriptions()[1].refused(), HasSubstr("abi_version"));
  EXPECT_EQ(plugins_->descriptions()[2].name(), "d\\xff");
  v1::Plugin sent;
  EXPECT_TRUE(sent.ParseFromString(plugins_->descriptions()[2].SerializeAsString()));
  EXPECT_EQ(plugins_->Identities().at("example_swiglu"),
            absl::StrCat(swiglu.sha256(), " example_swiglu 1"));

  EXPECT_THAT(plugins_->AddFolder(folder + "/none").message(), HasSubstr("plugins: "));
}

TEST_F(PluginsTest, ACompositionThatAPluginCannotDoIsRefused) {
  Load(kFusedNorm);
  const struct {
    const char* composition;
    bool backward;
    const char* message;
  } cases[] = {
      {"candidate+plugin/example_norm:norm2", false,
       "plugin/example_norm computes residual_attn, norm2 together, and was not given all of them"},
      {"candidate+plugin/example_norm:norm1", true,
       "plugin/example_norm has no backward of block.0/norm1"},
      {"candidate+plugin/example_norm:swiglu", false,
       "implementation 'plugin/example_norm' has no SwiGlu for node 'swiglu'"},
      {"candidate+plugin/none:swiglu", false, "there is no implementation \"plugin/none\""},
      {"plugin/example_norm", false, "plugin/example_norm covers single nodes, not a model"},
  };
  for (const auto& refused : cases) {
    const auto result = Replay(refused.composition, refused.backward);
    ASSERT_FALSE(result.ok()) << refused.composition;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    EXPECT_THAT(result.status().message(), HasSubstr(refused.message)) << refused.composition;
  }
}

// Every compiler that builds plug-ins with the header alone, and the language it takes it for.
TEST_F(PluginsTest, PluginsOfOtherCompilersWork) {
  std::vector<std::string> digests;
  for (const char* built : {"gcc_c99", "gcc_cxx", "clang_c99", "clang_cxx"}) {
    plugins_.emplace(options_);
    Load(absl::StrCat("examples/plugin/swiglu_", built, ".so"));
    const auto result = Replay("candidate+plugin/example_swiglu:swiglu", /*backward=*/true);
    ASSERT_TRUE(result.ok()) << built << ": " << result.status();
    EXPECT_EQ(result->verdict.outcome(), v1::OUTCOME_PASSED) << built;
  }
}

// What plug-ins call nodes is what the graph has.
TEST(PluginNodesTest, AreTheGraphs) {
  const h3::Graph graph = h3::BuildTransformerGraph(h3::ReleasedConfig());
  for (const plugin::PluginNode& node : plugin::PluginNodes()) {
    bool found = false;
    for (const h3::Node& other : graph.nodes()) {
      found |= other.role == node.role && other.op == node.op;
    }
    EXPECT_TRUE(found) << node.name;
  }
  const std::vector<std::string>& roles = h3::BlockRoles();
  for (size_t i = 0; i < roles.size(); ++i) EXPECT_EQ(plugin::PluginNodes()[i].name, roles[i]);
  const h3::Graph block = h3::BuildBlockGraph(h3::ReleasedConfig(), 0);
  for (size_t i = 0; i < block.nodes().size(); ++i) {
    EXPECT_EQ(plugin::PluginNodes()[i].op, block.nodes()[i].op) << block.nodes()[i].name;
  }
}

}  // namespace
}  // namespace plumbline::worker
