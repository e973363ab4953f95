#ifndef PLUMBLINE_WORKER_JOBS_FULL_MODEL_FIXTURE_H_
#define PLUMBLINE_WORKER_JOBS_FULL_MODEL_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/clock.h"
#include "common/files.h"
#include "kernels/builtin.h"
#include "kernels/identity/kernel_identity.h"
#include "worker/h3/checkpoint.h"
#include "worker/h3/file_weights.h"
#include "worker/jobs/full_model.h"

namespace plumbline::jobs {

inline constexpr char kCheckpoint[] = "tests/golden/checkpoint";
inline constexpr char kCapturedInputs[] = "tests/golden/transformer_inputs.safetensors";
inline constexpr char kFloat32Capture[] = "tests/golden/transformer_fp32_cpu.safetensors";

// Runs full models of the small checkpoint on a CPU device. What a run tells its coordinator is
// kept in order, as words in `log_`: "frozen DIGEST", "node NAME".
class FullModelTest : public testing::Test {
 protected:
  FullModelTest() {
    UseThreads(2);
    environment_.context.registry = &registry_;
    environment_.context.clock = SystemClock();
    environment_.context.on_node = [this](const v1::NodeEvent& event) {
      nodes_.push_back(event);
      log_.push_back(absl::StrCat("node ", event.entry()));
    };
    environment_.context.on_progress = [this](const v1::Progress& progress) {
      progress_ = progress;
    };
    environment_.context.on_rule_frozen = [this](const v1::RuleFrozenEvent& event) {
      log_.push_back(absl::StrCat("frozen ", event.sha256()));
      return frozen_answer_;
    };
    environment_.context.check_cancelled = [] { return absl::OkStatus(); };
    kernel_identity_.sha256 = std::string(64, 'a');
    environment_.kernel_identity = &kernel_identity_;
    environment_.libraries = {{"openblas", "of the test"}};
    environment_.output_folder = absl::StrCat(testing::TempDir(), "/full_model_", getpid());
    std::filesystem::remove_all(environment_.output_folder);
    std::filesystem::create_directories(environment_.output_folder);
  }

  void UseThreads(int threads) {
    auto device = MakeCpuDevice(threads, int64_t{4} << 30);
    ASSERT_TRUE(device.ok()) << device.status();
    device_ = *std::move(device);
    environment_.context.device = device_.get();
  }

  // That of the captures: 53 rows.
  static v1::Layout CaptureLayout() {
    v1::Layout layout;
    layout.set_text_rows(7);
    layout.set_frames(2);
    layout.set_height(6);
    layout.set_width(8);
    layout.set_audio_latents(5);
    layout.add_keyframes(v1::KEYFRAME_FIRST);
    return layout;
  }

  static v1::JobSpec Spec() {
    v1::JobSpec spec;
    *spec.mutable_full_model()->add_layouts() = CaptureLayout();
    return spec;
  }

  absl::StatusOr<JobResult> Run(const v1::JobSpec& spec, const FullModelFiles& files = {},
                                const std::string& checkpoint = "synthetic:tiny") {
    // The test's files are links out of its own folder.
    auto weights = checkpoint == kCheckpoint
                       ? h3::OpenFileWeights(std::filesystem::absolute(checkpoint), {"/"})
                       : h3::OpenCheckpoint(checkpoint, {"/"});
    if (!weights.ok()) return weights.status();
    nodes_.clear();
    log_.clear();
    return RunFullModel(spec, files, **weights, environment_);
  }

  // A rule of the five providers at the captures' layout, as its file.
  std::string FrozenRule() {
    v1::JobSpec spec = Spec();
    spec.mutable_full_model()->set_freeze_rule(true);
    const auto result = Run(spec);
    EXPECT_TRUE(result.ok()) << result.status();
    return result.ok() ? ReadFile(RuleFile(*result), 1 << 24).value() : "";
  }

  static std::string RuleFile(const JobResult& result) {
    for (const OutputFile& file : result.files) {
      if (file.role == v1::ARTIFACT_ROLE_RULE) return file.path;
    }
    return "";
  }

  std::string WriteTemporary(absl::string_view name, absl::string_view text) {
    const std::string path = absl::StrCat(environment_.output_folder, "/", name);
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }

  static std::map<std::string, v1::FullModelTensor> ByName(const JobResult& result) {
    std::map<std::string, v1::FullModelTensor> tensors;
    for (const v1::FullModelTensor& tensor : result.report.full_model().tensors()) {
      tensors[tensor.name()] = tensor;
    }
    return tensors;
  }

  static std::string Summary(const JobResult& result) {
    std::string text = absl::StrCat(result.report.verdict().sentence(), "\n");
    for (const v1::FullModelTensor& t : result.report.full_model().tensors()) {
      absl::StrAppend(&text, t.name(), " ", t.candidate_error().relative_l2(), " of ", t.bound());
      for (const v1::GateResult& gate : t.gates()) {
        if (!gate.passed() && !gate.not_measured()) absl::StrAppend(&text, " FAILS ", gate.gate());
      }
      absl::StrAppend(&text, "\n");
    }
    return text;
  }

  std::unique_ptr<Device> device_;
  const Registry registry_ = MakeBuiltinRegistry();
  KernelIdentity kernel_identity_;
  JobEnvironment environment_;
  std::vector<v1::NodeEvent> nodes_;
  std::vector<std::string> log_;
  v1::Progress progress_;
  absl::Status frozen_answer_;  // of on_rule_frozen
};

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_FULL_MODEL_FIXTURE_H_
