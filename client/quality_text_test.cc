#include "client/quality_text.h"

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::TaskReport Parse(const char* text) {
  v1::TaskReport message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

TEST(QualityTextTest, ShowsFiguresBoundsAndWhatStandsOut) {
  const std::string text =
      MediaText(Parse(R"pb(
                  media {
                    subject: "a.mp4"
                    reference: "b.mp4"
                    psnr_db: 28.5
                    ssim: 0.995
                    temporal_rmse: 0.02
                    audio_relative_l2: 0.9
                    audio_swapped_relative_l2: 0.1
                    frames { psnr_db: 300 ssim: 1 }
                    frames { psnr_db: 11 ssim: 0.97 temporal_rmse: 0.3 }
                    frames { psnr_db: 40 ssim: 0.99 temporal_rmse: 0.2 }
                    channels { relative_l2: 0.8 max_abs: 0.5 seconds: 0.1 seconds: 1 }
                    channels { relative_l2: 0.7 max_abs: 0.4 seconds: 0.2 seconds: 0.1 }
                    audio_lag_samples: -320
                    gates { gate: "finite" value: 1 bound: 1 passed: true }
                    gates { gate: "psnr" value: 28.5 bound: 30 }
                    gates { gate: "ssim" value: 0.995 bound: 0.99 passed: true }
                    gates { gate: "temporal_rmse" value: 0.02 bound: 0.01 }
                    gates { gate: "audio_relative_l2" value: 0.9 bound: 0.05 }
                  })pb"),
                Style());
  EXPECT_THAT(text, HasSubstr("Quality  |  against b.mp4"));
  EXPECT_THAT(text, HasSubstr("a.mp4    28.50  0.995000       2.00e-02  9.00e-01  differ"));
  EXPECT_THAT(text, HasSubstr("bound    >= 30   >= 0.99        <= 0.01   <= 0.05"));
  EXPECT_THAT(text, HasSubstr("lowest PSNR 11.00 dB at frame 1, lowest SSIM 0.970000 at 1"));
  EXPECT_THAT(text, HasSubstr("worst second 1: 1.00e+00"));
  EXPECT_THAT(text, HasSubstr("320 samples early"));
  EXPECT_THAT(text, HasSubstr("channels exchanged 1.00e-01"));
}

TEST(QualityTextTest, ASoundAloneHasNoPicture) {
  const std::string text =
      MediaText(Parse(R"pb(
                  media {
                    subject: "a.wav"
                    reference: "b.wav"
                    audio_bitwise_equal: true
                    channels { seconds: 0 }
                    gates { gate: "finite" value: 1 bound: 1 passed: true }
                    gates { gate: "audio_relative_l2" bound: 0.05 passed: true }
                    passed: true
                  })pb"),
                Style());
  EXPECT_THAT(text, HasSubstr("equal"));
  EXPECT_THAT(text, HasSubstr("mono 0"));
  EXPECT_THAT(text, Not(HasSubstr("frames")));
}

TEST(QualityTextTest, TheProvidersOwnSpreadStandsBesideTheCandidate) {
  const std::string text = GenerationComparisonText(
      Parse(R"pb(
        verdict { outcome: OUTCOME_PASSED sentence: "PASSED: seed 42: PSNR 40.00 dB." }
        generation_comparison {
          seed: 42
          quality {
            subject: "candidate (jobs/c)"
            reference: "provider/default (jobs/p)"
            psnr_db: 40
            ssim: 0.999
            frames { psnr_db: 40 ssim: 0.999 }
            gates { gate: "psnr" value: 40 bound: 30 passed: true }
          }
          provider_spread {
            subject: "provider/sdpa-math (jobs/q)"
            psnr_db: 41
            ssim: 0.9991
            frames { psnr_db: 41 ssim: 0.9991 }
          }
          provider_repeat {
            subject: "provider/default (jobs/r)"
            psnr_db: 300
            ssim: 1
            frames_bitwise_equal: true
            frames { psnr_db: 300 ssim: 1 }
          }
        })pb"),
      Style());
  EXPECT_THAT(text, HasSubstr("Quality of seed 42  |  against provider/default (jobs/p)"));
  EXPECT_THAT(text, HasSubstr("candidate (jobs/c)                     40.00"));
  EXPECT_THAT(text, HasSubstr("spread: provider/sdpa-math (jobs/q)    41.00"));
  EXPECT_THAT(text, HasSubstr("repeat: provider/default (jobs/r)     300.00"));
  EXPECT_THAT(text, HasSubstr("PASSED: seed 42"));
}

TEST(QualityTextTest, SaysWhyNothingWasCompared) {
  const std::string text = GenerationComparisonText(
      Parse(R"pb(
        verdict { outcome: OUTCOME_NOT_JUDGED sentence: "NOT JUDGED: seed 7: no frames." }
        generation_comparison { seed: 7 not_compared: "jobs/c has no frames of this seed" })pb"),
      Style());
  EXPECT_THAT(text, HasSubstr("jobs/c has no frames of this seed"));
  EXPECT_THAT(text, HasSubstr("NOT JUDGED: seed 7"));
}

}  // namespace
}  // namespace plumbline::client
