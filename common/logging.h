#ifndef PLUMBLINE_COMMON_LOGGING_H_
#define PLUMBLINE_COMMON_LOGGING_H_

#include <cstdio>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

// Structured logs of the daemons: a message that never changes and fields that do. The usual fields
// are job, task, attempt and step.
//   Log(LogLevel::kInfo, "task finished", {{"task", name}, {"attempt", attempt}});

namespace plumbline {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

enum class LogFormat {
  kText,  // 2024-05-01T12:00:00.123Z info task finished task=jobs/x/tasks/0 attempt=2
  kJson,  // {"time":"2024-05-01T12:00:00.123Z","level":"info","message":"task finished",...}
};

// "text" or "json". INVALID_ARGUMENT names `text` and the two.
absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text);

// A key, which is a literal of letters and underscores, and a value.
struct LogField {
  LogField(absl::string_view key, absl::string_view value)
      : key(key), value(value), is_text(true) {}
  LogField(absl::string_view key, const char* value) : LogField(key, absl::string_view(value)) {}
  LogField(absl::string_view key, const std::string& value)
      : LogField(key, absl::string_view(value)) {}
  LogField(absl::string_view key, bool value) : key(key), value(value ? "true" : "false") {}
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
  LogField(absl::string_view key, Number value) : key(key), value(absl::StrCat(value)) {}

  absl::string_view key;
  std::string value;
  bool is_text = false;
};

struct LogOptions {
  LogFormat format = LogFormat::kText;
  LogLevel level = LogLevel::kInfo;  // Less severe lines are dropped.
  std::FILE* file = stderr;          // Not owned; must stay open.
};

// Replaces what Log does, from the default LogOptions. Any thread may call.
void ConfigureLogging(const LogOptions& options);

// Writes one line, whole, and flushes it. Whatever bytes a value holds, the line stays one line
// and, in JSON, valid. Any thread may call.
void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields = {});

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_LOGGING_H_
