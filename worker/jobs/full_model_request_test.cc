// What a full model can be asked for besides its verdict: captures on every side, kept and saved
// tensors, hybrids, the ablation; and what it refuses.
#include <algorithm>
#include <functional>

#include "absl/strings/match.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "common/sha256.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "worker/h3/transformer_graph.h"
#include "worker/jobs/full_model_fixture.h"

namespace plumbline::jobs {
namespace {

class FullModelRequestTest : public FullModelTest {
 protected:
  using Views = std::vector<TensorView>;

  // A run's tensors as a capture.
  std::string Captured(const std::string& composition, const std::string& name) {
    v1::JobSpec spec = Spec();
    spec.set_composition(composition);
    spec.set_save_tensors(true);
    spec.mutable_full_model()->add_providers("default");
    spec.mutable_full_model()->add_providers("sdpa-flash");
    spec.mutable_full_model()->add_providers("sdpa-math");
    const auto result = Run(spec);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return "";
    for (const OutputFile& file : result->files) {
      if (file.role != v1::ARTIFACT_ROLE_TENSORS) continue;
      const std::string path = absl::StrCat(environment_.output_folder, "/", name);
      std::filesystem::rename(file.path, path);
      return path;
    }
    ADD_FAILURE() << "no tensors were saved";
    return "";
  }

  std::string Changed(const std::string& capture, const std::function<void(Views*)>& change) {
    const auto file = SafetensorsFile::Open(capture);
    EXPECT_TRUE(file.ok()) << file.status();
    Views views;
    for (const TensorInfo& tensor : file->tensors()) {
      views.push_back({{tensor.name, tensor.dtype, tensor.shape}, file->Bytes(tensor)});
    }
    change(&views);
    const std::string path = absl::StrCat(environment_.output_folder, "/changed.safetensors");
    EXPECT_TRUE(WriteSafetensors(path, views).ok());
    return path;
  }

  static TensorView& Of(Views* views, const std::string& name) {
    return *std::find_if(views->begin(), views->end(),
                         [&](const TensorView& view) { return view.spec.name == name; });
  }

  void ExpectRefused(const v1::JobSpec& spec, const FullModelFiles& files, const std::string& field,
                     const std::string& text) {
    const auto result = Run(spec, files);
    ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    EXPECT_TRUE(absl::StrContains(result.status().message(), text)) << result.status();
    const std::vector<FieldViolation> violations = GetFieldViolations(result.status());
    ASSERT_FALSE(violations.empty()) << result.status();
    EXPECT_EQ(violations[0].field, field);
  }
};

TEST_F(FullModelRequestTest, DigestsDoNotDependOnTheRunOrTheThreads) {
  const auto first = Run(Spec());
  ASSERT_TRUE(first.ok()) << first.status();
  for (int threads : {2, 1}) {
    UseThreads(threads);
    const auto again = Run(Spec());
    ASSERT_TRUE(again.ok()) << again.status();
    for (int i = 0; i < 92; ++i) {
      const v1::FullModelTensor& a = first->report.full_model().tensors(i);
      const v1::FullModelTensor& b = again->report.full_model().tensors(i);
      EXPECT_EQ(a.golden_sha256(), b.golden_sha256()) << a.name() << ", " << threads;
      EXPECT_EQ(a.candidate_error().sha256(), b.candidate_error().sha256()) << a.name();
      EXPECT_EQ(a.bound(), b.bound()) << a.name();
    }
  }
}

TEST_F(FullModelRequestTest, SavedTensorsStandForEverySide) {
  const std::string golden = Captured("golden", "golden.safetensors");
  const std::string provider = Captured("provider/default", "provider.safetensors");
  const std::string candidate = Captured("candidate", "candidate.safetensors");
  const auto run = Run(Spec());
  ASSERT_TRUE(run.ok()) << run.status();

  FullModelFiles files;
  files.golden = golden;
  files.providers["default"] = provider;
  files.candidate = candidate;
  const auto captured = Run(Spec(), files);
  ASSERT_TRUE(captured.ok()) << captured.status();
  const v1::FullModelReport& report = captured->report.full_model();
  EXPECT_EQ(report.captured_size(), 3);
  EXPECT_EQ(captured->report.verdict().outcome(), v1::OUTCOME_PARTIAL);
  EXPECT_FALSE(captured->report.has_identity());
  EXPECT_EQ(report.rule().providers_size(), 5);
  for (int i = 0; i < 92; ++i) {
    const v1::FullModelTensor& a = run->report.full_model().tensors(i);
    const v1::FullModelTensor& b = report.tensors(i);
    EXPECT_EQ(a.golden_sha256(), b.golden_sha256()) << a.name();
    EXPECT_EQ(a.bound(), b.bound()) << a.name();
    EXPECT_EQ(a.candidate_error().relative_l2(), b.candidate_error().relative_l2()) << a.name();
    EXPECT_EQ(a.candidate_drift().max_u(), b.candidate_drift().max_u()) << a.name();
    EXPECT_EQ(a.candidate_error().sha256(), b.candidate_error().sha256()) << a.name();
  }
}

TEST_F(FullModelRequestTest, ACapturedCandidatesMissingExtraMisshapenAndZeroedTensorsFail) {
  const std::string capture = Captured("candidate", "candidate.safetensors");
  const auto run = [&](const std::function<void(Views*)>& change) {
    FullModelFiles files;
    files.candidate = Changed(capture, change);
    return Run(Spec(), files);
  };
  auto result = run([](Views* views) {
    views->erase(std::find_if(views->begin(), views->end(), [](const TensorView& view) {
      return view.spec.name == "nodes.block.1";
    }));
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().first_failure().entry(), "nodes.block.1");
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "shape");
  ASSERT_EQ(result->report.full_model().missing_size(), 1);

  result = run([](Views* views) { Of(views, "nodes.norm_out").spec.name = "nodes.unheard_of"; });
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->report.full_model().extra_size(), 1);
  EXPECT_EQ(result->report.full_model().extra(0), "nodes.unheard_of");
  EXPECT_EQ(result->report.full_model().failing_size(), 2);

  result = run([](Views* views) { Of(views, "nodes.block.0").spec.shape = {53, 128}; });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().first_failure().entry(), "nodes.block.0");
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "shape");

  const std::string zeroed = "parameter.transformer_blocks.1.ff.net.2.weight";
  std::vector<uint8_t> zeros;
  result = run([&](Views* views) {
    TensorView& view = Of(views, zeroed);
    zeros.assign(view.bytes.size(), 0);
    view.bytes = zeros;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().first_failure().entry(), zeroed);
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "zero");

  std::vector<uint8_t> infinite;
  result = run([&](Views* views) {
    TensorView& view = Of(views, "nodes.block.0.grad");
    infinite.assign(view.bytes.begin(), view.bytes.end());
    infinite[0] = 0x80;  // bfloat16 infinity
    infinite[1] = 0x7f;
    view.bytes = infinite;
  });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.verdict().first_failure().entry(), "nodes.block.0.grad");
  EXPECT_EQ(result->report.verdict().first_failure().gate(), "finite");
}

TEST_F(FullModelRequestTest, KeepsTheTensorsThatPatternsName) {
  v1::JobSpec spec = Spec();
  spec.mutable_full_model()->add_keep("nodes.block.*.grad");
  spec.mutable_full_model()->add_keep("output.video");
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto tensors = ByName(*result);
  int files = 0;
  for (const OutputFile& output : result->files) {
    if (output.role != v1::ARTIFACT_ROLE_KEPT_TENSORS) continue;
    ++files;
    const auto file = SafetensorsFile::Open(output.path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_EQ(file->tensors().size(), 3u) << output.file_name;
    for (const TensorInfo& tensor : file->tensors()) {
      const std::string digest = Sha256Hex(file->Bytes(tensor));
      if (output.file_name == "kept-golden.safetensors") {
        EXPECT_EQ(digest, tensors.at(tensor.name).golden_sha256());
      } else if (output.file_name == "kept-candidate.safetensors") {
        EXPECT_EQ(digest, tensors.at(tensor.name).candidate_error().sha256());
      }
    }
  }
  EXPECT_EQ(files, 7);
}

TEST_F(FullModelRequestTest, TheAblationClearsWhatTheFaultyGroupBroke) {
  v1::JobSpec spec = Spec();
  spec.set_inject("swiglu-halves");
  spec.mutable_full_model()->set_ablation(true);
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::FullModelReport& report = result->report.full_model();
  ASSERT_GT(report.failing_size(), 10);
  ASSERT_EQ(report.ablation_size(), 9);
  for (const v1::AblationRow& row : report.ablation()) {
    SCOPED_TRACE(row.group());
    EXPECT_EQ(row.composition(), absl::StrCat("candidate+provider/default:", row.group()));
    EXPECT_EQ(row.empty(), row.group() == "interim");
    if (row.empty()) continue;
    EXPECT_EQ(row.cleared_size() + row.remaining_size(), report.failing_size());
    const bool replaces_fault = row.group() == "swiglu" || row.group() == "all";
    EXPECT_EQ(row.remaining_size() == 0, replaces_fault);
    if (replaces_fault) {
      EXPECT_LE(row.worst_ratio(), 1);
    }
  }
  EXPECT_EQ(report.ablation(8).group(), "all");
  EXPECT_EQ(report.ablation(8).differs_from_provider_size(), 0)
      << report.ablation(8).differs_from_provider(0);
}

// A fault of weights or of inputs is the candidate's loader's; the provider's nodes read right
// ones.
TEST_F(FullModelRequestTest, ReplacingAllReproducesTheProviderWhateverTheFault) {
  for (const char* fault : {"qk-heads", "audio-as-video", "zero-gradient"}) {
    v1::JobSpec spec = Spec();
    spec.set_inject(fault);
    spec.mutable_full_model()->set_ablation(true);
    const auto result = Run(spec);
    ASSERT_TRUE(result.ok()) << result.status();
    const v1::AblationRow& all = result->report.full_model().ablation(8);
    EXPECT_EQ(all.differs_from_provider_size(), 0) << fault;
    EXPECT_EQ(all.remaining_size(), 0) << fault;
  }
}

TEST_F(FullModelRequestTest, AHybridSaysThatItIsOne) {
  v1::JobSpec spec = Spec();
  spec.set_composition("candidate+provider:attention,swiglu+golden:block.1/norm1");
  const auto result = Run(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->report.hybrid());
  EXPECT_EQ(result->report.composition(),
            "candidate+provider/default:attention,swiglu+golden:block.1/norm1");
  ASSERT_EQ(result->report.verdict().qualifications_size(), 1);
  EXPECT_EQ(result->report.verdict().qualifications(0), "hybrid composition: diagnostic only");
  bool golden_ran = false;
  for (const auto& group : result->report.full_model().trace().groups()) {
    if (group.actual() != "golden") continue;
    golden_ran = true;
    ASSERT_EQ(group.nodes_size(), 1);
    EXPECT_EQ(group.nodes(0), "block.1/norm1");
  }
  EXPECT_TRUE(golden_ran);
  EXPECT_EQ(result->report.full_model().trace().not_executed_size(), 0);
}

TEST_F(FullModelRequestTest, WordsOfRequestsAreThoseOfTheGraph) {
  const h3::Graph graph = h3::BuildTransformerGraph(h3::TinyConfig());
  std::vector<absl::string_view> boundaries;
  for (const h3::Node& node : graph.nodes()) {
    if (absl::StartsWith(node.name, "block.") || absl::StartsWith(node.name, "refiner.")) continue;
    boundaries.push_back(node.name);
  }
  EXPECT_EQ(boundaries,
            std::vector<absl::string_view>(BoundaryNodes().begin(), BoundaryNodes().end()));
}

TEST_F(FullModelRequestTest, RefusesBadRequests) {
  v1::JobSpec spec = Spec();
  *spec.mutable_full_model()->add_layouts() = CaptureLayout();
  ExpectRefused(spec, {}, "full_model.layouts", "one layout");

  spec = Spec();
  spec.mutable_full_model()->add_providers("sdpa-cudnn");
  ExpectRefused(spec, {}, "full_model.providers", "sdpa-efficient");

  spec = Spec();
  spec.mutable_full_model()->add_keep("nodes.blocks.*");
  ExpectRefused(spec, {}, "full_model.keep[0]", "nodes.proj_in");

  spec = Spec();
  spec.set_inject("split-by-rows");
  ExpectRefused(spec, {}, "inject", "zero-gradient");

  spec = Spec();
  spec.set_composition("candidate+provider:block.2/swiglu");
  ExpectRefused(spec, {}, "composition", "block.2/swiglu");

  spec = Spec();
  spec.mutable_full_model()->set_freeze_rule(true);
  spec.set_inject("qk-heads");
  ExpectRefused(spec, {}, "inject", "without a candidate");

  spec = Spec();
  FullModelFiles files;
  files.golden = "tests/golden/transformer_bf16_cuda.safetensors";
  ExpectRefused(spec, files, "full_model.captures.golden", "lacks parameter.");
  files.golden = kCapturedInputs;
  spec.mutable_full_model()->mutable_layouts(0)->set_text_rows(8);
  ExpectRefused(spec, files, "full_model.layouts", "another layout");
}

}  // namespace
}  // namespace plumbline::jobs
