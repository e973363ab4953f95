// Schedules and steps captured from diffusers: tests/golden/scheduler.safetensors.
#include "worker/h3/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/safetensors.h"
#include "common/status.h"
#include "kernels/numerics/synthetic.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class CapturedSchedulerTest : public ::testing::Test {
 protected:
  CapturedSchedulerTest() : file_(SafetensorsFile::Open("tests/golden/scheduler.safetensors")) {}

  void ExpectSameBits(const std::string& name, const std::vector<float>& values) {
    const absl::StatusOr<absl::Span<const uint8_t>> captured = file_->Bytes(name);
    ASSERT_TRUE(captured.ok()) << captured.status();
    ASSERT_EQ(values.size() * sizeof(float), captured->size()) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      float expected;
      std::memcpy(&expected, captured->data() + i * sizeof(float), sizeof(float));
      ASSERT_EQ(std::memcmp(&values[i], &expected, sizeof(float)), 0)
          << name << ": value " << i << " is " << std::hexfloat << values[i] << ", captured "
          << expected;
    }
  }

  absl::StatusOr<SafetensorsFile> file_;
};

TEST_F(CapturedSchedulerTest, SchedulesBitForBit) {
  ASSERT_TRUE(file_.ok()) << file_.status();
  int schedules = 0;
  for (const TensorInfo& tensor : file_->tensors()) {
    // sigmas.POINTS.SHIFT
    const std::vector<std::string> parts = absl::StrSplit(tensor.name, '.');
    if (parts[0] != "sigmas") continue;
    int64_t points;
    double shift;
    ASSERT_TRUE(absl::SimpleAtoi(parts[1], &points) && absl::SimpleAtod(parts[2], &shift));
    const Schedule schedule = MakeSchedule(points, shift);
    ExpectSameBits(tensor.name, schedule.sigmas);
    ExpectSameBits(absl::StrCat("timesteps.", parts[1], ".", parts[2]), schedule.timesteps);
    ++schedules;
  }
  EXPECT_EQ(schedules, 14);
}

TEST_F(CapturedSchedulerTest, FiftyPointRunBitForBit) {
  ASSERT_TRUE(file_.ok()) << file_.status();
  const Schedule schedule = MakeSchedule(50, 12);
  ASSERT_EQ(schedule.Steps(), 49);
  std::vector<float> rows(4 * 24), velocity(4 * 24);
  FillSynthetic("sched.x", 0, {1.5, 0}, 0, absl::MakeSpan(rows));
  for (int64_t step = 0; step <= schedule.Steps(); ++step) {
    const std::string name = absl::StrCat("step.x", step);
    if (file_->Find(name) != nullptr) ExpectSameBits(name, rows);
    if (step == schedule.Steps()) break;
    FillSynthetic(absl::StrCat("sched.v", step), 0, {1, 0}, 0, absl::MakeSpan(velocity));
    EulerStep(schedule, step, velocity, absl::MakeSpan(rows));
  }
}

TEST(ScheduleTest, FallsFromNoiseToCleanForAnyPointsAndShift) {
  for (const double shift : {1.0, 1.37, 2.7, 12.0, 1000.0}) {
    for (const int64_t points : {2, 3, 4, 5, 49, 1001, 10000}) {
      const Schedule schedule = MakeSchedule(points, shift);
      EXPECT_EQ(schedule.sigmas.front(), 1.0f) << shift << " " << points;
      EXPECT_EQ(schedule.sigmas.back(), 0.0f);
      EXPECT_FALSE(std::signbit(schedule.sigmas.back()));
      EXPECT_EQ(schedule.timesteps.front(), 0.0f);
      for (int64_t i = 0; i < schedule.Steps(); ++i) {
        ASSERT_GT(schedule.sigmas[i], schedule.sigmas[i + 1]) << shift << " " << points << " " << i;
      }
    }
  }
}

TEST(SamplerTest, RefusesAShiftThatBeginsBelowZero) {
  EXPECT_LT(MakeSchedule(50, 0.2).timesteps.front(), 0);
  const absl::Status status = Sampler::Create("c", 50, 12, 0.2).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("c: audio_shift: 0.2 begins at timestep -"));
  EXPECT_TRUE(Sampler::Create("c", 50, 0.3, 0.5).ok());
}

TEST(SamplerTest, CollapsedPointsAreFewerSteps) {
  // Near 1 neighbours lie 1e-7 apart, closer than float32 tells: 9999 steps would be all.
  const Schedule schedule = MakeSchedule(kMaxGridPoints, kMaxShift);
  EXPECT_LT(schedule.Steps(), kMaxGridPoints - 1);
  const absl::StatusOr<Sampler> equal = Sampler::Create("c", kMaxGridPoints, kMaxShift, kMaxShift);
  ASSERT_TRUE(equal.ok());
  EXPECT_EQ(equal->Steps(), schedule.Steps());
}

TEST(SamplerTest, NamesWhatIsOutOfRange) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const absl::Status status = Sampler::Create("contract", 1, 0, nan).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::vector<FieldViolation> violations = GetFieldViolations(status);
  ASSERT_EQ(violations.size(), 3);
  EXPECT_EQ(violations[0].field, "contract: num_inference_steps");
  EXPECT_EQ(violations[1].field, "contract: video_shift");
  EXPECT_EQ(violations[2].field, "contract: audio_shift");
  EXPECT_FALSE(Sampler::Create("c", kMaxGridPoints + 1, 12, 3).ok());
  EXPECT_FALSE(Sampler::Create("c", 50, kMaxShift + 1, 3).ok());
  EXPECT_FALSE(Sampler::Create("c", 50, -1, 3).ok());
}

// Keyframes' rows stay; a velocity of another size is refused.
TEST(SamplerTest, AdvancesTheTargetAlone) {
  const Sampler sampler = *Sampler::Create("c", 50, 12, 3);
  const PackedLayout layout = *BuildPackedLayout({1, 1, 2, 2, 1, true, false}, 0, 0);
  std::vector<float> video = {5, 6, 1, 2}, audio = {1, 2, 3, 4};  // Two rows of two values each.
  const std::vector<float> ones(4, 1.0f);
  ASSERT_TRUE(
      sampler.Advance(0, layout, ones, ones, absl::MakeSpan(video), absl::MakeSpan(audio)).ok());
  EXPECT_THAT(video, ElementsAre(5, 6, ::testing::Gt(1), ::testing::Gt(2)));
  // To the left of 1 the audio schedule falls faster.
  EXPECT_GT(audio[0] - 1, video[2] - 1);
  const absl::Status status = sampler.Advance(0, layout, absl::MakeSpan(ones).first(2), ones,
                                              absl::MakeSpan(video), absl::MakeSpan(audio));
  EXPECT_THAT(std::string(status.message()), HasSubstr("velocity.video: holds 2 values"));
}

}  // namespace
}  // namespace plumbline::h3
