#ifndef PLUMBLINE_CLIENT_ENVIRONMENT_H_
#define PLUMBLINE_CLIENT_ENVIRONMENT_H_

#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/connector.h"
#include "client/interrupt.h"
#include "client/style.h"
#include "common/clock.h"

namespace plumbline::client {

// Where a command writes to. Files are not owned.
struct Output {
  std::FILE* out = stdout;
  std::FILE* error = stderr;
  Style out_style;
  Style error_style;
  bool out_is_terminal = false;
  bool error_is_terminal = false;  // There is a live line on it then.

  void Print(absl::string_view text) const {
    std::fwrite(text.data(), 1, text.size(), out);
    std::fflush(out);
  }
  // Whether `out` took all that was printed, which a full disk does not.
  bool PrintedAll() const { return std::fflush(out) == 0 && std::ferror(out) == 0; }
  void PrintError(absl::string_view text) const {
    std::fwrite(text.data(), 1, text.size(), error);
    std::fflush(error);
  }
};

// Everything outside that a command touches. Pointers are not owned.
struct Environment {
  Output output;
  Clock* clock = nullptr;
  Interrupt* interrupt = nullptr;
  // Finds the coordinator of this user's command line, and becomes it where there is none.
  // `needs_worker`: the command waits for a job, so that there must be a worker too.
  std::function<absl::StatusOr<std::unique_ptr<Connector>>(bool needs_worker)> embedded;
};

// Standard output and error as they are, and from now on nothing else writes to standard output:
// file descriptor 1, which plug-ins and libraries in this process print to, is standard error, so
// that what a command prints can be piped and parsed. Once in a process; the file lives as long.
// Colours on a terminal unless NO_COLOR is set, characters beyond ASCII where the locale has UTF-8,
// the terminal's width up to 100 columns.
Output ProcessOutput();

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_ENVIRONMENT_H_
