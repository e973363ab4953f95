#include "client/command_line.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/job_request.h"
#include "common/files.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<std::variant<CommandLine, HelpText>> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "plumbline");
  return ParseCommandLine(static_cast<int>(words.size()), words.data());
}

template <typename T>
T ParseAs(std::vector<const char*> words) {
  const auto parsed = Parse(std::move(words));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return std::get<T>(std::get<CommandLine>(*parsed).command);
}

std::string ParseError(std::vector<const char*> words) {
  const auto parsed = Parse(std::move(words));
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(parsed.status().message());
}

absl::StatusOr<v1::InputFile> NameAsArtifact(absl::string_view flag, absl::string_view written) {
  v1::InputFile input;
  if (!ParseWorkerPath(written, PathStyle::kAsWritten, &input)) {
    input.set_artifact(std::string(flag) + " " + std::string(written));
  }
  return input;
}

TEST(CommandLineTest, EveryFlagOfAFullModelReachesItsField) {
  const auto command = ParseAs<SubmitFullModel>(
      {"submit", "full-model", "--checkpoint=H3", "--layout=7,2,6,8,5,first", "--inputs=in",
       "--golden=worker:g", "--provider=ours=p", "--providers=default,sdpa-math,ours",
       "--composition=candidate+provider:attention", "--rule=r.json", "--allow-other-device",
       "--ablation", "--inject=qk-heads", "--keep=nodes.*", "--keep=output.video",
       "--save-tensors=t", "--bundle=b", "--report=r"});
  const absl::StatusOr<JobRequest> request =
      FullModelRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::JobSpec& spec = request->spec;
  const v1::FullModelSpec& full_model = spec.full_model();
  EXPECT_EQ(spec.checkpoint(), "H3");
  EXPECT_EQ(spec.composition(), "candidate+provider:attention");
  EXPECT_EQ(spec.inject(), "qk-heads");
  EXPECT_TRUE(spec.save_tensors());
  EXPECT_EQ(full_model.layouts(0).text_rows(), 7);
  EXPECT_EQ(full_model.captures().inputs().artifact(), "--inputs in");
  EXPECT_EQ(full_model.captures().golden().worker_path(), "g");
  EXPECT_EQ(full_model.captures().providers().at("ours").artifact(), "--provider p");
  EXPECT_THAT(full_model.providers(), ElementsAre("default", "sdpa-math", "ours"));
  EXPECT_EQ(full_model.rule().artifact(), "--rule r.json");
  EXPECT_TRUE(full_model.allow_other_device());
  EXPECT_TRUE(full_model.ablation());
  EXPECT_THAT(full_model.keep(), ElementsAre("nodes.*", "output.video"));
  EXPECT_TRUE(request->wait);
  EXPECT_EQ(request->bundle, "b");
  EXPECT_EQ(request->flags.Find("full_model.rule.artifact")->flag, "--rule");
  EXPECT_EQ(request->flags.Find("full_model.keep[1]")->written, "output.video");
  EXPECT_TRUE(HasUploads(command));

  const v1::JobSpec bare = WithoutInputs(spec);
  EXPECT_FALSE(bare.full_model().has_captures());
  EXPECT_FALSE(bare.full_model().has_rule());
  EXPECT_TRUE(bare.full_model().ablation());
}

TEST(CommandLineTest, ARuleIsGivenOrFrozen) {
  const auto command = ParseAs<SubmitFullModel>(
      {"submit", "full-model", "--checkpoint=H3", "--freeze-rule=rule.json"});
  const auto request = FullModelRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(request.ok());
  EXPECT_TRUE(request->spec.full_model().freeze_rule());
  EXPECT_EQ(request->rule, "rule.json");
  EXPECT_TRUE(request->wait);
  EXPECT_FALSE(HasUploads(command));
  EXPECT_THAT(
      ParseError({"submit", "full-model", "--checkpoint=H3", "--freeze-rule=a", "--rule=b"}),
      HasSubstr("--freeze-rule: not together with --rule"));
}

TEST(CommandLineTest, TakesNothingThatTheApiCannotSay) {
  EXPECT_THAT(ParseError({"submit", "block-replay", "--checkpoint=a\xff"}),
              HasSubstr("is not UTF-8"));
  EXPECT_EQ(ParseAs<DecodeLatents>({"decode", "--latents=\xc3\xa9", "--output=a.png"}).latents,
            "\xc3\xa9");
}

TEST(CommandLineTest, DecodesToWhatTheNamesOfFilesSay) {
  const auto command = ParseAs<DecodeLatents>(
      {"decode", "--checkpoint=H3", "--latents=latents.safetensors", "--output=a.MP4",
       "--output=a.wav", "--frames=u8", "--tile=512", "--tile-overlap=0", "--image-frame=3"});
  EXPECT_FALSE(NamesRun(command.latents));
  const auto request = DecodeRequest(command, "", PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::DecodeSpec& decode = request->spec.decode();
  EXPECT_EQ(decode.latents().artifact(), "--latents latents.safetensors");
  EXPECT_THAT(decode.outputs(), ElementsAre(v1::ARTIFACT_ROLE_VIDEO, v1::ARTIFACT_ROLE_AUDIO));
  EXPECT_TRUE(decode.frames_u8());
  EXPECT_EQ(decode.tile(), 512);
  EXPECT_TRUE(decode.has_tile_overlap());
  EXPECT_EQ(decode.image_frame(), 3);
  EXPECT_FALSE(decode.has_fps());
  EXPECT_EQ(request->outputs.size(), 2u);
  EXPECT_TRUE(request->wait);

  // A run brings its checkpoint along.
  const auto of_run =
      ParseAs<DecodeLatents>({"decode", "--latents=0123abcd", "--output=f.safetensors"});
  EXPECT_TRUE(NamesRun(of_run.latents));
  EXPECT_TRUE(NamesRun("runs/0123"));
  EXPECT_FALSE(NamesRun("0123abcg"));
  EXPECT_FALSE(NamesRun("0123"));
  const auto asked = DecodeRequest(of_run, "runs/x", PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(asked.ok()) << asked.status();
  EXPECT_EQ(asked->spec.decode().run(), "runs/x");
  EXPECT_EQ(asked->spec.checkpoint(), "");

  for (const char* out : {"--output=video", "--output=video.avi"}) {
    const auto wrong = ParseAs<DecodeLatents>({"decode", "--latents=0123abcd", out});
    EXPECT_THAT(
        DecodeRequest(wrong, "runs/x", PathStyle::kAsWritten, &NameAsArtifact).status().message(),
        HasSubstr(".mp4, .wav, .png or .safetensors"));
  }
  EXPECT_THAT(ParseError({"decode", "--latents=a", "--output=a.png", "--no-tiling", "--tile=256"}),
              HasSubstr("not together with"));
  EXPECT_THAT(ParseError({"decode", "--latents=a"}), HasSubstr("--output"));
}

std::string WriteContract(const std::string& text) {
  const std::string path = absl::StrCat(testing::TempDir(), "/contract.json");
  EXPECT_TRUE(WriteFileAtomically(path, text).ok());
  return path;
}

TEST(CommandLineTest, AGenerationIsItsContractAndItsFiles) {
  const std::string contract =
      absl::StrCat("--contract=",
                   WriteContract(R"({"seeds": [42, "43"], "num_frames": 5, "rng": "torch-cpu"})"));
  const auto command = ParseAs<SubmitGeneration>(
      {"submit", "generation", "--checkpoint=H3", contract.c_str(), "--conditioning=c.safetensors",
       "--noise=worker:n.safetensors", "--seeds=43", "--gate=7", "--against=jobs/8",
       "--verify-last-step", "--save-tensors=t.safetensors"});
  const auto request = GenerationRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::GenerationSpec& generation = request->spec.generation();
  EXPECT_THAT(generation.contract().seeds(), ElementsAre(42, 43));
  EXPECT_EQ(generation.contract().rng(), "torch-cpu");
  EXPECT_THAT(generation.seeds(), ElementsAre(43));
  EXPECT_TRUE(generation.has_conditioning());
  EXPECT_TRUE(generation.has_noise());
  EXPECT_EQ(generation.gate(), "jobs/7");
  EXPECT_EQ(generation.against(), "jobs/8");
  EXPECT_TRUE(generation.verify_last_step());
  EXPECT_TRUE(request->spec.save_tensors());
  EXPECT_TRUE(request->wait);
  EXPECT_THAT(ParseError({"submit", "generation", "--checkpoint=H3", "--contract=a",
                          "--conditioning=b", "--gate=1", "--preflight"}),
              HasSubstr("not together with"));
}

TEST(CommandLineTest, AContractThatIsNoneIsRefusedByItsFlag) {
  for (const char* text : {R"({"sedes": [42]})", "[1]", "{", R"({"num_frames": "many"})"}) {
    SubmitGeneration command;
    command.contract = WriteContract(text);
    const auto request = GenerationRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
    EXPECT_THAT(request.status().message(), HasSubstr("--contract:")) << text;
  }
  SubmitGeneration broken;
  broken.contract = WriteContract("{\n \"seeds\": [42],\n \"num_frames\": 22\n \"height\": 96\n}");
  EXPECT_THAT(GenerationRequest(broken, PathStyle::kAsWritten, &NameAsArtifact).status().message(),
              AllOf(HasSubstr(broken.contract), HasSubstr("line 4, column 9")));
  broken.contract = WriteContract("{\"seeds\": [42],\n\n \"sedes\": [42]}");
  EXPECT_THAT(GenerationRequest(broken, PathStyle::kAsWritten, &NameAsArtifact).status().message(),
              AllOf(HasSubstr(broken.contract), HasSubstr("line 3: sedes")));
  broken.contract = WriteContract("{\n\"num_frames\": \"many\"}");
  EXPECT_THAT(GenerationRequest(broken, PathStyle::kAsWritten, &NameAsArtifact).status().message(),
              HasSubstr("line 2: (num_frames)"));
  SubmitGeneration command;
  command.contract = "nowhere.json";
  EXPECT_THAT(GenerationRequest(command, PathStyle::kAsWritten, &NameAsArtifact).status().message(),
              HasSubstr("nowhere.json"));
}

TEST(CommandLineTest, RunsAreLookedAt) {
  EXPECT_EQ(ParseAs<ShowRun>({"runs", "show", "a1b2c3d4"}).run, "a1b2c3d4");
  EXPECT_EQ(ParseAs<AdoptRun>({"runs", "adopt", "a", "--from=b"}).from, "b");
  EXPECT_THAT(ParseAs<DeleteRuns>({"runs", "delete", "a", "b"}).runs, ElementsAre("a", "b"));
  EXPECT_EQ(ParseAs<SubmitDiagnostic>({"submit", "diagnostic", "--run=a", "--step=3"}).step, 3);
  EXPECT_THAT(ParseError({"runs", "compare", "a"}), HasSubstr("B"));
}

TEST(CommandLineTest, SeedsAreNumbersAndRanges) {
  const auto seeds = [](const char* flag) {
    const auto command = ParseAs<SubmitSweep>(
        {"submit", "sweep", "--checkpoint=H3", "--layouts=tiny,small", flag, "--swap=each-node"});
    return SweepRequest(command, PathStyle::kAsWritten);
  };
  const auto request = seeds("--seeds=1,4,7..9");
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_THAT(request->spec.sweep().seeds(), ElementsAre(1, 4, 7, 8, 9));
  EXPECT_EQ(request->spec.sweep().layouts_size(), 2);
  EXPECT_TRUE(request->spec.sweep().swap_each_node());
  EXPECT_EQ(seeds("--seeds=18446744073709551615")->spec.sweep().seeds(0), UINT64_MAX);
  for (const char* bad : {"--seeds=a", "--seeds=3..1", "--seeds=1,", "--seeds=0..99999999999"}) {
    EXPECT_EQ(GetFieldViolations(seeds(bad).status()).at(0).field, "--seeds") << bad;
  }
  EXPECT_THAT(std::string(seeds("--seeds=0..99999999999").status().message()),
              HasSubstr("names more than 1048576 seeds"));
}

TEST(CommandLineTest, RulesAndBundlesAreFiles) {
  const auto show = ParseAs<ShowRule>({"rule", "show", "a.json"});
  EXPECT_EQ(ShowRuleRequest(show, &NameAsArtifact)->spec.rule().show().artifact(), "RULE a.json");

  const auto seal = ParseAs<SealRule>({"rule", "seal", "a.json"});
  EXPECT_EQ(SealRuleRequest(seal, &NameAsArtifact)->rule, "a.json");
  const auto elsewhere = ParseAs<SealRule>({"rule", "seal", "worker:a.json"});
  EXPECT_EQ(GetFieldViolations(SealRuleRequest(elsewhere, &NameAsArtifact).status()).at(0).field,
            "--output");
  const auto compare = ParseAs<CompareRules>({"rule", "compare", "a", "b"});
  EXPECT_EQ(CompareRulesRequest(compare, &NameAsArtifact)->spec.rule().compare().b().artifact(),
            "B b");

  const auto verdict = ParseAs<RecomputeVerdict>({"verdict", "not/there"});
  EXPECT_EQ(GetFieldViolations(VerdictRequest(verdict, &NameAsArtifact).status()).at(0).field,
            "BUNDLE");
}

TEST(CommandLineTest, ABundleOfOthersHoldsRegularFilesAlone) {
  namespace fs = std::filesystem;
  const std::string folder = absl::StrCat(testing::TempDir(), "/bundle_entries.", getpid());
  fs::create_directory(folder);
  std::ofstream(absl::StrCat(folder, "/a.json")) << "{}";
  const auto verdict = ParseAs<RecomputeVerdict>({"verify", folder.c_str()});
  EXPECT_EQ(VerdictRequest(verdict, &NameAsArtifact)->spec.verdict().files_size(), 1);
  const std::string entry = absl::StrCat(folder, "/report.json");
  const auto refused = [&] {
    const absl::Status status = VerdictRequest(verdict, &NameAsArtifact).status();
    fs::remove(entry);
    return std::string(status.message());
  };
  ASSERT_EQ(mkfifo(entry.c_str(), 0600), 0);
  EXPECT_THAT(refused(), HasSubstr("report.json: is no regular file; accepted: a regular file"));
  fs::create_symlink("a.json", entry);
  EXPECT_THAT(refused(), HasSubstr("report.json: is a symbolic link; accepted: a regular file"));
  fs::create_directory(entry);
  EXPECT_THAT(refused(), HasSubstr("report.json: is no regular file; accepted: a regular file"));
  EXPECT_TRUE(VerdictRequest(verdict, &NameAsArtifact).ok());
  fs::remove_all(folder);
}

TEST(CommandLineTest, EveryFlagOfABlockReplayReachesItsField) {
  const auto command = ParseAs<SubmitBlockReplay>({"submit",
                                                   "block-replay",
                                                   "--checkpoint=H3",
                                                   "--block=3",
                                                   "--layouts=tiny,small",
                                                   "--layout=7,2,6,8,5,first",
                                                   "--layout",
                                                   "1,1,2,2,1,none",
                                                   "--composition=candidate+provider:attention",
                                                   "--backward",
                                                   "--inputs=in.safetensors",
                                                   "--golden=worker:golden.safetensors",
                                                   "--provider=provider/default=p.safetensors",
                                                   "--provider=ours=q=1.safetensors",
                                                   "--candidate=c.safetensors",
                                                   "--inject=qk-heads",
                                                   "--save-tensors=out.safetensors",
                                                   "--report=report.json",
                                                   "--label=team=kernels",
                                                   "--label=run=7",
                                                   "--priority=-5"});
  const absl::StatusOr<JobRequest> request =
      BlockReplayRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(request.ok()) << request.status();
  const v1::JobSpec& spec = request->spec;
  const v1::BlockReplaySpec& replay = spec.block_replay();
  EXPECT_EQ(spec.checkpoint(), "H3");
  EXPECT_EQ(spec.composition(), "candidate+provider:attention");
  EXPECT_EQ(spec.inject(), "qk-heads");
  EXPECT_TRUE(spec.save_tensors());
  EXPECT_EQ(spec.priority(), -5);
  EXPECT_EQ(spec.labels().at("team"), "kernels");
  EXPECT_EQ(spec.labels().at("run"), "7");
  EXPECT_EQ(replay.block(), 3);
  EXPECT_TRUE(replay.backward());
  ASSERT_EQ(replay.layouts_size(), 4);
  EXPECT_EQ(replay.layouts(0).name(), "tiny");
  EXPECT_EQ(replay.layouts(1).name(), "small");
  EXPECT_EQ(replay.layouts(2).text_rows(), 7);
  EXPECT_EQ(replay.layouts(3).keyframes_size(), 0);
  EXPECT_EQ(replay.captures().inputs().artifact(), "--inputs in.safetensors");
  EXPECT_EQ(replay.captures().golden().worker_path(), "golden.safetensors");
  EXPECT_EQ(replay.captures().candidate().artifact(), "--candidate c.safetensors");
  EXPECT_EQ(replay.captures().providers().at("provider/default").artifact(),
            "--provider p.safetensors");
  EXPECT_EQ(replay.captures().providers().at("ours").artifact(), "--provider q=1.safetensors");
  EXPECT_EQ(request->save_tensors, "out.safetensors");
  EXPECT_EQ(request->report, "report.json");
  EXPECT_TRUE(request->wait);  // Output files are written when the job is done.
  EXPECT_EQ(request->flags.Find("spec.block_replay.layouts[1].name")->flag, "--layouts");
  EXPECT_EQ(request->flags.Find("spec.block_replay.layouts[2].height")->flag, "--layout");
  EXPECT_EQ(request->flags.Find("block_replay.captures.providers[\"ours\"]")->flag, "--provider");
}

TEST(CommandLineTest, DefaultsAreLeftToTheService) {
  const auto command =
      ParseAs<SubmitBlockReplay>({"submit", "block-replay", "--checkpoint=synthetic:tiny"});
  const absl::StatusOr<JobRequest> request =
      BlockReplayRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
  ASSERT_TRUE(request.ok());
  v1::JobSpec expected;
  expected.set_checkpoint("synthetic:tiny");
  expected.mutable_block_replay();
  EXPECT_EQ(request->spec.SerializeAsString(), expected.SerializeAsString());
  EXPECT_FALSE(request->wait);
  EXPECT_FALSE(HasUploads(command));
}

TEST(CommandLineTest, PathsOfTheEmbeddedWorkerBecomeAbsolute) {
  SubmitBlockReplay command;
  const auto checkpoint = [&command](const char* written) {
    command.checkpoint = written;
    return BlockReplayRequest(command, PathStyle::kAbsolute, &NameAsArtifact)->spec.checkpoint();
  };
  char* folder = realpath(".", nullptr);
  const std::string here(folder);
  std::free(folder);
  EXPECT_EQ(checkpoint("not/there"), here + "/not/there");
  EXPECT_EQ(checkpoint("not/../there"), here + "/there");
  EXPECT_EQ(checkpoint("/not/there"), "/not/there");
  EXPECT_EQ(checkpoint("synthetic:tiny:7"), "synthetic:tiny:7");
  EXPECT_EQ(checkpoint("synthetic:c.json:7"), "synthetic:" + here + "/c.json:7");
  EXPECT_EQ(checkpoint("synthetic:c.json"), "synthetic:" + here + "/c.json");
}

TEST(CommandLineTest, GlobalFlagsStandAnywhere) {
  for (const auto& words :
       std::vector<std::vector<const char*>>{{"--server=h:1", "--token-file=t", "jobs", "list"},
                                             {"jobs", "--server=h:1", "--token-file=t", "list"},
                                             {"jobs", "list", "--server=h:1", "--token-file=t"}}) {
    const auto parsed = Parse(words);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(std::get<CommandLine>(*parsed).server.server, "h:1");
    EXPECT_EQ(std::get<CommandLine>(*parsed).server.files.token_file, "t");
  }
  ASSERT_EQ(setenv("PLUMBLINE_SERVER", "e:2", 1), 0);
  const auto from_environment = Parse({"jobs", "list"});
  const auto from_flag = Parse({"jobs", "list", "--server=h:1"});
  ASSERT_EQ(unsetenv("PLUMBLINE_SERVER"), 0);
  EXPECT_EQ(std::get<CommandLine>(*from_environment).server.server, "e:2");
  EXPECT_EQ(std::get<CommandLine>(*from_flag).server.server, "h:1");
}

TEST(CommandLineTest, OtherCommands) {
  EXPECT_EQ(ParseAs<GetJob>({"jobs", "get", "7", "--format=json"}).format, "json");
  EXPECT_EQ(ParseAs<WatchJobCommand>({"jobs", "watch", "7", "--after=4"}).after, 4);
  EXPECT_EQ(ParseAs<CancelJob>({"jobs", "cancel", "jobs/7", "--reason=x"}).job, "jobs/7");
  EXPECT_EQ(ParseAs<CompareJobs>({"jobs", "compare", "1", "2"}).b, "2");
  EXPECT_THAT(ParseAs<DeleteJobs>({"jobs", "delete", "1", "2"}).jobs, ElementsAre("1", "2"));
  EXPECT_THAT(ParseAs<ListJobs>({"jobs", "list", "--state=queued,running"}).states,
              ElementsAre("queued", "running"));
  EXPECT_EQ(ParseAs<ShowReport>({"report", "7"}).format, "text");
  ParseAs<ListWorkers>({"workers", "list"});
  EXPECT_EQ(ParseAs<DrainWorker>({"workers", "drain", "w"}).worker, "w");
  EXPECT_EQ(ParseAs<ListFaults>({"faults", "--job=block-replay"}).job_kind, "block-replay");
  EXPECT_EQ(ParseAs<CompareFiles>({"compare", "a", "b"}).b, "b");
  const auto media = ParseAs<CompareMedia>({"compare-media", "a.mp4", "b.mp4", "--diff=d.mp4"});
  EXPECT_EQ(media.b, "b.mp4");
  EXPECT_EQ(media.difference, "d.mp4");
  const auto layout =
      ParseAs<BuildLayout>({"layout", "--layout=7,2,6,8,5,first", "--save-tensors=f"});
  EXPECT_EQ(LayoutRequest(layout)->spec.layout().layout().width(), 8);
}

TEST(JobRequestTest, RefusesWhatHasNotTheForm) {
  const auto violation = [](const SubmitBlockReplay& command) {
    const absl::StatusOr<JobRequest> request =
        BlockReplayRequest(command, PathStyle::kAsWritten, &NameAsArtifact);
    const std::vector<FieldViolation> violations = GetFieldViolations(request.status());
    return violations.empty() ? std::string() : violations[0].field;
  };
  SubmitBlockReplay command;
  command.layout = {"1,2"};
  EXPECT_EQ(violation(command), "--layout");
  command = SubmitBlockReplay();
  command.captures.providers = {"nofile"};
  EXPECT_EQ(violation(command), "--provider");
  command.captures.providers = {"a=x", "a=y"};
  EXPECT_EQ(violation(command), "--provider");
  command = SubmitBlockReplay();
  command.job.labels = {"novalue"};
  EXPECT_EQ(violation(command), "--label");
  command.job.labels = {"a=1", "a=2"};
  EXPECT_EQ(violation(command), "--label");
}

}  // namespace
}  // namespace plumbline::client
