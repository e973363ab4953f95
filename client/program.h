#ifndef PLUMBLINE_CLIENT_PROGRAM_H_
#define PLUMBLINE_CLIENT_PROGRAM_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plumbline::client {

struct ProgramResult {
  int exit_status = 0;  // 128 and the signal's number where one ended it, as shells say it.
  std::string out;
  std::string error;
};

// Runs a program of $PATH, or of a path, with these arguments, which no shell ever reads, and waits
// for its end. It has no input. Blocks; Ctrl-C reaches the program too, which ends the wait.
// NOT_FOUND if there is no such program; RESOURCE_EXHAUSTED where it writes more than 16 MiB.
absl::StatusOr<ProgramResult> RunProgram(const std::vector<std::string>& command);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_PROGRAM_H_
