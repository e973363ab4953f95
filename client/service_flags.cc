#include "client/service_flags.h"

#include <CLI/CLI.hpp>

#include "client/shared_flags.h"
#include "common/command_errors.h"

namespace plumbline::client {

void AddJobs(CommandTree* tree) {
  CLI::App* group =
      tree->AddGroup("jobs", "Look at jobs, which are what was submitted, and steer them");
  CLI::App* command = nullptr;

  auto* list = tree->Add<ListJobs>(
      group, "list", "List jobs, newest first",
      {"plumbline jobs list --state=queued,running --label=team=kernels"}, &command);
  command->add_option("--kind", list->kinds, "E.g. block-replay,comparison")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--state", list->states, "queued,running,succeeded,failed,cancelled")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddRepeated(command, "--label", &list->labels, "K=V that jobs must carry; repeatable");
  command->add_option("--limit", list->limit, "Jobs at most; default 50")
      ->transform(WholeNumber(1));

  auto* get = tree->Add<GetJob>(group, "get", "Show one job with its tasks",
                                {"plumbline jobs get JOB --format=json"}, &command);
  command->add_option("JOB", get->job, "Name of the job")->required();
  AddFormat(command, &get->format);

  auto* watch = tree->Add<WatchJobCommand>(
      group, "watch",
      "Print a job's events until it ends, pictures as JSON alone; exit status by its verdict",
      {"plumbline jobs watch JOB"}, &command);
  command->add_option("JOB", watch->job, "Name of the job")->required();
  command->add_option("--after", watch->after, "Only events after this sequence number")
      ->transform(WholeNumber(0, INT64_MAX));
  AddFormat(command, &watch->format);

  auto* cancel = tree->Add<CancelJob>(group, "cancel", "Cancel a job",
                                      {"plumbline jobs cancel JOB --reason=obsolete"}, &command);
  command->add_option("JOB", cancel->job, "Name of the job")->required();
  command->add_option("--reason", cancel->reason, "For a person; kept with the job");

  auto* compare = tree->Add<CompareJobs>(group, "compare", "Two jobs' reports side by side",
                                         {"plumbline jobs compare JOB JOB"}, &command);
  command->add_option("A", compare->a, "Name of a job")->required();
  command->add_option("B", compare->b, "Name of the job to compare with")->required();
  AddFormat(command, &compare->format);

  auto* remove = tree->Add<DeleteJobs>(group, "delete",
                                       "Delete finished jobs with their events, reports and files",
                                       {"plumbline jobs delete JOB JOB"}, &command);
  command->add_option("JOB", remove->jobs, "Names of jobs")->required();
}

void AddReport(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<ShowReport>(
      tree->root(), "report", "Print a job's report; exit status by its verdict",
      {"plumbline report JOB --format=json",
       "plumbline report JOB --bundle=evidence && plumbline verify evidence"},
      &command);
  command->add_option("JOB", flags->job, "Name of the job")->required();
  AddFormat(command, &flags->format);
  AddBundle(command, &flags->bundle);
}

void AddWorkers(CommandTree* tree) {
  CLI::App* group = tree->AddGroup("workers", "Look at workers and drain them");
  CLI::App* command = nullptr;
  tree->Add<ListWorkers>(group, "list", "List workers", {"plumbline workers list"}, &command);
  auto* drain =
      tree->Add<DrainWorker>(group, "drain", "Let a worker finish or hand back its task, and end",
                             {"plumbline workers drain WORKER --reason=maintenance"}, &command);
  command->add_option("WORKER", drain->worker, "Name of the worker")->required();
  command->add_option("--reason", drain->reason, "For a person");
}

void AddRuns(CommandTree* tree) {
  CLI::App* group =
      tree->AddGroup("runs", "Look at runs, which are the saved steps of generations, a seed each");
  CLI::App* command = nullptr;
  auto* list = tree->Add<ListRuns>(group, "list", "List runs, last used first",
                                   {"plumbline runs list --job=JOB"}, &command);
  command->add_option("--job", list->job, "Only runs that this job needs or made");
  command->add_option("--limit", list->limit, "Runs at most; default 50")
      ->transform(WholeNumber(1));
  const auto add_run = [&command](std::string* run) {
    command->add_option("RUN", *run, "Name of the run, or its first 8 characters or more")
        ->required();
  };
  auto* show = tree->Add<ShowRun>(group, "show", "One run with its steps",
                                  {"plumbline runs show 0123abcd"}, &command);
  add_run(&show->run);
  AddFormat(command, &show->format);
  auto* verify = tree->Add<VerifyRun>(
      group, "verify", "Read every saved byte and check its digest; exit status 1 if one fails",
      {"plumbline runs verify 0123abcd"}, &command);
  add_run(&verify->run);
  auto* compare = tree->Add<CompareRuns>(
      group, "compare", "Two runs' steps, byte for byte; exit status 1 if they differ",
      {"plumbline runs compare 0123abcd 4567cdef --media"}, &command);
  command->add_option("A", compare->a, "Name of a run")->required();
  command->add_option("B", compare->b, "Name of the run to compare with")->required();
  command->add_flag("--media", compare->media,
                    "Also the quality of what the first was decoded to against the second");
  auto* adopt =
      tree->Add<AdoptRun>(group, "adopt", "Carry a run on that was recorded under another identity",
                          {"plumbline runs adopt 0123abcd --from=4567cdef"}, &command);
  add_run(&adopt->run);
  command->add_option("--from", adopt->from, "Run identity that the steps are recorded under")
      ->required();
  auto* remove = tree->Add<DeleteRuns>(group, "delete", "Delete runs with their steps",
                                       {"plumbline runs delete 0123abcd"}, &command);
  command->add_option("RUN", remove->runs, "Names of runs")->required();
  tree->Add<BackupRuns>(group, "backup", "Make a consistent copy of the server's store",
                        {"plumbline runs backup --server=HOST:PORT"}, &command);
}

void AddFaults(CommandTree* tree) {
  CLI::App* command = nullptr;
  auto* flags = tree->Add<ListFaults>(tree->root(), "faults",
                                      "List negative controls: NAME, tab, place, tab, sentence",
                                      {"plumbline faults --job=block-replay"}, &command);
  command->add_option("--job", flags->job_kind, "Only those of this kind of job");
}

}  // namespace plumbline::client
