#include "client/slurm_request.h"

#include <string>
#include <vector>

#include "common/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace plumbline::client {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

SubmitSlurmWorkers Command() {
  SubmitSlurmWorkers command;
  command.workers = 3;
  command.worker = "/opt/plumbline worker";
  command.state_root = "/scratch/me";
  command.log_dir = "/scratch/me/logs";
  return command;
}

std::string ErrorOf(const SubmitSlurmWorkers& command) {
  return std::string(SbatchCommand(command, "head:7433", "s.sbatch").status().message());
}

std::vector<std::string> WordsOf(const SubmitSlurmWorkers& command) {
  return SbatchCommand(command, "head:7433", "s.sbatch").value();
}

TEST(SlurmRequest, AnArrayOfOneGpuJobsThatAreQueuedAgain) {
  EXPECT_THAT(WordsOf(Command()),
              ElementsAre("sbatch", "--gres=gpu:1", "--parsable", "--job-name=plumbline-worker",
                          "--array=0-2", "--requeue", "--open-mode=append", "--signal=B:TERM@60",
                          "--output=/scratch/me/logs/plumbline-%A_%a.log", "s.sbatch",
                          "/opt/plumbline worker", "/scratch/me", "--server=head:7433"));
}

TEST(SlurmRequest, OptionsOfTheClusterArePassedOn) {
  SubmitSlurmWorkers command = Command();
  command.partition = "a partition";
  command.account = "a;b";
  command.qos = "$q";
  command.time = "1:00:00";
  command.sbatch = {"--constraint=h200&nvlink", "-wnode1", "--nice"};
  command.worker_flags = {"--token-file=/a b", "--label=x=\n", ""};
  const std::vector<std::string> words = WordsOf(command);
  const std::vector<std::string> first(words.begin(), words.begin() + 9);
  EXPECT_THAT(first, ElementsAre("sbatch", "--constraint=h200&nvlink", "-wnode1", "--nice",
                                 "--partition=a partition", "--account=a;b", "--qos=$q",
                                 "--time=1:00:00", "--gres=gpu:1"));
  const std::vector<std::string> last(words.end() - 4, words.end());
  EXPECT_THAT(last, ElementsAre("--server=head:7433", "--token-file=/a b", "--label=x=\n", ""));
}

TEST(SlurmRequest, WhoeverChoosesGpusChoosesThemAlone) {
  for (const char* option : {"--gpus=1", "-G1", "--gpus-per-node=h200:1", "--gres=gpu:h200:1"}) {
    SubmitSlurmWorkers command = Command();
    command.sbatch = {option};
    EXPECT_THAT(WordsOf(command), AllOf(Contains(option), Not(Contains("--gres=gpu:1"))));
  }
  SubmitSlurmWorkers command = Command();
  command.gres = "gpu:h200:1";
  EXPECT_THAT(WordsOf(command), Contains("--gres=gpu:h200:1"));
  command.gres.clear();
  command.sbatch = {"--gpu-bind=none"};
  EXPECT_THAT(WordsOf(command), Contains("--gres=gpu:1"));
}

TEST(SlurmRequest, WhatTheScriptReliesOnCannotBeChanged) {
  for (const char* option :
       {"--array=0-9", "-a1", "--arr=3", "--no-requeue", "--signal=USR1@9", "--open-mode=truncate",
        "--wrap=id", "-oout", "-Jname", "low", "", "-", "--", "a=b"}) {
    SubmitSlurmWorkers command = Command();
    command.sbatch = {option};
    EXPECT_THAT(ErrorOf(command), StartsWith("--sbatch: ")) << option;
  }
  for (const char* flag :
       {"--server=other:1", "--server", "--state-dir=/x", "--preempted-exit-status=0", "stray"}) {
    SubmitSlurmWorkers command = Command();
    command.worker_flags = {flag};
    EXPECT_THAT(ErrorOf(command), StartsWith("FLAG: ")) << flag;
  }
}

TEST(SlurmRequest, WrongValuesAreNamed) {
  SubmitSlurmWorkers command = Command();
  EXPECT_THAT(std::string(SbatchCommand(command, "", "s").status().message()),
              HasSubstr("--server"));
  for (const int workers : {0, -1, 100'001}) {
    command.workers = workers;
    EXPECT_THAT(ErrorOf(command), StartsWith("--workers: "));
  }
  command = Command();
  command.notice_seconds = 65'536;
  EXPECT_THAT(ErrorOf(command), StartsWith("--notice: "));
  command = Command();
  for (const char* name : {"", "a\nb"}) {
    command.name = name;
    EXPECT_THAT(ErrorOf(command), StartsWith("--name: "));
  }
  command = Command();
  for (const char* folder : {"/a\\b", "/a\nb"}) {
    command.log_dir = folder;
    EXPECT_THAT(ErrorOf(command), StartsWith("--log-dir: "));
  }
}

TEST(SlurmRequest, AWorkerIsNotToldToEndAtItsStart) {
  SubmitSlurmWorkers command = Command();
  for (const char* time : {"1", "1:00", "0:30", "0:01:00", "0-0:1", "0-0:0:60"}) {
    command.time = time;
    EXPECT_THAT(ErrorOf(command), StartsWith("--time: ")) << time;
  }
  // Longer, no limit, or for Slurm to judge.
  for (const char* time : {"2", "1:01", "0:01:01", "1-0", "0-1", "0", "0:0", "UNLIMITED", "blah",
                           "1:2:3:4", "-1", "1-", ""}) {
    command.time = time;
    EXPECT_EQ(ErrorOf(command), "") << time;
  }
}

TEST(SlurmRequest, AFolderOfAnyNameTakesTheOutput) {
  SubmitSlurmWorkers command = Command();
  command.log_dir = "/50%j of it";
  EXPECT_THAT(WordsOf(command), Contains("--output=/50%%j of it/plumbline-%A_%a.log"));
  EXPECT_EQ(SlurmLogPattern(command, "12"), "/50%j of it/plumbline-12_*.log");
}

TEST(SlurmRequest, WhatSbatchPrints) {
  EXPECT_EQ(ParseSbatchOutput("123\n").value(), "123");
  EXPECT_EQ(ParseSbatchOutput("123;cluster\n").value(), "123");
  for (const char* text : {"", "\n", "Submitted batch job 1", ";c", "1\n2"}) {
    EXPECT_FALSE(ParseSbatchOutput(text).ok()) << text;
  }
}

TEST(SlurmRequest, StatusAndCancel) {
  ShowSlurmWorkers show;
  EXPECT_THAT(SqueueCommand(show).value(),
              AllOf(Contains("--me"), Contains("--name=plumbline-worker")));
  show.jobs = {"12", "13_0"};
  EXPECT_THAT(SqueueCommand(show).value(),
              AllOf(Contains("--jobs=12,13_0"), Not(Contains("--me"))));
  CancelSlurmWorkers cancel;
  cancel.jobs = {"12", "13_0"};
  EXPECT_THAT(ScancelCommand(cancel).value(), ElementsAre("scancel", "--verbose", "12", "13_0"));
  for (const char* job : {"", "-u", "12_", "_1", "1_2_3", "12;id", "all", "1,2"}) {
    cancel.jobs = show.jobs = {job};
    EXPECT_FALSE(ScancelCommand(cancel).ok()) << job;
    EXPECT_FALSE(SqueueCommand(show).ok()) << job;
  }
}

TEST(SlurmRequest, WhatSqueuePrints) {
  const auto rows = ParseSqueueOutput(
      "12_0|RUNNING|low|n1|2|None|\n12_1|PENDING|low||0|Resources|\n"
      "slurm_load_jobs error\n\n");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].job, "12_0");
  EXPECT_EQ(rows[0].node, "n1");
  EXPECT_EQ(rows[0].restarts, "2");
  EXPECT_EQ(rows[0].reason, "");
  EXPECT_EQ(rows[1].node, "");
  EXPECT_EQ(rows[1].reason, "Resources");
}

TEST(SlurmRequest, TextForAShell) {
  EXPECT_EQ(ShellText({"a-b", "--x=/y:1,2@3%A", "", "a b", "it's", "$x", "a\nb"}),
            "a-b --x=/y:1,2@3%A '' 'a b' 'it'\\''s' '$x' 'a\nb'");
}

}  // namespace
}  // namespace plumbline::client
