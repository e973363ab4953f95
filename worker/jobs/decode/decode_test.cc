#include "worker/jobs/decode/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock.h"
#include "common/mapped_file.h"
#include "common/safetensors.h"
#include "common/safetensors_writer.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/builtin.h"
#include "worker/steps/memory_step_store.h"

namespace plumbline::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kVideoCapture[] = "tests/golden/video_vae_io.safetensors";
constexpr char kAudioCapture[] = "tests/golden/audio_vae_io.safetensors";

// A store that acknowledges as many units as it is told and then lets the attempt stop.
class StoppingStore : public steps::MemoryStepStore {
 public:
  absl::Status Save(const steps::RunFacts& facts, steps::SavedStep step) override {
    facts_ = facts;
    ++saves_;
    return MemoryStepStore::Save(facts, std::move(step));
  }
  int saves() const { return saves_; }
  const steps::RunFacts& facts() const { return facts_; }

 private:
  steps::RunFacts facts_;
  int saves_ = 0;
};

// Decodes the captured latents with the bundled decoders on a CPU. Attempts share a store.
class DecodeTest : public testing::Test {
 protected:
  DecodeTest() : checkpoints_({"/"}) {
    device_ = *MakeCpuDevice(/*threads=*/2, int64_t{1} << 30);
    environment_.context.device = device_.get();
    environment_.context.registry = &registry_;
    environment_.context.clock = SystemClock();
    environment_.context.on_progress = [](const v1::Progress&) {};
    environment_.context.check_cancelled = [] { return absl::OkStatus(); };
    kernel_identity_.sha256 = std::string(64, 'a');
    environment_.kernel_identity = &kernel_identity_;
    environment_.libraries = {{"openblas", "of the test"}};
    environment_.checkpoints = &checkpoints_;
    environment_.generation.steps = &store_;
    environment_.generation.should_yield = [this] {
      return stop_after_ >= 0 && store_.saves() >= stop_after_;
    };
    folder_ = absl::StrCat(testing::TempDir(), "/decode_", getpid());
    NewFolder();
  }

  // An attempt begins in an empty folder.
  void NewFolder() {
    environment_.output_folder = absl::StrCat(folder_, "_", attempt_++);
    std::filesystem::remove_all(environment_.output_folder);
    std::filesystem::create_directories(environment_.output_folder);
  }

  static v1::JobSpec Spec() {
    v1::JobSpec spec;
    spec.set_checkpoint(std::filesystem::absolute("tests/golden/checkpoint"));
    spec.mutable_decode()->set_tile(48);
    spec.mutable_decode()->set_tile_overlap(16);
    return spec;
  }

  absl::StatusOr<JobResult> Run(const v1::JobSpec& spec, const std::string& latents) {
    return RunDecode(spec, latents, {}, environment_);
  }

  // Both captures' latents in one file.
  std::string WriteBoth() {
    const SafetensorsFile video = *SafetensorsFile::Open(kVideoCapture);
    const SafetensorsFile audio = *SafetensorsFile::Open(kAudioCapture);
    const std::string path = absl::StrCat(folder_, "_latents");
    EXPECT_TRUE(WriteSafetensors(
                    path, {{{"latents.video", DType::kF32, {1, 24, 12, 4, 5}}, *video.Bytes("z")},
                           {{"latents.audio", DType::kF32, {2, 32, 9}}, *audio.Bytes("z")}})
                    .ok());
    return path;
  }

  static std::string PathOf(const JobResult& result, v1::ArtifactRole role) {
    for (const OutputFile& file : result.files) {
      if (file.role == role) return file.path;
    }
    return "";
  }

  static std::string DigestOfFile(const std::string& path) {
    const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    return Sha256Hex(file->bytes());
  }

  static std::map<std::string, std::string> Digests(const JobResult& result) {
    std::map<std::string, std::string> digests;
    for (const v1::TensorDigest& tensor : result.report.decode().tensors()) {
      digests[tensor.name()] = tensor.sha256();
    }
    return digests;
  }

  static std::vector<float> Floats(const SafetensorsFile& file, const std::string& name) {
    const absl::StatusOr<absl::Span<const uint8_t>> bytes = file.Bytes(name);
    EXPECT_TRUE(bytes.ok()) << bytes.status();
    std::vector<float> values(bytes->size() / sizeof(float));
    std::memcpy(values.data(), bytes->data(), bytes->size());
    return values;
  }

  static double RelativeL2(const std::vector<float>& reference, const std::vector<float>& x) {
    EXPECT_EQ(reference.size(), x.size());
    double difference = 0, norm = 0;
    for (size_t i = 0; i < std::min(x.size(), reference.size()); ++i) {
      const double d = static_cast<double>(reference[i]) - x[i];
      difference += d * d;
      norm += static_cast<double>(reference[i]) * reference[i];
    }
    return std::sqrt(difference / norm);
  }

  std::unique_ptr<Device> device_;
  const Registry registry_ = MakeBuiltinRegistry();
  KernelIdentity kernel_identity_;
  CheckpointCache checkpoints_;
  JobEnvironment environment_;
  StoppingStore store_;
  int stop_after_ = -1;
  std::string folder_;
  int attempt_ = 0;
};

TEST_F(DecodeTest, TheCapturedVideo) {
  const auto result = Run(Spec(), kVideoCapture);
  ASSERT_TRUE(result.ok()) << result.status();
  const v1::DecodeReport& report = result->report.decode();
  EXPECT_EQ(report.composition(), "golden");
  EXPECT_EQ(report.latent_frames(), 12);
  EXPECT_EQ(report.frames(), 39);
  EXPECT_EQ(report.height(), 64);
  EXPECT_EQ(report.width(), 80);
  EXPECT_EQ(report.samples(), 0);
  EXPECT_THAT(report.tile_rows(), ElementsAre(0, 16));
  EXPECT_THAT(report.tile_columns(), ElementsAre(0, 32));
  EXPECT_EQ(report.units(), 2);
  EXPECT_EQ(report.units_kept(), 0);
  EXPECT_GT(report.trace().groups_size(), 0);
  EXPECT_EQ(result->report.verdict().outcome(), v1::OUTCOME_NOT_JUDGED);
  ASSERT_EQ(result->files.size(), 1u);
  EXPECT_EQ(result->files[0].file_name, "frames.safetensors");

  const SafetensorsFile made = *SafetensorsFile::Open(PathOf(*result, v1::ARTIFACT_ROLE_FRAMES));
  const SafetensorsFile capture = *SafetensorsFile::Open(kVideoCapture);
  const std::vector<float> decoded = Floats(made, "decoded");
  EXPECT_EQ(made.Find("decoded")->shape, capture.Find("decoded_tiled")->shape);
  EXPECT_LE(RelativeL2(Floats(capture, "decoded_tiled"), decoded), 1e-5);
  // (frames, height, width, 3) in [0, 1], value * std + mean.
  EXPECT_EQ(made.Find("frames")->shape, (std::vector<int64_t>{39, 64, 80, 3}));
  const std::vector<float> frames = Floats(made, "frames");
  const double mean[] = {0.485, 0.456, 0.406}, std_[] = {0.229, 0.224, 0.225};
  constexpr size_t kPixels = 64 * 80;
  for (size_t frame = 0; frame < 39; ++frame) {
    for (size_t pixel = 0; pixel < kPixels; pixel += 7) {
      for (size_t c = 0; c < 3; ++c) {
        const double value = decoded[(c * 39 + frame) * kPixels + pixel] * std_[c] + mean[c];
        ASSERT_NEAR(frames[(frame * kPixels + pixel) * 3 + c], std::clamp(value, 0.0, 1.0), 1e-6);
      }
    }
  }
}

TEST_F(DecodeTest, TheCapturedSound) {
  v1::JobSpec spec = Spec();
  spec.mutable_decode()->add_outputs(v1::ARTIFACT_ROLE_FRAMES);
  spec.mutable_decode()->add_outputs(v1::ARTIFACT_ROLE_AUDIO);
  const auto result = Run(spec, kAudioCapture);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->report.decode().samples(), 7200);
  EXPECT_EQ(result->report.decode().sampling_rate(), 32000);
  EXPECT_EQ(result->report.decode().frames(), 0);
  const SafetensorsFile made = *SafetensorsFile::Open(PathOf(*result, v1::ARTIFACT_ROLE_FRAMES));
  EXPECT_EQ(made.Find("samples")->shape, (std::vector<int64_t>{2, 7200}));
  EXPECT_LE(
      RelativeL2(Floats(*SafetensorsFile::Open(kAudioCapture), "decoded"), Floats(made, "samples")),
      1e-5);
  EXPECT_TRUE(std::filesystem::exists(PathOf(*result, v1::ARTIFACT_ROLE_AUDIO)));

  spec.mutable_decode()->add_outputs(v1::ARTIFACT_ROLE_IMAGE);
  EXPECT_THAT(Run(spec, kAudioCapture).status().message(), HasSubstr("without a video"));
}

// Whatever number of units an attempt gets done, the next goes on there, and the files are equal.
TEST_F(DecodeTest, AnAttemptThatIsStoppedIsGoneOnWith) {
  const std::string latents = WriteBoth();
  v1::JobSpec spec = Spec();
  for (const v1::ArtifactRole role : {v1::ARTIFACT_ROLE_FRAMES, v1::ARTIFACT_ROLE_AUDIO,
                                      v1::ARTIFACT_ROLE_IMAGE, v1::ARTIFACT_ROLE_VIDEO}) {
    spec.mutable_decode()->add_outputs(role);
  }
  const auto whole = Run(spec, latents);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->report.decode().units(), 3);
  EXPECT_TRUE(whole->report.decode().media_pending());  // No FFmpeg in this test.
  ASSERT_EQ(whole->files.size(), 4u);
  std::map<v1::ArtifactRole, std::string> expected;
  for (const OutputFile& file : whole->files) expected[file.role] = DigestOfFile(file.path);

  for (int stop = 0; stop < 3; ++stop) {
    store_ = StoppingStore();
    stop_after_ = stop;
    NewFolder();
    const auto stopped = Run(spec, latents);
    EXPECT_EQ(stopped.status().code(), absl::StatusCode::kCancelled) << stopped.status();
    EXPECT_THAT(stopped.status().message(), HasSubstr(absl::StrCat("before unit ", stop)));
    EXPECT_EQ(store_.saves(), stop);
    stop_after_ = -1;
    NewFolder();
    const auto resumed = Run(spec, latents);
    ASSERT_TRUE(resumed.ok()) << resumed.status();
    EXPECT_EQ(resumed->report.decode().units_kept(), stop);
    EXPECT_EQ(store_.saves(), 3) << "a unit that was acknowledged was decoded again";
    for (const OutputFile& file : resumed->files) {
      EXPECT_EQ(DigestOfFile(file.path), expected[file.role]) << file.file_name;
    }
    EXPECT_EQ(Digests(*resumed), Digests(*whole));
  }
}

TEST_F(DecodeTest, WhatElseIsKeptUnderTheIdentityStopsIt) {
  ASSERT_TRUE(Run(Spec(), kVideoCapture).ok());
  const std::string run = absl::StrCat("runs/", store_.facts().identity.sha256());
  EXPECT_TRUE(store_.facts().decodes);
  std::optional<steps::SavedStep> kept;
  ASSERT_TRUE(store_
                  .Fetch(run, 1, 1,
                         [&](steps::SavedStep step) {
                           kept = std::move(step);
                           return absl::OkStatus();
                         })
                  .ok());
  ASSERT_TRUE(kept.has_value());
  steps::SavedStep flipped = *kept;
  flipped.tensors[0][5] ^= 1;
  store_.Put(store_.facts(), flipped);
  NewFolder();
  absl::Status status = Run(Spec(), kVideoCapture).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(GetReason(status), "STEP_INCONSISTENT");
  EXPECT_THAT(status.message(), HasSubstr("frames has other bytes"));

  // One that the store has found out to be corrupt is decoded again.
  steps::SavedStep quarantined = *kept;
  quarantined.record.set_quarantined(true);
  store_.Put(store_.facts(), quarantined);
  NewFolder();
  const auto again = Run(Spec(), kVideoCapture);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->report.decode().units_kept(), 1);
}

TEST_F(DecodeTest, OtherTilesLatentsAndCompositionsAreOtherRuns) {
  std::map<std::string, std::string> identities;
  const auto run = [&](const std::string& name, const v1::JobSpec& spec,
                       const std::string& latents) {
    NewFolder();
    const auto result = Run(spec, latents);
    ASSERT_TRUE(result.ok()) << name << ": " << result.status();
    identities[store_.facts().identity.sha256()] = name;
  };
  run("captured", Spec(), kVideoCapture);
  v1::JobSpec untiled = Spec();
  untiled.mutable_decode()->clear_tile();
  untiled.mutable_decode()->clear_tile_overlap();
  untiled.mutable_decode()->set_no_tiling(true);
  run("untiled", untiled, kVideoCapture);
  v1::JobSpec candidate = Spec();
  candidate.set_composition("candidate");
  run("candidate", candidate, kVideoCapture);
  run("with sound", Spec(), WriteBoth());
  EXPECT_EQ(identities.size(), 4u);
}

TEST_F(DecodeTest, FramesOf8Bits) {
  v1::JobSpec spec = Spec();
  spec.mutable_decode()->set_frames_u8(true);
  const auto result = Run(spec, kVideoCapture);
  ASSERT_TRUE(result.ok()) << result.status();
  const SafetensorsFile made = *SafetensorsFile::Open(PathOf(*result, v1::ARTIFACT_ROLE_FRAMES));
  EXPECT_EQ(made.Find("frames")->dtype, DType::kU8);
}

TEST_F(DecodeTest, RefusesWhatCannotBeDecoded) {
  const auto field_of = [&](const v1::JobSpec& spec, const std::string& latents) {
    const absl::Status status = Run(spec, latents).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    const std::vector<FieldViolation> violations = GetFieldViolations(status);
    return violations.empty() ? std::string(status.message()) : violations[0].field;
  };
  const std::string path = absl::StrCat(folder_, "_bad");
  const auto write = [&](const std::string& name, std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    const std::vector<uint8_t> bytes(static_cast<size_t>(count) * 4);
    EXPECT_TRUE(WriteSafetensors(path, {{{name, DType::kF32, shape}, bytes}}).ok());
    return path;
  };
  EXPECT_EQ(field_of(Spec(), kAudioCapture + std::string(".not")), "decode.latents");
  EXPECT_EQ(field_of(Spec(), write("latents.video", {1, 24, 2, 4, 4})), "decode.latents");
  EXPECT_EQ(field_of(Spec(), write("latents.video", {1, 16, 7, 4, 4})), "decode.latents");
  EXPECT_EQ(field_of(Spec(), write("latents.video", {2, 24, 7, 4, 4})), "decode.latents");
  EXPECT_EQ(field_of(Spec(), write("latents.audio", {2, 16, 7})), "decode.latents");
  EXPECT_EQ(field_of(Spec(), write("latents", {1, 24, 7, 4, 4})), "decode.latents");
  EXPECT_EQ(field_of(Spec(), write("z", {1, 24, 0, 4, 4})), "decode.latents");
  v1::JobSpec spec = Spec();
  spec.mutable_decode()->set_tile_overlap(40);
  EXPECT_EQ(field_of(spec, kVideoCapture), "decode.tile_overlap");
  spec = Spec();
  spec.set_composition("golden+candidate:nothing");
  EXPECT_EQ(field_of(spec, kVideoCapture), "composition");
  spec = Spec();
  spec.mutable_decode()->add_outputs(v1::ARTIFACT_ROLE_IMAGE);
  spec.mutable_decode()->set_image_frame(39);
  EXPECT_EQ(field_of(spec, kVideoCapture), "decode.image_frame");
}

}  // namespace
}  // namespace plumbline::jobs
