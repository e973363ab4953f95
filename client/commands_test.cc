#include "client/commands.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "client/exit_status.h"
#include "client/fake_coordinator.h"
#include "client/job_runner.h"
#include "common/files.h"
#include "common/grpc_status.h"
#include "common/sha256.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/google/rpc/status.pb.h"

namespace plumbline::client {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr size_t kMaxFileBytes = 8 << 20;

template <typename Message>
Message ParseText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

std::string Contents(std::FILE* file) {
  std::rewind(file);
  std::string contents;
  char buffer[4096];
  for (size_t size; (size = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
    contents.append(buffer, size);
  }
  return contents;
}

// Runs command lines against a fake coordinator, as embedded and piped.
class CommandsTest : public testing::Test {
 protected:
  CommandsTest() {
    coordinator_.job = ParseText<v1::Job>(R"pb(
      state: JOB_STATE_SUCCEEDED
      tasks { name: "jobs/fake/tasks/0" title: "layout tiny" state: JOB_STATE_SUCCEEDED }
    )pb");
    coordinator_.events.push_back(
        ParseText<v1::JobEvent>("job_state { state: JOB_STATE_RUNNING }"));
    coordinator_.events.push_back(
        ParseText<v1::JobEvent>("job_state { state: JOB_STATE_SUCCEEDED }"));
    coordinator_.report_pages.push_back(ParseText<v1::Report>(R"pb(
      job: "jobs/fake"
      kind: JOB_KIND_BLOCK_REPLAY
      state: JOB_STATE_SUCCEEDED
      verdict { outcome: OUTCOME_PASSED sentence: "PASSED: tiny." }
      tasks { block_replay { layout { name: "tiny" } } }
    )pb"));
  }

  int Run(std::vector<const char*> words) {
    words.insert(words.begin(), "plumbline");
    Environment environment;
    environment.output.out = std::tmpfile();
    environment.output.error = std::tmpfile();
    environment.clock = SystemClock();
    environment.interrupt = &interrupt_;
    environment.embedded = [this](bool) {
      ++connections_;
      return coordinator_.NewConnector(is_embedded_);
    };
    const int status = RunCommandLine(static_cast<int>(words.size()), words.data(), environment);
    out_ = Contents(environment.output.out);
    error_ = Contents(environment.output.error);
    std::fclose(environment.output.out);
    std::fclose(environment.output.error);
    return status;
  }

  void FailJob(const absl::Status& error) {
    coordinator_.job.set_state(v1::JOB_STATE_FAILED);
    coordinator_.job.mutable_tasks(0)->set_state(v1::JOB_STATE_FAILED);
    *coordinator_.job.mutable_error() = ToRpcStatus(error);
  }

  static std::string TempPath(const std::string& name) { return testing::TempDir() + name; }

  FakeCoordinator coordinator_;
  Interrupt interrupt_;
  bool is_embedded_ = true;
  int connections_ = 0;
  std::string out_;
  std::string error_;
};

TEST_F(CommandsTest, EmbeddedSubmitWaitsAndPrintsTheReport) {
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=synthetic:tiny"}), kExitPassed);
  EXPECT_THAT(out_, HasSubstr("Block replay"));
  EXPECT_THAT(out_, EndsWith("PASSED: tiny.\nfirst_failure: none\n"));
  EXPECT_THAT(error_, IsEmpty());
  ASSERT_EQ(coordinator_.created().size(), 1u);
  EXPECT_EQ(coordinator_.created()[0].spec().checkpoint(), "synthetic:tiny");
  EXPECT_FALSE(coordinator_.created()[0].request_id().empty());
  EXPECT_THAT(coordinator_.deleted(), IsEmpty());
}

TEST_F(CommandsTest, SubmitToAServerPrintsTheNameAndEnds) {
  is_embedded_ = false;
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=synthetic:tiny"}), kExitPassed);
  EXPECT_EQ(out_, "jobs/fake\n");
  EXPECT_THAT(coordinator_.watched_after(), IsEmpty());
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=synthetic:tiny", "--wait"}), kExitPassed);
  EXPECT_THAT(out_, HasSubstr("first_failure: none"));
}

TEST_F(CommandsTest, TheVerdictIsTheExitStatus) {
  v1::Verdict& verdict = *coordinator_.report_pages[0].mutable_verdict();
  const auto run = [&](v1::Outcome outcome) {
    verdict.set_outcome(outcome);
    return Run({"submit", "block-replay", "--checkpoint=synthetic:tiny"});
  };
  EXPECT_EQ(run(v1::OUTCOME_FAILED), 1);
  EXPECT_EQ(run(v1::OUTCOME_PARTIAL), 0);
  EXPECT_EQ(run(v1::OUTCOME_NOT_JUDGED), 0);
  verdict.set_outcome(v1::OUTCOME_FAILED);
  EXPECT_EQ(Run({"report", "fake"}), 1);
}

// Before anything is computed that could not be kept.
TEST_F(CommandsTest, ABundleThatCannotBeMadeIsToldBeforeTheJob) {
  const std::string file = TempPath("a_file");
  ASSERT_TRUE(WriteFileAtomically(file, "x").ok());
  const std::string full = TempPath("full");
  std::filesystem::create_directories(full + "/in");
  for (const std::string& folder : {file, file + "/in/it", full}) {
    EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=synthetic:tiny",
                   ("--bundle=" + folder).c_str()}),
              kExitBadRequest)
        << folder;
    EXPECT_THAT(error_, HasSubstr("--bundle")) << folder;
    EXPECT_THAT(error_, HasSubstr("a new or an empty folder")) << folder;
  }
  EXPECT_THAT(coordinator_.created(), IsEmpty());
  const std::string made = TempPath("made/for/it");
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=synthetic:tiny",
                 ("--bundle=" + made + "/").c_str()}),
            kExitPassed)
      << error_;
  EXPECT_TRUE(std::filesystem::exists(made + "/SHA256SUMS"));
}

// Permissions do not say it: to root everything is writable.
TEST_F(CommandsTest, WhatCannotBeWrittenIsToldBeforeAnythingIsDone) {
  const std::string bundle = TempPath("given_bundle");
  std::filesystem::create_directories(bundle);
  ASSERT_TRUE(WriteFileAtomically(bundle + "/report.json", "{}").ok());
  const std::vector<std::vector<const char*>> commands = {
      {"submit", "block-replay", "--checkpoint=H3", "--golden=not.there", "--report"},
      {"submit", "block-replay", "--checkpoint=H3", "--save-tensors"},
      {"submit", "block-replay", "--checkpoint=H3", "--bundle"},
      {"submit", "full-model", "--checkpoint=H3", "--freeze-rule"},
      {"submit", "full-model", "--checkpoint=H3", "--bundle"},
      {"submit", "sweep", "--checkpoint=H3", "--report"},
      {"submit", "diagnostic", "--run=0123abcd", "--report"},
      {"decode", "--checkpoint=H3", "--latents=not.there", "--output"},
      {"decode", "--latents=0123abcd", "--output"},
      {"decode", "--kept=not.there", "--output"},
      {"rule", "seal", "not.there", "--output"},
      {"verify", bundle.c_str(), "--report"},
      {"checkpoint", "manifest", "H3", "--output"},
      {"selftest", "--report"},
      {"compare", "not.there", "not.there", "--report"},
      {"compare-media", "not.there", "not.there", "--diff"},
      {"compare-media", "jobs/1", "jobs/2", "--report"},
      {"layout", "--layout=tiny", "--save-tensors"},
      {"report", "fake", "--bundle"},
  };
  const std::string long_name = TempPath(std::string(300, 'x') + ".mp4");
  const std::string nowhere = TempPath("not/there/x.mp4");
  for (std::vector<const char*> words : commands) {
    const std::string flag = words.back();
    words.pop_back();
    for (const std::string& path : {std::string("/proc/x.mp4"), long_name, nowhere}) {
      if (flag == "--bundle" && path == nowhere) continue;  // It would be made.
      const std::string written = flag + "=" + path;
      words.push_back(written.c_str());
      EXPECT_EQ(Run(words), kExitBadRequest) << written;
      EXPECT_THAT(error_, HasSubstr("\n  " + flag + ": ")) << words[1];
      EXPECT_THAT(error_, HasSubstr(path)) << words[1];
      words.pop_back();
    }
  }
  EXPECT_EQ(connections_, 0);
  EXPECT_FALSE(std::filesystem::exists(TempPath("not")));
}

TEST_F(CommandsTest, WhatCannotBePrintedIsAFailure) {
  for (const char* const word : {"faults", "--help"}) {
    Environment environment;
    environment.output.out = std::fopen("/dev/full", "w");
    environment.output.error = std::tmpfile();
    ASSERT_NE(environment.output.out, nullptr);
    const char* const words[] = {"plumbline", word};
    EXPECT_EQ(RunCommandLine(2, words, environment), kExitServiceFailed);
    EXPECT_THAT(Contents(environment.output.error),
                HasSubstr("standard output did not take all that was printed"));
    std::fclose(environment.output.out);
    std::fclose(environment.output.error);
  }
}

TEST_F(CommandsTest, NoFileIsWrittenTwiceAndNoTrialIsLeft) {
  const std::string folder = TempPath("outputs");
  std::filesystem::create_directories(folder);
  const std::string report = "--report=" + folder + "/a";
  const std::string tensors = "--save-tensors=" + folder + "/./a";
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", report.c_str(), tensors.c_str()}),
            kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--save-tensors: "));
  EXPECT_THAT(error_, HasSubstr("is what --report writes"));
  // A bundle's folder holds nothing else, also when the job has ended.
  const std::string bundle = "--bundle=" + folder + "/";
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", report.c_str(), bundle.c_str()}),
            kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--bundle: "));
  EXPECT_THAT(error_, HasSubstr("is where --report writes"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_EQ(connections_, 0);
}

TEST_F(CommandsTest, ARefusalNamesFlagFieldAndAcceptedValues) {
  coordinator_.create_error =
      FieldError("spec.block_replay.layouts[1].name", "unknown layout \"smal\"", "tiny, small");
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=synthetic:tiny", "--layouts=tiny,smal"}),
            kExitBadRequest);
  EXPECT_EQ(error_,
            "plumbline: INVALID_ARGUMENT: the request cannot be accepted\n"
            "  --layouts (spec.block_replay.layouts[1].name): unknown layout \"smal\"; accepted: "
            "tiny, small\n"
            "    did you mean \"small\"?\n");
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CommandsTest, AJobThatItsFilesMakeImpossibleIsARefusalAndIsDeleted) {
  FailJob(FieldError("checkpoint", "model-2.safetensors is missing", "a whole checkpoint"));
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3"}), kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--checkpoint (checkpoint): model-2.safetensors is missing"));
  EXPECT_THAT(coordinator_.deleted(), ElementsAre("jobs/fake"));
}

TEST_F(CommandsTest, AFailureOfTheServiceIsStatusThreeAndKeepsTheJob) {
  FailJob(absl::InternalError("the device is broken"));
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3"}), kExitServiceFailed);
  EXPECT_THAT(error_, HasSubstr("INTERNAL: the device is broken"));
  EXPECT_THAT(coordinator_.deleted(), IsEmpty());
}

TEST_F(CommandsTest, WaitingForMemoryThatNoWorkerHasIsABadRequest) {
  coordinator_.events.clear();
  coordinator_.job = ParseText<v1::Job>(R"pb(
    state: JOB_STATE_QUEUED
    waiting_reason { code: CODE_MEMORY message: "needs 81 GB; the largest worker has 24 GB" }
  )pb");
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", "--layouts=released"}),
            kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--layouts"));
  EXPECT_THAT(error_, HasSubstr("needs 81 GB; the largest worker has 24 GB"));
  EXPECT_THAT(coordinator_.deleted(), ElementsAre("jobs/fake"));
}

TEST_F(CommandsTest, WhatTheOnlyWorkerHandedBackIsNotWaitedFor) {
  coordinator_.events.clear();
  coordinator_.job = ParseText<v1::Job>(R"pb(
    state: JOB_STATE_QUEUED
    waiting_reason { code: CODE_NO_FIT message: "every worker that fits handed it back: no disk" }
  )pb");
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3"}), kExitServiceFailed);
  EXPECT_THAT(error_, HasSubstr("every worker that fits handed it back: no disk"));
  EXPECT_THAT(coordinator_.deleted(), ElementsAre("jobs/fake"));
}

TEST_F(CommandsTest, WatchingAStepPrintsOneLine) {
  coordinator_.events = {
      ParseText<v1::JobEvent>(
          "progress { done: 3 total: 50 unit: 'steps' activity: 'seed 42: step 3' }"),
      ParseText<v1::JobEvent>(
          "step { seed: 42 step: 3 total: 50 origin: STEP_ORIGIN_COMPUTED seconds: 2 }"),
      ParseText<v1::JobEvent>("preview { seed: 42 step: 3 png: 'x' }"),
      ParseText<v1::JobEvent>("progress { done: 4 total: 50 unit: 'steps' activity: 'seed 42' }"),
      ParseText<v1::JobEvent>("progress { done: 1 total: 9 unit: 'clips' activity: 'decoding' }"),
  };
  const auto lines = [this] { return std::count(out_.begin(), out_.end(), '\n'); };
  EXPECT_EQ(Run({"jobs", "watch", "fake"}), kExitPassed);
  EXPECT_EQ(lines(), 2) << out_;
  EXPECT_THAT(out_, AllOf(HasSubstr("seed 42 step 3 of 50 computed"), HasSubstr("decoding")));
  EXPECT_EQ(Run({"jobs", "watch", "fake", "--format=json"}), kExitPassed);
  EXPECT_EQ(lines(), 5) << out_;
}

TEST_F(CommandsTest, ALostStreamIsResumedAfterTheLastEvent) {
  for (int i = 0; i < 5; ++i) {
    coordinator_.events.push_back(ParseText<v1::JobEvent>("log { message: 'line' }"));
  }
  coordinator_.break_after = {2, 0, 3};
  EXPECT_EQ(Run({"jobs", "watch", "fake"}), kExitPassed);
  EXPECT_THAT(coordinator_.watched_after(), ElementsAre(0, 2, 2, 5));
  EXPECT_EQ(static_cast<size_t>(std::count(out_.begin(), out_.end(), '\n')),
            coordinator_.events.size());
}

TEST_F(CommandsTest, AMissingEventIsAFailureOfTheService) {
  coordinator_.events[1].set_sequence(3);
  EXPECT_EQ(Run({"jobs", "watch", "fake"}), kExitServiceFailed);
  EXPECT_THAT(error_, HasSubstr("DATA_LOSS: jobs/fake: event 3 came where 2 was due"));
}

TEST_F(CommandsTest, CtrlCSaysHowToGoOnAndLeavesTheJob) {
  is_embedded_ = false;
  coordinator_.job.set_state(v1::JOB_STATE_RUNNING);
  coordinator_.events.pop_back();
  coordinator_.on_watched = [this] { interrupt_.Raise(); };
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", "--wait"}), kExitInterrupted);
  EXPECT_EQ(error_,
            "Interrupted. jobs/fake goes on.\n"
            "  watch it:   plumbline jobs watch jobs/fake\n"
            "  cancel it:  plumbline jobs cancel jobs/fake\n");
  EXPECT_THAT(coordinator_.deleted(), IsEmpty());
  // Raised before there is a job, it ends the command at once.
  EXPECT_EQ(Run({"jobs", "list"}), kExitInterrupted);
}

TEST_F(CommandsTest, InputsAreUploadedAfterTheRestIsAccepted) {
  const std::string path = TempPath("capture.safetensors");
  std::string bytes(3 << 20, 'x');
  bytes.back() = 'y';
  ASSERT_TRUE(WriteFileAtomically(path, bytes).ok());
  const std::string flag = "--golden=" + path;
  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", flag.c_str()}), kExitPassed);
  const std::vector<v1::CreateJobRequest> created = coordinator_.created();
  ASSERT_EQ(created.size(), 2u);
  EXPECT_TRUE(created[0].validate_only());
  EXPECT_FALSE(created[0].spec().block_replay().has_captures());
  EXPECT_FALSE(created[1].validate_only());
  EXPECT_EQ(created[1].spec().block_replay().captures().golden().artifact(),
            "artifacts/capture.safetensors");
  EXPECT_EQ(coordinator_.artifacts["artifacts/capture.safetensors"], bytes);

  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", "--golden=not.there"}),
            kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--golden"));
  EXPECT_THAT(error_, HasSubstr("not.there"));
}

TEST_F(CommandsTest, OutputFilesAreDownloadedAndChecked) {
  const std::string bytes(2'500'000, 't');
  coordinator_.artifacts["artifacts/t"] = bytes;
  v1::Artifact& artifact = *coordinator_.job.add_artifacts();
  artifact.set_name("artifacts/t");
  artifact.set_role(v1::ARTIFACT_ROLE_TENSORS);
  artifact.set_task("jobs/fake/tasks/0");
  artifact.set_size_bytes(static_cast<int64_t>(bytes.size()));
  artifact.set_sha256(Sha256Hex(bytes));
  const std::string tensors = TempPath("tensors.safetensors");
  const std::string report = TempPath("report.json");
  const std::string tensors_flag = "--save-tensors=" + tensors;
  const std::string report_flag = "--report=" + report;
  const std::vector<const char*> words = {"submit", "block-replay", "--checkpoint=H3",
                                          tensors_flag.c_str(), report_flag.c_str()};
  EXPECT_EQ(Run(words), kExitPassed) << error_;
  EXPECT_EQ(*ReadFile(tensors, kMaxFileBytes), bytes);
  EXPECT_THAT(*ReadFile(report, kMaxFileBytes), HasSubstr("\"kind\": \"JOB_KIND_BLOCK_REPLAY\""));

  std::remove(tensors.c_str());
  coordinator_.corrupt_artifacts = true;
  EXPECT_EQ(Run(words), kExitServiceFailed);
  EXPECT_THAT(error_, HasSubstr("DATA_LOSS"));
  EXPECT_EQ(ReadFile(tensors, kMaxFileBytes).status().code(), absl::StatusCode::kNotFound);

  EXPECT_EQ(Run({"submit", "block-replay", "--checkpoint=H3", "--report=/not/there/x.json"}),
            kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--report"));
}

TEST_F(CommandsTest, PagesOfAReportBecomeOne) {
  coordinator_.report_pages.push_back(
      ParseText<v1::Report>("tasks { block_replay { layout { name: 'small' } } }"));
  EXPECT_EQ(Run({"report", "fake"}), kExitPassed);
  EXPECT_THAT(out_, HasSubstr("Layout tiny"));
  EXPECT_THAT(out_, HasSubstr("Layout small"));
  EXPECT_EQ(Run({"report", "fake", "--format=json"}), kExitPassed);
  EXPECT_THAT(out_, HasSubstr("\"name\": \"small\""));
}

TEST_F(CommandsTest, FaultsNeedNoServiceAndAreTabSeparated) {
  EXPECT_EQ(Run({"faults", "--job=block-replay"}), kExitPassed);
  EXPECT_THAT(out_, HasSubstr("qk-heads\tq_proj\tThe rows"));
  EXPECT_EQ(Run({"faults", "--job=nothing"}), kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("--job"));
  EXPECT_THAT(error_, HasSubstr("block-replay"));
  EXPECT_EQ(Run({"faults", "--job=rule"}), kExitPassed);
  EXPECT_THAT(out_, IsEmpty());
}

TEST_F(CommandsTest, UnknownJobIsABadRequest) {
  EXPECT_EQ(Run({"jobs", "get", "other"}), kExitBadRequest);
  EXPECT_THAT(error_, HasSubstr("NOT_FOUND: jobs/other"));
}

TEST(PathForTaskTest, PutsTheLayoutBeforeTheExtension) {
  EXPECT_EQ(PathForTask("a/t.safetensors", "layout tiny"), "a/t-tiny.safetensors");
  EXPECT_EQ(PathForTask("a.b/t", "layout 7,2,6,8,5,first"), "a.b/t-7_2_6_8_5_first");
}

}  // namespace
}  // namespace plumbline::client
