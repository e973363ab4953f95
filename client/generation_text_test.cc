#include "client/generation_text.h"

#include "client/run_text.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;
using testing::Not;

template <typename Message>
Message Parse(const char* text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

TEST(GenerationTextTest, ShowsWhatEveryAttemptDid) {
  const auto task = Parse<v1::TaskReport>(R"pb(
    composition: "candidate"
    attempts {
      number: 1
      worker: "workers/a"
      end: ATTEMPT_END_RELEASED
      steps_computed: 2
      message: "handed back before step 2 of 5"
      start_time { seconds: 100 }
      end_time { seconds: 103 nanos: 500000000 }
    }
    attempts {
      number: 2
      worker: "workers/b"
      end: ATTEMPT_END_COMPLETED
      steps_computed: 3
      steps_replayed: 2
    }
    verdict { outcome: OUTCOME_PASSED sentence: "PASSED: seed 42." }
    generation {
      seed: 42
      run: "runs/0123456789abcdef0123456789abcdef"
      steps_computed: 5
      steps_replayed: 2
      sensitivity { input: "text" video_change: 0.5 audio_change: 0.25 passed: true }
      latent_drift { step: 0 video: 0.02 audio: 0.01 }
      latent_drift { step: 1 video: 0.01 audio: 0.02 }
      latents { name: "latents.video" sha256: "beef" }
      not_decoded: "for a reason"
    })pb");
  const std::string text = GenerationText(task, Style());
  EXPECT_THAT(text, HasSubstr("Seed 42  |  runs/0123456789abcdef  |  candidate"));
  EXPECT_THAT(text, HasSubstr("      1  a       released   3.50 s         2         0"));
  EXPECT_THAT(text, HasSubstr("handed back before step 2 of 5"));
  EXPECT_THAT(text, HasSubstr("      2  b       completed       -         3         2"));
  EXPECT_THAT(text, HasSubstr("5 computed, 2 replayed, 0 recomputed"));
  EXPECT_THAT(text, HasSubstr("text"));
  EXPECT_THAT(text, HasSubstr("2.00e-02 after step 0"));
  EXPECT_THAT(text, HasSubstr("latents      video beef"));
  EXPECT_THAT(text, HasSubstr("for a reason"));
  EXPECT_THAT(text, HasSubstr("PASSED: seed 42."));
}

TEST(GenerationTextTest, ADiagnosticSaysWhetherTheBytesAreEqual) {
  const auto task = Parse<v1::TaskReport>(R"pb(
    diagnostic {
      run: "runs/0123456789abcdef0123"
      step: 3
      saved_composition: "candidate"
      composition: "golden"
      velocities {
        name: "velocity.video"
        comparison { bitwise_equal: true }
      }
      velocities {
        name: "velocity.audio"
        comparison { relative_l2: 0.5 }
      }
    })pb");
  const std::string text = DiagnosticText(task, Style());
  EXPECT_THAT(text, HasSubstr("saved by candidate, replayed by golden"));
  EXPECT_THAT(text, HasSubstr("velocity.video  equal"));
  EXPECT_THAT(text, HasSubstr("velocity.audio  differ"));
}

v1::Run MakeRun() {
  return Parse<v1::Run>(R"pb(
    name: "runs/0123456789abcdef"
    seed: 42
    total_steps: 2
    saved_steps: 2
    state: RUN_STATE_ACTIVE
    identity {
      parts { name: "seed" value: "42" }
      parts { name: "kernel" value: "k" }
    }
    steps {
      index: 0
      outputs { name: "velocity.video" sha256: "aa" }
      outputs { name: "velocity.audio" sha256: "bb" }
    }
    steps {
      index: 1
      outputs { name: "velocity.video" sha256: "cc" }
      outputs { name: "velocity.audio" sha256: "dd" }
    })pb");
}

TEST(RunTextTest, ShowsARun) {
  v1::Run run = MakeRun();
  run.mutable_steps(1)->set_quarantined(true);
  const std::string text = RunText(run, Style());
  EXPECT_THAT(text, HasSubstr("kernel         k"));
  EXPECT_THAT(text, HasSubstr("aa  bb"));
  EXPECT_THAT(text, HasSubstr("quarantined"));
  EXPECT_THAT(RunTableText({run}, {}, Style()), HasSubstr("runs/0123456789ab"));
}

TEST(RunTextTest, ComparesByDigests) {
  bool equal = false;
  EXPECT_THAT(RunComparisonText(MakeRun(), MakeRun(), Style(), &equal),
              HasSubstr("2 steps are equal"));
  EXPECT_TRUE(equal);

  v1::Run other = MakeRun();
  other.mutable_identity()->mutable_parts(1)->set_value("l");
  other.mutable_steps(1)->mutable_outputs(1)->set_sha256("ee");
  std::string text = RunComparisonText(MakeRun(), other, Style(), &equal);
  EXPECT_FALSE(equal);
  EXPECT_THAT(text, HasSubstr("1  velocity.audio"));
  EXPECT_THAT(text, HasSubstr("kernel            k  l"));
  EXPECT_THAT(text, Not(HasSubstr("velocity.video")));

  other = MakeRun();
  other.mutable_steps()->RemoveLast();
  text = RunComparisonText(MakeRun(), other, Style(), &equal);
  EXPECT_FALSE(equal);
  EXPECT_THAT(text, HasSubstr("only A has it"));
}

TEST(RunTextTest, NamesWhatIsCorrupt) {
  const auto verified = Parse<v1::VerifyRunResponse>(R"pb(
    steps_checked: 2
    bytes_checked: 30
    corruptions { step: 1 tensor: "velocity.video" expected_sha256: "aa" })pb");
  const std::string text = VerifyRunText("runs/a", verified, Style());
  EXPECT_THAT(text, HasSubstr("velocity.video  aa        nothing"));
  EXPECT_THAT(VerifyRunText("runs/a", {}, Style()), HasSubstr("as it was saved"));
}

}  // namespace
}  // namespace plumbline::client
