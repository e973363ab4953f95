#include "client/environment.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace plumbline::client {
namespace {

constexpr int kReportColumns = 100;
constexpr int kLeastColumns = 20;

absl::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? absl::string_view() : absl::string_view(value);
}

// The first of the three that is set decides, as in POSIX.
bool LocaleHasUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string locale = absl::AsciiStrToLower(Variable(name));
    if (!locale.empty()) {
      return absl::StrContains(locale, "utf-8") || absl::StrContains(locale, "utf8");
    }
  }
  return false;
}

Style StyleOf(std::FILE* file) {
  Style style;
  style.columns = kReportColumns;
  if (isatty(fileno(file)) == 0) return style;
  style.color = Variable("NO_COLOR").empty() && Variable("TERM") != "dumb";
  style.unicode = LocaleHasUtf8();
  winsize size = {};
  if (ioctl(fileno(file), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    style.columns = std::clamp<int>(size.ws_col, kLeastColumns, kReportColumns);
  }
  return style;
}

// Standard output for us alone; as it is where descriptors have run out or it is closed.
std::FILE* TakeStandardOutput() {
  const int descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (descriptor < 0) return stdout;
  std::FILE* const taken = fdopen(descriptor, "w");
  if (taken == nullptr || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return stdout;
  return taken;
}

}  // namespace

Output ProcessOutput() {
  Output output;
  output.out = TakeStandardOutput();
  output.out_style = StyleOf(output.out);
  output.out_is_terminal = isatty(fileno(output.out)) != 0;
  output.error_style = StyleOf(stderr);
  output.error_is_terminal = isatty(fileno(stderr)) != 0;
  return output;
}

}  // namespace plumbline::client
