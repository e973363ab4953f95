#ifndef PLUMBLINE_CLIENT_COMMANDS_H_
#define PLUMBLINE_CLIENT_COMMANDS_H_

#include "client/command_line.h"
#include "client/environment.h"

namespace plumbline::client {

// Runs one command and returns the program's exit status. Errors are printed.
int RunCommand(const CommandLine& line, const Environment& environment);

// The whole program: parses, then runs the command or prints the help that was asked for. What
// cannot be printed is a failure.
int RunCommandLine(int argc, const char* const* argv, const Environment& environment);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_COMMANDS_H_
