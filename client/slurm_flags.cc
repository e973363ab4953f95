#include "client/slurm_flags.h"

#include <CLI/CLI.hpp>

#include "common/command_errors.h"

namespace plumbline::client {
namespace {

constexpr char kSubmitFooter[] =
    "Example:\n"
    "  plumbline cluster slurm submit --server=head:7433 --workers=8 --partition=preemptable \\\n"
    "      --time=4:00:00 -- --checkpoint-root=/data/checkpoints "
    "--token-file=/secure/worker.token\n"
    "\n"
    "Needs sbatch, so a machine from which jobs are submitted. No option of any site is built in:\n"
    "what is not given here is for the cluster's defaults to say.";

void AddSubmitSlurmFlags(CLI::App* command, SubmitSlurmWorkers* flags) {
  command->footer(kSubmitFooter);
  command->add_option("--workers", flags->workers, "How many, each on one GPU")
      ->type_name("N")
      ->transform(WholeNumber())
      ->required();
  command->add_option("--partition", flags->partition, "sbatch --partition");
  command->add_option("--account", flags->account, "sbatch --account");
  command->add_option("--qos", flags->qos, "sbatch --qos");
  command->add_option("--time", flags->time, "sbatch --time: a worker is queued again at its end");
  command->add_option("--gres", flags->gres,
                      "sbatch --gres; default gpu:1, unless --sbatch asks for GPUs");
  command
      ->add_option("--sbatch", flags->sbatch,
                   "Any other option of sbatch's, with its value: --sbatch=--constraint=h200;\n"
                   "repeatable")
      ->allow_extra_args(false);
  command->add_option("--name", flags->name, "sbatch --job-name")->capture_default_str();
  command
      ->add_option("--notice", flags->notice_seconds,
                   "Seconds before the time limit at which a worker is told to end; longer\n"
                   "than its --grace")
      ->transform(WholeNumber())
      ->capture_default_str();
  command->add_option("--worker", flags->worker,
                      "plumbline-worker as the nodes find it; default the one beside this program");
  command->add_option("--state-root", flags->state_root,
                      "Folder of the nodes' that each worker makes a folder of its own in;\n"
                      "default XDG_STATE_HOME/plumbline/slurm, else\n"
                      "~/.local/state/plumbline/slurm");
  command->add_option("--log-dir", flags->log_dir,
                      "Folder for the workers' output; default STATE_ROOT/logs");
  command->add_flag("--dry-run", flags->dry_run,
                    "Print the command and the job script, and submit nothing");
  command->add_flag("--unchecked", flags->unchecked,
                    "Do not check first whether the coordinator answers, and whether --worker\n"
                    "is there and takes its flags");
  command->add_option("FLAG", flags->worker_flags,
                      "After --: flags of plumbline-worker, given to each");
}

void AddShowSlurmFlags(CLI::App* command, ShowSlurmWorkers* flags) {
  command->add_option("JOB", flags->jobs, "As submit printed them; default all of yours");
  command->add_option("--name", flags->name, "Without JOB: of jobs of this name")
      ->capture_default_str();
}

void AddCancelSlurmFlags(CLI::App* command, CancelSlurmWorkers* flags) {
  command
      ->add_option("JOB", flags->jobs,
                   "As submit printed it, e.g. 123, or one worker of it, 123_0; not queued again")
      ->required();
}

}  // namespace

void AddCluster(CommandTree* tree) {
  CLI::App* cluster = tree->AddGroup("cluster", "Run workers under a cluster's own scheduler");
  CLI::App* group = CommandTree::AddGroup(cluster, "slurm", "Workers as jobs of Slurm");
  CLI::App* command = nullptr;
  auto* submit = tree->Add<SubmitSlurmWorkers>(
      group, "submit", "Submit workers as an array of jobs that outlive preemptions", {}, &command);
  AddSubmitSlurmFlags(command, submit);
  auto* status = tree->Add<ShowSlurmWorkers>(group, "status", "Workers that are queued or run",
                                             {"plumbline cluster slurm status"}, &command);
  AddShowSlurmFlags(command, status);
  auto* cancel = tree->Add<CancelSlurmWorkers>(
      group, "cancel", "End workers; what they did is kept by the coordinator",
      {"plumbline cluster slurm cancel 123 124_0"}, &command);
  AddCancelSlurmFlags(command, cancel);
}

}  // namespace plumbline::client
