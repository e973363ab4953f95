#ifndef PLUMBLINE_COMMON_COMMAND_REFERENCE_H_
#define PLUMBLINE_COMMON_COMMAND_REFERENCE_H_

#include <string>

#include "CLI/CLI.hpp"

namespace plumbline {

// What `app` takes, as JSON: manuals and completions are made of it (docs/install.md). An object of
//   name, description, footer: text;
//   options: of each, names ("--layout"; of a positional argument its one name, e.g. "JOB"),
//     description, value (what its value is called; empty for a flag), choices (all that its value
//     may be; empty: anything), environment (a variable that stands in for it), default, and
//     positional, required, repeated;
//   commands: objects of the same kind, which also take the options of those above them.
// Options of a group are the command's own.
std::string CommandReference(const CLI::App& app);

// Adds --help-json, at which parsing `app` throws CLI::CallForVersion with CommandReference's text,
// as --version does with the version. `app` must outlive what it parses.
void AddReferenceFlag(CLI::App* app);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_COMMAND_REFERENCE_H_
