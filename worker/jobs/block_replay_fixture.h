#ifndef PLUMBLINE_WORKER_JOBS_BLOCK_REPLAY_FIXTURE_H_
#define PLUMBLINE_WORKER_JOBS_BLOCK_REPLAY_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "kernels/builtin.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/file_weights.h"
#include "worker/jobs/block_replay.h"

namespace plumbline::jobs {

inline constexpr char kCheckpoint[] = "tests/golden/checkpoint";
inline constexpr char kFloat32Capture[] = "tests/golden/block0_fp32_cpu.safetensors";
inline constexpr char kMixedCapture[] = "tests/golden/block0_bf16_cuda.safetensors";

// Runs block replays of the small checkpoint on a CPU device, and keeps the events of the last.
class BlockReplayTest : public testing::Test {
 protected:
  BlockReplayTest() { UseThreads(2); }

  void UseThreads(int threads, int64_t memory_bytes = int64_t{4} << 30) {
    auto device = MakeCpuDevice(threads, memory_bytes);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    context_.device = device_.get();
    context_.registry = &registry_;
    context_.clock = SystemClock();
    context_.on_node = [this](const v1::NodeEvent& event) { nodes_.push_back(event); };
    context_.on_progress = [this](const v1::Progress& progress) { progress_ = progress; };
    context_.check_cancelled = [] { return absl::OkStatus(); };
  }

  static v1::Layout Shape(int text, int frames, int height, int width, int audio,
                          std::vector<v1::Keyframe> keyframes) {
    v1::Layout layout;
    layout.set_text_rows(text);
    layout.set_frames(frames);
    layout.set_height(height);
    layout.set_width(width);
    layout.set_audio_latents(audio);
    for (v1::Keyframe keyframe : keyframes) layout.add_keyframes(keyframe);
    return layout;
  }
  static v1::Layout Named(const std::string& name) {
    v1::Layout layout;
    layout.set_name(name);
    return layout;
  }
  // That of the captures.
  static v1::Layout CaptureLayout() { return Shape(7, 2, 6, 8, 5, {v1::KEYFRAME_FIRST}); }

  static BlockReplayRequest Request(const v1::Layout& layout) {
    BlockReplayRequest request;
    v1::BlockReplaySpec& spec = *request.spec.mutable_block_replay();
    *spec.add_layouts() = layout;
    spec.set_backward(true);
    return request;
  }

  absl::StatusOr<BlockReplayResult> Run(const BlockReplayRequest& request,
                                        const std::string& checkpoint = kCheckpoint) {
    // The test's files are links out of its own folder.
    auto weights = checkpoint == kCheckpoint
                       ? h3::OpenFileWeights(std::filesystem::absolute(checkpoint), {"/"})
                       : h3::OpenCheckpoint(checkpoint, {});
    if (!weights.ok()) return weights.status();
    auto replay = BlockReplay::Create(request, **weights, context_);
    if (!replay.ok()) return replay.status();
    estimated_bytes_ = (*replay)->EstimatedBytes();
    return (*replay)->Run();
  }

  std::unique_ptr<Device> device_;
  const Registry registry_ = MakeBuiltinRegistry();
  JobContext context_;
  std::vector<v1::NodeEvent> nodes_;
  v1::Progress progress_;
  int64_t estimated_bytes_ = 0;
};

inline std::string Summary(const BlockReplayResult& result) {
  std::string text = absl::StrCat(result.verdict.sentence(), "\n");
  for (const v1::EntryReport& e : result.report.entries()) {
    char line[400];
    std::snprintf(line, sizeof line,
                  "%-28s %d r%d b%d(%s) ch %.2e iso %.2e%s | err ch %.2e iso %.2e prov %.2e",
                  e.name().c_str(), e.passed(), e.repeat().result(), e.batch().result(),
                  e.batch().variation().c_str(), e.chained().relative_l2(),
                  e.isolated().relative_l2(), e.isolated().bitwise_equal() ? "=" : "",
                  e.chained_error().relative_l2(), e.isolated_error().relative_l2(),
                  e.provider_error().relative_l2());
    absl::StrAppend(&text, line);
    for (const v1::GateResult& gate : e.gates()) {
      if (!gate.passed() && !gate.not_measured()) absl::StrAppend(&text, " ", gate.gate());
    }
    absl::StrAppend(&text, " ", e.implementation().actual(), "\n");
  }
  return text;
}

// The result by entry name.
inline std::map<std::string, v1::EntryReport> ByName(const BlockReplayResult& result) {
  std::map<std::string, v1::EntryReport> entries;
  for (const v1::EntryReport& entry : result.report.entries()) entries[entry.name()] = entry;
  return entries;
}

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_BLOCK_REPLAY_FIXTURE_H_
