// What a request for a block replay may say: captured sides, saved tensors, and what is refused.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "worker/h3/model_inputs.h"
#include "worker/jobs/block_replay_fixture.h"

namespace plumbline::jobs {
namespace {

using Views = std::vector<TensorView>;

class BlockReplayRequestTest : public BlockReplayTest {
 protected:
  BlockReplayRequestTest() {
    std::string pattern = testing::TempDir() + "/block_replay.XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~BlockReplayRequestTest() override { std::filesystem::remove_all(folder_); }

  std::string PathOf(const std::string& name) { return absl::StrCat(folder_, "/", name); }

  // A copy of a capture after `change`.
  std::string Changed(const std::string& capture, const std::function<void(Views*)>& change) {
    const auto file = SafetensorsFile::Open(capture);
    EXPECT_TRUE(file.ok()) << file.status();
    Views views;
    for (const TensorInfo& tensor : file->tensors()) {
      views.push_back({{tensor.name, tensor.dtype, tensor.shape}, file->Bytes(tensor)});
    }
    change(&views);
    const std::string path = PathOf("changed.safetensors");
    const absl::Status written = WriteSafetensors(path, views);
    EXPECT_TRUE(written.ok()) << written;
    return path;
  }

  // Adds the stand-in inputs of the captures' layout to views; they live as long as the test.
  void AddInputs(Views* views, uint64_t seed = h3::kStandInSeed) {
    h3::LayoutSpec spec = {7, 2, 6, 8, 5, true, false};
    layout_ = *h3::BuildPackedLayout(spec, h3::kReplayVideoTimestep, h3::kReplayAudioTimestep);
    inputs_ = *h3::StandInBlockInputs(h3::TinyConfig(), layout_, seed);
    const int64_t rows = layout_.Rows();
    views->push_back({{"block.input", DType::kF32, {1, rows, 128}}, inputs_.input.Bytes()});
    views->push_back(
        {{"block.temb", DType::kF32, {layout_.Timesteps(), 64}}, inputs_.temb.Bytes()});
    views->push_back({{"block.upstream", DType::kF32, {1, rows, 128}}, inputs_.upstream.Bytes()});
    AddVector("position_ids", DType::kF64, {rows, 3}, layout_.position_ids, views);
    AddVector("token_tags", DType::kI64, {rows}, layout_.token_tags, views);
    AddVector("video_indices", DType::kI64, {layout_.VideoRows()}, layout_.video_indices, views);
    AddVector("audio_indices", DType::kI64, {layout_.AudioRows()}, layout_.audio_indices, views);
    AddVector("text_indices", DType::kI64, {layout_.TextRows()}, layout_.text_indices, views);
    AddVector("timestep", DType::kF32, {layout_.Timesteps()}, layout_.timestep, views);
    AddVector("timestep_indices", DType::kI64, {rows}, layout_.timestep_indices, views);
  }

  template <typename T>
  static void AddVector(const std::string& name, DType dtype, std::vector<int64_t> shape,
                        const std::vector<T>& values, Views* views) {
    views->push_back(
        {{name, dtype, std::move(shape)},
         {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)}});
  }

  void ExpectRefused(const BlockReplayRequest& request, const std::string& field,
                     const std::string& text) {
    const auto result = Run(request);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    const std::vector<FieldViolation> violations = GetFieldViolations(result.status());
    ASSERT_FALSE(violations.empty()) << result.status();
    EXPECT_EQ(violations[0].field, field);
    EXPECT_NE(std::string(result.status().message()).find(text), std::string::npos)
        << result.status();
  }

  std::string folder_;
  h3::PackedLayout layout_;
  h3::BlockInputs inputs_;
};

TEST_F(BlockReplayRequestTest, SavedTensorsAreACaptureOfTheSameRun) {
  BlockReplayRequest request = Request(CaptureLayout());
  request.save_tensors_path = PathOf("candidate.safetensors");
  const auto run = Run(request);
  ASSERT_TRUE(run.ok()) << run.status();

  // Names and shapes are those of the model code's capture.
  const auto saved = SafetensorsFile::Open(request.save_tensors_path);
  const auto golden = SafetensorsFile::Open(kFloat32Capture);
  ASSERT_TRUE(saved.ok() && golden.ok());
  ASSERT_EQ(saved->tensors().size(), golden->tensors().size());
  for (const TensorInfo& tensor : golden->tensors()) {
    const TensorInfo* found = saved->Find(tensor.name);
    ASSERT_NE(found, nullptr) << tensor.name;
    EXPECT_EQ(found->shape, tensor.shape) << tensor.name;
    EXPECT_EQ(found->dtype, tensor.name == "leaf.temb" ? DType::kF32 : DType::kBF16);
  }

  BlockReplayRequest captured = Request(CaptureLayout());
  captured.captures.candidate = request.save_tensors_path;
  const auto replayed = Run(captured);
  ASSERT_TRUE(replayed.ok()) << replayed.status();
  EXPECT_EQ(replayed->verdict.outcome(), v1::OUTCOME_PARTIAL) << Summary(*replayed);
  EXPECT_EQ(replayed->verdict.sentence(),
            "PARTIAL: 7,2,6,8,5,first: all 48 tensors pass what could be measured (repeat not "
            "measured; batch not measured; isolated not measured).");
  EXPECT_EQ(replayed->report.captured(0), "candidate");
  EXPECT_EQ(replayed->report.timings_size(), 0);
  EXPECT_FALSE(replayed->report.has_permutation());
  EXPECT_FALSE(replayed->report.firsts().has_first_repeat_drift());
  const auto entries = ByName(*replayed);
  for (const v1::EntryReport& entry : run->report.entries()) {
    const v1::EntryReport& other = entries.at(entry.name());
    EXPECT_EQ(other.sha256(), entry.sha256()) << entry.name();
    EXPECT_EQ(other.chained().SerializeAsString(), entry.chained().SerializeAsString())
        << entry.name();
    EXPECT_EQ(other.repeat().result(), v1::EQUALITY_NOT_MEASURED);
    EXPECT_FALSE(other.has_implementation());
  }
}

TEST_F(BlockReplayRequestTest, EverySideMayBeACapture) {
  BlockReplayRequest request = Request(CaptureLayout());
  request.captures.golden = kFloat32Capture;
  request.captures.provider = kMixedCapture;
  request.captures.candidate = kMixedCapture;
  const auto result = Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->verdict.outcome(), v1::OUTCOME_PARTIAL) << Summary(*result);
  EXPECT_EQ(result->report.firsts().first_drift(), "");

  // The golden's tensors are far from the provider's in no gate that a capture can be put to.
  request.captures.candidate = kFloat32Capture;
  const auto golden = Run(request);
  ASSERT_TRUE(golden.ok()) << golden.status();
  EXPECT_EQ(golden->verdict.outcome(), v1::OUTCOME_PARTIAL) << Summary(*golden);
}

TEST_F(BlockReplayRequestTest, ACapturedCandidateCanFail) {
  std::vector<uint8_t> zeros;
  BlockReplayRequest request = Request(CaptureLayout());
  request.captures.candidate = Changed(kMixedCapture, [&](Views* views) {
    for (TensorView& view : *views) {
      if (view.spec.name != "leaf.attn.to_k.weight") continue;
      zeros.assign(view.bytes.size(), 0);
      view.bytes = zeros;
    }
  });
  const auto result = Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->verdict.outcome(), v1::OUTCOME_FAILED);
  EXPECT_EQ(result->verdict.first_failure().entry(), "leaf.attn.to_k.weight");
  EXPECT_EQ(result->verdict.first_failure().gate(), "zero");
}

TEST_F(BlockReplayRequestTest, InputsMayStandInAnyCapture) {
  const auto run = Run(Request(CaptureLayout()));
  ASSERT_TRUE(run.ok()) << run.status();
  Views views;
  AddInputs(&views);
  const std::string inputs_path = PathOf("inputs.safetensors");
  ASSERT_TRUE(WriteSafetensors(inputs_path, views).ok());

  BlockReplayRequest alone = Request(CaptureLayout());
  alone.spec.mutable_block_replay()->clear_layouts();
  alone.captures.inputs = inputs_path;
  BlockReplayRequest within = Request(CaptureLayout());
  within.captures.provider = Changed(kMixedCapture, [&](Views* capture) { AddInputs(capture); });
  for (const BlockReplayRequest& request : {alone, within}) {
    const auto captured = Run(request);
    ASSERT_TRUE(captured.ok()) << captured.status();
    EXPECT_EQ(captured->verdict.outcome(), v1::OUTCOME_PASSED) << Summary(*captured);
    EXPECT_EQ(captured->report.rows(), 53);
    for (const auto& [name, digest] : run->report.input_sha256()) {
      EXPECT_EQ(captured->report.input_sha256().at(name), digest) << name;
    }
    const auto entries = ByName(*captured);
    for (const v1::EntryReport& entry : run->report.entries()) {
      EXPECT_EQ(entries.at(entry.name()).sha256(), entry.sha256()) << entry.name();
    }
  }

  // Captures of different inputs do not compare.
  within.captures.inputs = inputs_path;
  within.captures.provider =
      Changed(kMixedCapture, [&](Views* capture) { AddInputs(capture, /*seed=*/5); });
  ExpectRefused(within, "block_replay.captures.providers", "in block.input");
  // Nor does another layout go with captured inputs.
  BlockReplayRequest other = Request(Named("tiny"));
  other.captures.inputs = inputs_path;
  ExpectRefused(other, "block_replay.layouts", "53 rows");
}

TEST_F(BlockReplayRequestTest, RefusesBadCaptures) {
  BlockReplayRequest request = Request(CaptureLayout());
  const std::string golden = "block_replay.captures.golden";
  request.captures.golden = Changed(kFloat32Capture, [](Views* views) {
    views->erase(std::find_if(views->begin(), views->end(), [](const TensorView& view) {
      return view.spec.name == "node.k_norm.grad";
    }));
  });
  ExpectRefused(request, golden, "lacks node.k_norm.grad");

  request.captures.golden = Changed(kFloat32Capture, [](Views* views) {
    (*views)[0].spec.name = "node.unheard_of";
    (*views)[1].spec.shape.push_back(1);
  });
  const auto result = Run(request);
  ASSERT_FALSE(result.ok());
  for (const char* part : {"\"node.unheard_of\"", "has shape", "lacks"}) {
    EXPECT_NE(std::string(result.status().message()).find(part), std::string::npos)
        << result.status();
  }

  request.captures.golden = Changed(kFloat32Capture, [](Views* views) {
    for (TensorView& view : *views) {
      if (view.spec.name == "leaf.temb") view.spec.dtype = DType::kI32;
    }
  });
  ExpectRefused(request, golden, "leaf.temb has type I32; accepted: BF16, F32, F64");

  request.captures.golden = kFloat32Capture;
  *request.spec.mutable_block_replay()->mutable_layouts(0) = Named("tiny");
  ExpectRefused(request, golden, "(1, 264, 128)");

  request = Request(CaptureLayout());
  request.captures.provider = PathOf("absent.safetensors");
  ExpectRefused(request, "block_replay.captures.providers", "absent");

  const std::string truncated = PathOf("truncated.safetensors");
  std::filesystem::copy_file(kMixedCapture, truncated);
  std::filesystem::permissions(truncated, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(truncated, std::filesystem::file_size(truncated) - 1);
  request.captures.provider = truncated;
  ExpectRefused(request, "block_replay.captures.providers", "truncated");

  Views views;
  AddInputs(&views);
  views[3].spec.name = "positions";
  request = Request(CaptureLayout());
  request.captures.inputs = PathOf("inputs.safetensors");
  ASSERT_TRUE(WriteSafetensors(request.captures.inputs, views).ok());
  const auto inputs = Run(request);
  EXPECT_EQ(inputs.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(inputs.status().message()).find("position_ids"), std::string::npos)
      << inputs.status();
}

TEST_F(BlockReplayRequestTest, RefusesBadRequests) {
  const BlockReplayRequest good = Request(CaptureLayout());
  BlockReplayRequest request = good;
  request.spec.mutable_block_replay()->set_block(2);
  ExpectRefused(request, "block_replay.block", "0 to 1");
  request = good;
  *request.spec.mutable_block_replay()->mutable_layouts(0) = Named("gigantic");
  ExpectRefused(request, "block_replay.layouts", "tiny, small, medium, released");
  request = good;
  request.spec.mutable_block_replay()->mutable_layouts(0)->set_height(7);
  ExpectRefused(request, "block_replay.layouts.height", "even");
  request = good;
  request.spec.set_composition("candidat");
  ExpectRefused(request, "composition", "candidate");
  request.spec.set_composition("candidate+provider:attentoin");
  ExpectRefused(request, "composition", "attention");
  request = good;
  request.spec.set_inject("swiglu-halfs");
  ExpectRefused(request, "inject", FaultNames("block-replay"));
  request.spec.set_inject("swiglu-halves");
  request.captures.candidate = kMixedCapture;
  ExpectRefused(request, "inject", "a captured candidate");
  request = good;
  request.spec.set_composition("candidate+provider:attention");
  request.captures.candidate = kMixedCapture;
  ExpectRefused(request, "composition", "a capture is the candidate");
  request = good;
  *request.spec.mutable_block_replay()->add_layouts() = Named("tiny");
  ExpectRefused(request, "block_replay.layouts", "one layout");
}

TEST_F(BlockReplayRequestTest, RefusesALayoutAboveTheDevicesMemory) {
  UseThreads(1, /*memory_bytes=*/8 << 20);
  const auto result = Run(Request(Named("tiny")), "synthetic:tiny");
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted) << result.status();
}

TEST_F(BlockReplayRequestTest, StopsWhereItIsCancelledAndLeavesNothingBehind) {
  BlockReplayRequest request = Request(CaptureLayout());
  request.save_tensors_path = PathOf("never.safetensors");
  for (int allowed : {0, 20, 150, 300}) {
    int asked = 0;
    context_.check_cancelled = [&] {
      return asked++ < allowed ? absl::OkStatus() : absl::CancelledError("stop");
    };
    const auto result = Run(request);
    EXPECT_EQ(result.status().code(), absl::StatusCode::kCancelled) << result.status();
    EXPECT_EQ(asked, allowed + 1);
    EXPECT_FALSE(std::filesystem::exists(request.save_tensors_path));
  }
}

}  // namespace
}  // namespace plumbline::jobs
