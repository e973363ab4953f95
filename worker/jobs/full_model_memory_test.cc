// What a deep model takes: memory that hardly grows with depth, and every weight loaded once a pass
// for all compositions together. In a process of its own, whose peak is measured.
#include <cstdio>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/strings/substitute.h"
#include "worker/h3/parameters.h"
#include "worker/jobs/full_model_fixture.h"

namespace plumbline::jobs {
namespace {

constexpr int kHidden = 256;
constexpr int kSides = 5;  // golden, three providers, candidate

std::string Config(int blocks) {
  return absl::Substitute(R"({"num_attention_heads": 2, "attention_head_dim": 128,
    "hidden_size": $0, "num_layers": $1, "num_refiner_layers": 2, "ffn_dim": 256,
    "in_channels": 24, "audio_in_channels": 32, "patch_size": [1, 2, 2], "text_dim": 64,
    "freq_dim": 32, "time_embed_hidden_dim": 32, "time_embed_dim": 16, "rope_freq_dim": 16,
    "rope_theta": 10000.0, "norm_eps": 1e-05, "qk_norm_eps": 1e-05, "final_norm_eps": 1e-05})",
                          kHidden, blocks);
}

// The most memory that this process had, bytes.
int64_t PeakResidentBytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "VmHWM:") || !absl::ConsumeSuffix(&rest, " kB")) continue;
    int64_t kib = 0;
    if (absl::SimpleAtoi(rest, &kib)) return kib * 1024;
  }
  return -1;
}

class FullModelMemoryTest : public FullModelTest {
 protected:
  v1::FullModelReport RunBlocks(int blocks) {
    v1::JobSpec spec = Spec();
    v1::Layout& layout = *spec.mutable_full_model()->mutable_layouts(0);
    layout.set_text_rows(3);
    layout.set_frames(1);
    layout.set_height(2);
    layout.set_width(4);
    layout.set_audio_latents(1);
    for (const char* provider : {"default", "sdpa-flash", "sdpa-math"}) {
      spec.mutable_full_model()->add_providers(provider);
    }
    checkpoint_ = absl::StrCat("synthetic:", WriteTemporary("config.json", Config(blocks)));
    const auto result = Run(spec, {}, checkpoint_);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_PASSED) << Summary(*result);
    return result->report.full_model();
  }

  std::string checkpoint_;
};

TEST_F(FullModelMemoryTest, FiftyBlocksRunInLessThanAGigabyte) {
  const v1::FullModelReport report = RunBlocks(50);
  const auto weights = h3::OpenCheckpoint(checkpoint_, {"/"}).value();
  ASSERT_EQ(report.tensors_size(),
            static_cast<int>(weights->parameters().size()) + 3 + 2 * (9 + 2 + 50) + 2 - 1);

  // Once forward and once backward, but for the last segment, which is there when it turns.
  int64_t last_segment = 0;
  for (const h3::ParameterSpec& parameter : weights->parameters()) {
    const absl::string_view name = parameter.name;
    if (absl::StartsWith(name, "norm_out.") || absl::StartsWith(name, "proj_out.") ||
        absl::StartsWith(name, "audio_proj_out.")) {
      last_segment += parameter.NumBytes();
    }
  }
  EXPECT_EQ(report.weight_bytes(),
            2 * h3::TotalParameterBytes(weights->parameters()) - last_segment);

  const int64_t peak = PeakResidentBytes();
  std::printf("peak: %.0f MB of the process, %.0f MB of the device; weights loaded: %.0f MB\n",
              peak / 1e6, report.peak_memory_bytes() / 1e6, report.weight_bytes() / 1e6);
  EXPECT_GT(peak, 0);
  EXPECT_LT(peak, 1'000'000'000);
}

TEST_F(FullModelMemoryTest, ABlockMoreTakesARowMatrixOfEachComposition) {
  const v1::FullModelReport few = RunBlocks(4);
  const v1::FullModelReport more = RunBlocks(24);
  const int64_t row_matrix = int64_t{more.rows()} * kHidden * 4;  // float32, golden's
  const int64_t growth = more.peak_memory_bytes() - few.peak_memory_bytes();
  EXPECT_GT(growth, 0);
  EXPECT_LE(growth, 20 * kSides * row_matrix);
}

}  // namespace
}  // namespace plumbline::jobs
