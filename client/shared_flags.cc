#include "client/shared_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "common/command_errors.h"

namespace plumbline::client {

CLI::Option* AddRepeated(CLI::App* command, const char* flag, std::vector<std::string>* values,
                         const std::string& description) {
  return command->add_option(flag, *values, description)->allow_extra_args(false);
}

void AddJobFlags(CLI::App* command, JobFlags* flags) {
  command->add_option("--report", flags->report,
                      "Write the report to this file as JSON (waits for it)");
  AddRepeated(command, "--label", &flags->labels, "K=V, for people and fair share; repeatable");
  command->add_option("--priority", flags->priority, "-100 to 100, larger first; default 0")
      ->transform(WholeNumber(-100, 100));
}

void AddFormat(CLI::App* command, std::string* format) {
  *format = "text";
  command->add_option("--format", *format, "text or json")->check(CLI::IsMember({"text", "json"}));
}

void AddCheckpoint(CLI::App* command, std::string* checkpoint) {
  command
      ->add_option("--checkpoint", *checkpoint,
                   "Folder under the worker's roots, or synthetic:NAME[:SEED] with NAME\n"
                   "released, tiny or a configuration file")
      ->required();
}

void AddLayouts(CLI::App* command, const char* description, std::vector<std::string>* layouts,
                std::vector<std::string>* layout) {
  command->add_option("--layouts", *layouts, description)->delimiter(',')->allow_extra_args(false);
  AddRepeated(command, "--layout", layout, absl::StrCat(kLayoutForm, "; repeatable"));
}

void AddComposition(CLI::App* command, std::string* composition,
                    std::vector<std::string>* plugins) {
  command->add_option("--composition", *composition,
                      "What is judged, e.g. candidate+provider:attention or\n"
                      "candidate+plugin/NAME:attention; default candidate");
  AddRepeated(command, "--plugin", plugins,
              "A plug-in to load for the job: a shared object, see docs/plugin.md;\n"
              "a server must allow it; repeatable");
}

void AddCaptures(CLI::App* command, CaptureFlags* flags) {
  command->add_option("--inputs", flags->inputs, "Captured inputs: FILE or worker:PATH");
  command->add_option("--golden", flags->golden, "Captured golden: FILE or worker:PATH");
  AddRepeated(command, "--provider", &flags->providers,
              "NAME=FILE or NAME=worker:PATH, a captured provider; repeatable");
  command->add_option("--candidate", flags->candidate, "Captured candidate: FILE or worker:PATH");
}

void AddInject(CLI::App* command, std::string* inject) {
  command->add_option("--inject", *inject,
                      "Fault to put into the candidate: see `plumbline faults`");
}

void AddBundle(CLI::App* command, std::string* bundle) {
  command->add_option("--bundle", *bundle,
                      "Write report, verdict, tables, figures and rules to this new folder");
}

void AddWait(CLI::App* command, JobFlags* flags) {
  command->add_flag("--wait", flags->wait, "Wait for the report and print it");
  AddJobFlags(command, flags);
}

}  // namespace plumbline::client
