#include <cstdlib>
#include <string>

#include "client/block_replay_text.h"
#include "client/job_text.h"
#include "client/layout_text.h"
#include "client/measure_text.h"
#include "client/report_text.h"
#include "client/style.h"
#include "client/table.h"
#include "client/tensor_files_text.h"
#include "common/files.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr size_t kMaxFileBytes = 1 << 20;

std::string TestData(const std::string& name) {
  return *ReadFile("client/testdata/" + name, kMaxFileBytes);
}

template <typename Message>
Message ParseText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

Style Terminal() {
  Style style;
  style.color = true;
  style.unicode = true;
  return style;
}

// Texts are compared with files that a person has looked at. PLUMBLINE_UPDATE_TESTDATA=FOLDER
// writes them anew.
void ExpectFile(const std::string& name, const std::string& text) {
  if (const char* folder = std::getenv("PLUMBLINE_UPDATE_TESTDATA"); folder != nullptr) {
    ASSERT_TRUE(WriteFileAtomically(std::string(folder) + "/" + name, text).ok());
    return;
  }
  EXPECT_EQ(text, TestData(name)) << name;
}

// Without colour codes no line is wider than the report's 100 columns.
void ExpectNarrow(const std::string& text) {
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = text.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_LE(DisplayWidth(text.substr(begin, end - begin)), 100)
        << text.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST(ReportTextTest, BlockReplayThatPassed) {
  const auto report = ParseText<v1::Report>(TestData("block_replay_passed.textproto"));
  const std::string plain = ReportText(report, Style());
  ExpectNarrow(plain);
  ExpectFile("block_replay_passed.txt", plain);
  EXPECT_THAT(plain, Not(HasSubstr("\033")));
}

TEST(ReportTextTest, BlockReplayThatFailed) {
  const auto report = ParseText<v1::Report>(TestData("block_replay_failed.textproto"));
  const std::string plain = ReportText(report, Style());
  ExpectNarrow(plain);
  ExpectFile("block_replay_failed.txt", plain);
  ExpectFile("block_replay_failed.terminal.txt", ReportText(report, Terminal()));
}

TEST(ReportTextTest, CapturedCandidateIsPartialAndSaysWhatWasNotMeasured) {
  const auto report = ParseText<v1::Report>(R"pb(
    job: "jobs/a"
    kind: JOB_KIND_BLOCK_REPLAY
    state: JOB_STATE_SUCCEEDED
    verdict {
      outcome: OUTCOME_PARTIAL
      sentence: "PARTIAL: tiny: all 1 entries passed what could be measured."
      qualifications: "repeat not measured"
      qualifications: "batch not measured"
    }
    tasks {
      title: "layout tiny"
      block_replay {
        layout { name: "tiny" }
        rows: 264
        captured: "candidate"
        entries {
          name: "q_proj"
          kind: ENTRY_KIND_FORWARD
          node: "q_proj"
          repeat { result: EQUALITY_NOT_MEASURED }
          chained { reference: "provider/default" dtype: "BF16" relative_l2: 0.001 }
          chained_error { reference: "golden" dtype: "BF16" relative_l2: 0.002 }
          provider_error { reference: "golden" dtype: "BF16" relative_l2: 0.002 }
          error_ratio: 1
          gates { gate: "repeat" not_measured: true }
          passed: true
        }
        firsts { first_drift: "q_proj" }
      }
    }
  )pb");
  const std::string text = ReportText(report, Style());
  EXPECT_THAT(text, HasSubstr("repeat not measured  |  batch not measured"));
  EXPECT_THAT(text, HasSubstr("isolated drift not measured"));
  EXPECT_THAT(text, HasSubstr("captured     candidate"));
  EXPECT_THAT(text, HasSubstr("limited by: repeat not measured; batch not measured"));
  EXPECT_THAT(text, HasSubstr("first_failure: none"));
}

TEST(ReportTextTest, AFullModelShowsItsRuleItsFailuresAndItsAblation) {
  const auto report = ParseText<v1::Report>(R"pb(
    job: "jobs/a"
    kind: JOB_KIND_FULL_MODEL
    state: JOB_STATE_SUCCEEDED
    verdict {
      outcome: OUTCOME_FAILED
      sentence: "FAILED: tiny."
      first_failure { entry: "nodes.block.0" gate: "ensemble" where: "tiny" }
    }
    tasks {
      title: "layout tiny"
      composition: "candidate"
      full_model {
        layout { name: "tiny" text_rows: 104 frames: 2 height: 12 width: 16 audio_latents: 8 }
        rows: 264
        blocks: 2
        refiner_blocks: 2
        providers { name: "provider/default" kept: true }
        providers { name: "provider/sdpa-math" dropped_because: "errors equal provider/default" }
        rule { origin: RULE_ORIGIN_FROZEN k: 1.1 sha256: "0123456789abcdef0123" }
        rule_made_here: true
        tensors {
          name: "nodes.block.0"
          provider_errors { relative_l2: 0.002 }
          provider_errors { relative_l2: 0.003 }
          candidate_error { relative_l2: 0.5 dtype: "BF16" }
          bound: 0.0043
          bound_ratio: 116
          gates { gate: "ensemble" value: 0.5 bound: 0.0043 }
        }
        tensors {
          name: "nodes.block.1"
          provider_errors { relative_l2: 0.002 }
          candidate_error { relative_l2: 0.001 dtype: "BF16" }
          bound: 0.0032
          bound_ratio: 0.3
          gates { gate: "ensemble" value: 0.001 bound: 0.0032 passed: true }
          passed: true
        }
        ablation { group: "interim" empty: true }
        ablation { group: "all" cleared: "nodes.block.0" worst_ratio: 0.9 }
        firsts { first_drift: "nodes.block.0" }
        trace { groups { requested: "candidate" actual: "candidate" nodes: "proj_in" } }
      }
    }
  )pb");
  const std::string text = ReportText(report, Style());
  ExpectNarrow(text);
  EXPECT_THAT(text, HasSubstr("Full model"));
  EXPECT_THAT(text, HasSubstr("5.00e-01  4.30e-03    116  3.00e-03 sdpa-math"));
  EXPECT_THAT(text, HasSubstr("ensemble: 5.00e-01, allowed 4.30e-03"));
  EXPECT_THAT(text, HasSubstr("passing, nearest to their bounds"));
  EXPECT_THAT(text, HasSubstr("every tensor is the provider's, bit for bit"));
  EXPECT_THAT(text, HasSubstr("frozen, made here first  |  k 1.1  |  sha256 0123456789abcdef"));
  EXPECT_THAT(text, HasSubstr("sdpa-math (errors equal provider/default)"));
  EXPECT_THAT(text, HasSubstr("first drift"));
  EXPECT_THAT(text, HasSubstr("first_failure: nodes.block.0 (ensemble) at tiny"));
}

TEST(ReportTextTest, ASweepShowsLeavesAndTheWorstLeafOfEachHybrid) {
  const auto report = ParseText<v1::Report>(R"pb(
    kind: JOB_KIND_SWEEP
    state: JOB_STATE_SUCCEEDED
    tasks {
      composition: "candidate"
      sweep {
        layout { name: "tiny" text_rows: 104 frames: 2 height: 12 width: 16 audio_latents: 8 }
        distributions {
          composition: "candidate"
          leaf: "leaf.temb"
          min: -1
          p50: 0.5
          p90: 2
          max: 7
          failed: 1
          samples: 10
        }
        distributions {
          composition: "candidate+provider/default:swiglu"
          leaf: "leaf.input"
          max: 1
          samples: 10
        }
        distributions {
          composition: "candidate+provider/default:swiglu"
          leaf: "leaf.temb"
          max: 3
          samples: 10
        }
      }
    }
  )pb");
  const std::string text = ReportText(report, Style());
  ExpectNarrow(text);
  EXPECT_THAT(text, HasSubstr("leaf.temb  -1.00  0.50  2.00  7.00  1 of 10"));
  EXPECT_THAT(text, HasSubstr("candidate+provider/default:swiglu  leaf.temb   0.00  3.00  0"));
}

TEST(ReportTextTest, ABundleShowsBothVerdictsAndItsFiles) {
  const auto report = ParseText<v1::Report>(R"pb(
    kind: JOB_KIND_VERDICT
    state: JOB_STATE_SUCCEEDED
    tasks {
      recomputed_verdict {
        recomputed { sentence: "FAILED: tiny." }
        recorded { sentence: "PASSED: tiny." }
        files { path: "report.json" sha256: "ab" expected_sha256: "cd" }
        missing: "rule.json"
      }
    }
  )pb");
  const std::string text = ReportText(report, Style());
  EXPECT_THAT(text, HasSubstr("recorded     PASSED: tiny."));
  EXPECT_THAT(text, HasSubstr("recomputed   FAILED: tiny."));
  EXPECT_THAT(text, HasSubstr("agree        NO"));
  EXPECT_THAT(text, HasSubstr("report.json  FAIL  ab"));
  EXPECT_THAT(text, HasSubstr("rule.json    FAIL  missing"));
}

TEST(ReportTextTest, JsonHasProtoFieldNamesAndDefaults) {
  v1::Report report;
  report.set_job("jobs/a");
  const absl::StatusOr<std::string> json = ReportJson(report);
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, HasSubstr("\"job\": \"jobs/a\""));
  EXPECT_THAT(*json, HasSubstr("\"tasks\": []"));
  EXPECT_THAT(*json, HasSubstr("\"kind\": \"JOB_KIND_UNSPECIFIED\""));
  report.add_tasks()->set_wall_seconds(2);
  EXPECT_THAT(*ReportJson(report), HasSubstr("\"wall_seconds\": 2"));
}

TEST(TensorFilesTextTest, EveryMeasureOfEveryTensor) {
  const auto report = ParseText<v1::TensorFilesReport>(TestData("tensor_files.textproto"));
  const std::string text = TensorFilesText(report, Style());
  ExpectNarrow(text);
  ExpectFile("tensor_files.txt", text);
}

TEST(TableTest, ControlCharactersOfANameAreWrittenOut) {
  Table table({{"name"}});
  table.AddRow({Cell("a\x1b[31mX\n")});
  EXPECT_NE(table.Render(Style()).find("a\\x1b[31mX\\x0a\n"), std::string::npos)
      << table.Render(Style());
}

TEST(TableTest, AlignsByCharactersAndLeavesNoSpaceAtTheEnd) {
  Table table({{"name"}, {"value", Table::Align::kRight}, {"note"}});
  table.AddRow({Cell("\u03c3"), Cell("10"), Cell("")});
  table.AddRow({Cell("long"), Cell("1")});
  table.AddNote("below", Ink::kBad);
  EXPECT_EQ(table.Render(Style()),
            "  name  value  note\n"
            "  -----------------\n"
            "  \u03c3        10\n"
            "  long      1\n"
            "    below\n");
}

TEST(LayoutTextTest, TakesNamesAndSizes) {
  EXPECT_EQ(ParseLayout("--layout", "tiny")->name(), "tiny");
  const absl::StatusOr<v1::Layout> layout = ParseLayout("--layout", "7,2,6,8,5,first+last");
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->text_rows(), 7);
  EXPECT_EQ(layout->audio_latents(), 5);
  EXPECT_EQ(layout->keyframes_size(), 2);
  EXPECT_EQ(LayoutText(*layout), "7,2,6,8,5,first+last");
  EXPECT_EQ(LayoutText(*ParseLayout("--layout", "1,2,4,6,3,none")), "1,2,4,6,3,none");
  // Sizes that no layout has are the service's to refuse.
  EXPECT_TRUE(ParseLayout("--layout", "0,-2,6,8,5,last").ok());
}

TEST(LayoutTextTest, RefusesOtherFormsNamingThePart) {
  const auto message = [](const char* text) {
    const absl::StatusOr<v1::Layout> layout = ParseLayout("--layout", text);
    EXPECT_EQ(layout.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(GetFieldViolations(layout.status()).at(0).field, "--layout") << text;
    EXPECT_THAT(layout.status().message(), HasSubstr("TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES"));
    return std::string(layout.status().message());
  };
  EXPECT_THAT(message("1,2,3"), HasSubstr("3 parts instead of 6"));
  EXPECT_THAT(message("1,2,3,x,5,first"), HasSubstr("WIDTH is no whole number"));
  EXPECT_THAT(message("1,2,3,4,5,middle"), HasSubstr("unknown KEYFRAMES \"middle\""));
  EXPECT_THAT(message("99999999999,2,3,4,5,first"), HasSubstr("TEXT is no whole number"));
  EXPECT_THAT(message(""), HasSubstr("nothing"));
}

TEST(MeasureTextTest, Figures) {
  EXPECT_EQ(MeasureText(0), "0");
  EXPECT_EQ(MeasureText(0.000123456), "1.23e-04");
  EXPECT_EQ(MeasureText(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(RatioText(1.005), "1.00");
  EXPECT_EQ(RatioText(123456), "1e+05");
  EXPECT_EQ(CountText(1234567), "1,234,567");
  EXPECT_EQ(CountText(-1234), "-1,234");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(BytesText(1536), "1.5 kB");
  EXPECT_EQ(JobKindText(v1::JOB_KIND_BLOCK_REPLAY), "block-replay");
  EXPECT_EQ(JobName("7"), "jobs/7");
  EXPECT_EQ(JobName("jobs/7"), "jobs/7");
}

TEST(EventTextTest, SaysWhatHappened) {
  const auto event = ParseText<v1::JobEvent>(R"pb(
    job: "jobs/a"
    sequence: 12
    time { seconds: 1714564800 }
    task: "jobs/a/tasks/3"
    node {
      layout: "tiny"
      entry: "q_proj"
      feed: FEED_CHAINED
      comparison { reference: "provider/default" relative_l2: 0.5 }
      failed_gates: "batch"
    }
  )pb");
  EXPECT_EQ(EventText(event, Style()),
            "12  2024-05-01 12:00:00  task 3  tiny q_proj chained against provider/default: "
            "relative L2 5.00e-01; fails batch");
}

TEST(EventTextTest, KnowsEveryKindOfEvent) {
  const google::protobuf::OneofDescriptor* const bodies =
      v1::JobEvent::descriptor()->FindOneofByName("body");
  for (int i = 0; i < bodies->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* const field = bodies->field(i);
    v1::JobEvent event;
    event.GetReflection()->MutableMessage(&event, field);
    EXPECT_THAT(EventText(event, Style()), Not(HasSubstr("of another"))) << field->name();
  }
  EXPECT_THAT(EventText(v1::JobEvent(), Style()), HasSubstr("see --format=json"));
}

TEST(JobTextTest, ManyEntriesOfOneSideAreCounted) {
  v1::JobComparison comparison;
  comparison.add_only_a("layout tiny: q_proj");
  for (int i = 0; i < 48; ++i) comparison.add_only_a("layout medium: e" + std::to_string(i));
  comparison.add_only_b("k_proj");
  EXPECT_THAT(JobComparisonText(comparison, Style()),
              HasSubstr("  only A: layout tiny: q_proj\n  only A: layout medium: 48 entries\n"
                        "  only B: k_proj\n"));
}

TEST(JobTextTest, WhatHasNotEndedHasNoVerdict) {
  v1::Job job;
  job.set_name("jobs/a");
  job.set_kind(v1::JOB_KIND_BLOCK_REPLAY);
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  v1::Task& task = *job.add_tasks();
  task.set_name("jobs/a/tasks/0");
  task.set_state(v1::JOB_STATE_QUEUED);
  for (const std::string& text : {JobTableText({job}, Style()), JobText(job, Style())}) {
    EXPECT_THAT(text, Not(HasSubstr("not-judged")));
    EXPECT_THAT(text, Not(HasSubstr("unspecified")));
  }
  job.set_state(v1::JOB_STATE_SUCCEEDED);
  EXPECT_THAT(JobTableText({job}, Style()), HasSubstr("not-judged"));
}

}  // namespace
}  // namespace plumbline::client
