// Against programs named sbatch, squeue and scancel that are scripts of this test's.
#include "client/slurm_commands.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "client/slurm_script.h"
#include "common/clock.h"
#include "common/files.h"
#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string Contents(std::FILE* file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  EXPECT_EQ(std::fread(text.data(), 1, text.size(), file), text.size());
  std::fclose(file);
  return text;
}

class SlurmCommandsTest : public testing::Test {
 protected:
  SlurmCommandsTest()
      : folder_(std::filesystem::path(testing::TempDir() + "/" +
                                      testing::UnitTest::GetInstance()->current_test_info()->name())
                    .lexically_normal()
                    .string()),
        path_(std::getenv("PATH")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/bin");
    setenv("PATH", (folder_ + "/bin:" + path_).c_str(), 1);
    environment_.clock = SystemClock();
    line_.server.server = "head:7433";
    command_.workers = 2;
    command_.worker = "plumbline-worker";
    Install("plumbline-worker", "echo 'plumbline-worker 1 takes these flags'");
    command_.state_root = folder_ + "/a state";
  }
  ~SlurmCommandsTest() override { setenv("PATH", path_.c_str(), 1); }

  void Install(const std::string& program, const std::string& body) {
    const std::string path = folder_ + "/bin/" + program;
    ASSERT_TRUE(WriteFileAtomically(path, "#!/bin/bash\n" + body + "\n").ok());
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }

  // Output; the error in `status_`, what was said besides in `error_`.
  template <typename Run>
  std::string Print(const Run& run) {
    environment_.output.out = std::tmpfile();
    environment_.output.error = std::tmpfile();
    status_ = run().status();
    error_ = Contents(environment_.output.error);
    return Contents(environment_.output.out);
  }
  std::string Submit() {
    return Print([&] {
      return DoSubmitSlurmWorkers(
          command_, line_, [this] { return connected_; }, environment_);
    });
  }

  const std::string folder_;
  const std::string path_;
  Environment environment_;
  CommandLine line_;
  SubmitSlurmWorkers command_;
  absl::Status connected_;
  absl::Status status_;
  std::string error_;
};

TEST_F(SlurmCommandsTest, TheScriptIsSubmittedAndLeavesNoFile) {
  Install("sbatch", "printf '%s\\n' \"$@\" >\"" + folder_ + "/arguments\"\n" +
                        "for word; do [[ \"$word\" != *.sbatch ]] || cp \"$word\" \"" + folder_ +
                        "/script\"; done; echo '42;cluster'");
  EXPECT_EQ(Submit(), "42\n");
  ASSERT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(error_, HasSubstr("plumbline cluster slurm cancel 42"));
  EXPECT_THAT(error_, HasSubstr(folder_ + "/a state/logs/plumbline-42_*.log"));
  EXPECT_TRUE(std::filesystem::is_directory(folder_ + "/a state/logs"));
  EXPECT_EQ(ReadFile(folder_ + "/script", 1 << 20).value(), SlurmScript());
  const std::string arguments = ReadFile(folder_ + "/arguments", 1 << 20).value();
  EXPECT_THAT(arguments,
              HasSubstr("\nplumbline-worker\n" + folder_ + "/a state\n--server=head:7433"));
  const size_t script = arguments.find("/plumbline-worker.sbatch");
  ASSERT_NE(script, std::string::npos);
  const size_t begin = arguments.rfind('\n', script) + 1;
  EXPECT_FALSE(std::filesystem::exists(arguments.substr(begin, script - begin)));
}

TEST_F(SlurmCommandsTest, ADryRunNeedsNeitherSlurmNorACoordinator) {
  setenv("PATH", (folder_ + "/bin").c_str(), 1);
  connected_ = absl::UnavailableError("nobody");
  command_.dry_run = true;
  const std::string printed = Submit();
  ASSERT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(printed, StartsWith("sbatch --gres=gpu:1 --parsable"));
  EXPECT_THAT(printed, HasSubstr("'" + folder_ + "/a state'"));
  EXPECT_THAT(printed, HasSubstr(std::string(SlurmScript())));
  EXPECT_FALSE(std::filesystem::exists(command_.state_root));
}

TEST_F(SlurmCommandsTest, NothingIsSubmittedForACoordinatorThatIsNotThere) {
  Install("sbatch", "touch \"" + folder_ + "/submitted\"; echo 1");
  connected_ = absl::UnavailableError("the server at head:7433 does not answer");
  Submit();
  EXPECT_TRUE(absl::IsUnavailable(status_));
  EXPECT_THAT(std::string(status_.message()), HasSubstr("nothing is submitted"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/submitted"));
  command_.unchecked = true;
  EXPECT_EQ(Submit(), "1\n");
}

TEST_F(SlurmCommandsTest, AWorkerIsAskedWhetherItTakesItsFlags) {
  Install("sbatch", "touch \"" + folder_ + "/submitted\"; echo 1");
  Install("plumbline-worker",
          "printf '%s\\n' \"$@\" >\"" + folder_ +
              "/asked\"; echo 'plumbline-worker: there is no flag \"--x\"' >&2; "
              "echo 'See plumbline-worker --help' >&2; exit 2");
  command_.worker_flags = {"--token-file", "a b", "--x"};
  for (const bool dry_run : {true, false}) {
    command_.dry_run = dry_run;
    EXPECT_EQ(Submit(), "");
    EXPECT_TRUE(absl::IsInvalidArgument(status_)) << status_;
    EXPECT_THAT(std::string(status_.message()),
                HasSubstr("FLAG: there is no flag \"--x\"; accepted: flags of plumbline-worker"));
  }
  EXPECT_EQ(ReadFile(folder_ + "/asked", 1 << 20).value(),
            "--check-flags\n--server=head:7433\n--token-file\na b\n--x\n");
  command_.unchecked = true;
  EXPECT_EQ(Submit(), "1\n");
}

TEST_F(SlurmCommandsTest, WhatIsNoWorkerIsNotSubmitted) {
  command_.dry_run = true;
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/a file", "#!/bin/bash\n").ok());
  Install("other", "echo hello");
  Install("broken", "echo 'error while loading shared libraries: libx.so' >&2; exit 127");
  for (const auto& [worker, says] :
       {std::make_pair(folder_ + "/nowhere", "is not there"),
        std::make_pair(folder_ + "/a file", "is no program"),
        std::make_pair(folder_, "is no program"),
        std::make_pair(folder_ + "/bin/other", "is not plumbline-worker, or does not run here"),
        std::make_pair(folder_ + "/bin/broken", "loading shared libraries: libx.so")}) {
    command_.worker = worker;
    EXPECT_EQ(Submit(), "") << worker;
    EXPECT_THAT(std::string(status_.message()), HasSubstr("--worker: " + worker));
    EXPECT_THAT(std::string(status_.message()), HasSubstr(says));
    EXPECT_THAT(std::string(status_.message()), HasSubstr("--unchecked"));
  }
  command_.worker = folder_ + "/nowhere";
  command_.unchecked = true;
  EXPECT_THAT(Submit(), HasSubstr("/nowhere"));
}

TEST_F(SlurmCommandsTest, AWorkerThatOnlyTheNodesHaveIsNotedAsUnchecked) {
  command_.dry_run = true;
  command_.worker = "worker-of-the-nodes";
  EXPECT_THAT(Submit(), HasSubstr(" worker-of-the-nodes "));
  EXPECT_THAT(error_, HasSubstr("note: no worker-of-the-nodes is in PATH here: neither it nor"));
}

TEST_F(SlurmCommandsTest, WithoutSlurmItSaysSo) {
  setenv("PATH", (folder_ + "/bin").c_str(), 1);
  Submit();
  EXPECT_TRUE(absl::IsFailedPrecondition(status_)) << status_;
  EXPECT_THAT(std::string(status_.message()), HasSubstr("\"sbatch\": it is not installed"));
  CancelSlurmWorkers cancel;
  cancel.jobs = {"1"};
  Print([&] { return DoCancelSlurmWorkers(cancel, environment_); });
  EXPECT_TRUE(absl::IsFailedPrecondition(status_)) << status_;
}

TEST_F(SlurmCommandsTest, WhatSlurmRefusesIsPassedOn) {
  Install("sbatch", "echo 'sbatch: error: invalid partition specified: x' >&2; exit 1");
  Submit();
  EXPECT_TRUE(absl::IsFailedPrecondition(status_)) << status_;
  EXPECT_THAT(std::string(status_.message()), HasSubstr("invalid partition specified: x"));
  Install("sbatch", "echo nonsense");
  Submit();
  EXPECT_TRUE(absl::IsInternal(status_)) << status_;
}

TEST_F(SlurmCommandsTest, AnAddressOfThisMachineIsNoted) {
  Install("sbatch", "echo 1");
  Submit();
  EXPECT_THAT(error_, Not(HasSubstr("note:")));
  line_.server.server = "127.0.0.1:7433";
  Submit();
  EXPECT_THAT(error_, HasSubstr("note: at 127.0.0.1:7433"));
}

TEST_F(SlurmCommandsTest, AJobThatThereIsNotIsNotCancelled) {
  CancelSlurmWorkers cancel;
  cancel.jobs = {"7", "8_1"};
  const auto run = [&] { return DoCancelSlurmWorkers(cancel, environment_); };
  Install("scancel", "echo 'scancel: Terminating job 7' >&2");
  EXPECT_EQ(Print(run), "7 is cancelled\n8_1 is cancelled\n");
  // Slurm's own exit status is 0 then.
  Install("scancel", "echo 'scancel: error: Kill job error on job id 7: Invalid job id' >&2");
  EXPECT_EQ(Print(run), "");
  EXPECT_TRUE(absl::IsFailedPrecondition(status_)) << status_;
  EXPECT_THAT(std::string(status_.message()), HasSubstr("Invalid job id"));
}

TEST_F(SlurmCommandsTest, StatusIsATable) {
  Install("squeue", "echo '7_0|RUNNING|low|n1|3|None|'; echo '7_1|PENDING|low||0|Priority|'");
  const std::string table =
      Print([&] { return DoShowSlurmWorkers(ShowSlurmWorkers(), environment_); });
  ASSERT_TRUE(status_.ok()) << status_;
  EXPECT_THAT(table, HasSubstr("7_0"));
  EXPECT_THAT(table, HasSubstr("Priority"));
  Install("squeue", "true");
  EXPECT_THAT(Print([&] { return DoShowSlurmWorkers(ShowSlurmWorkers(), environment_); }),
              HasSubstr("no workers"));
}

}  // namespace
}  // namespace plumbline::client
