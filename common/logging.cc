#include "common/logging.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/status.h"

namespace plumbline {
namespace {

// spdlog's sink for stdout and stderr, on the file of LogOptions.
class FileSink final : public spdlog::sinks::stdout_sink_base<spdlog::details::console_mutex> {
 public:
  explicit FileSink(std::FILE* file) : stdout_sink_base(file) {}
};

struct Destination {
  LogFormat format;
  std::shared_ptr<spdlog::logger> logger;
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::shared_ptr<const Destination> MakeDestination(const LogOptions& options) {
  auto logger = std::make_shared<spdlog::logger>("", std::make_shared<FileSink>(options.file));
  // spdlog writes the time and the level, so that they are those of the call. %v is our text.
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(
      options.format == LogFormat::kJson
          ? "{\"time\":\"%Y-%m-%dT%H:%M:%S.%eZ\",\"level\":\"%l\",%v}"
          : "%Y-%m-%dT%H:%M:%S.%eZ %l %v",
      spdlog::pattern_time_type::utc));
  logger->set_level(ToSpdlog(options.level));
  logger->flush_on(spdlog::level::trace);
  return std::make_shared<const Destination>(Destination{options.format, std::move(logger)});
}

// The destination that is in use now; a line being written keeps the one that it began with.
class Current {
 public:
  std::shared_ptr<const Destination> Get() {
    absl::MutexLock lock(&mutex_);
    return destination_;
  }
  void Set(std::shared_ptr<const Destination> destination) {
    absl::MutexLock lock(&mutex_);
    destination_ = std::move(destination);
  }

 private:
  absl::Mutex mutex_;
  std::shared_ptr<const Destination> destination_ ABSL_GUARDED_BY(mutex_) =
      MakeDestination(LogOptions());
};

Current* GetCurrent() {
  static Current* const current = new Current;
  return current;
}

std::string JsonText(absl::string_view text) {
  return nlohmann::json(std::string(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// JSON knows no NaN and no infinity: those become strings.
bool IsJsonLiteral(absl::string_view value) {
  return value == "true" || value == "false" ||
         value.find_first_not_of("0123456789+-.e") == absl::string_view::npos;
}

std::string JsonLine(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line = absl::StrCat("\"message\":", JsonText(message));
  for (const LogField& field : fields) {
    const bool literal = !field.is_text && IsJsonLiteral(field.value);
    absl::StrAppend(&line, ",", JsonText(field.key), ":",
                    literal ? field.value : JsonText(field.value));
  }
  return line;
}

// As it is if it is one plain word, else quoted with everything but printable ASCII escaped.
std::string TextValue(absl::string_view value) {
  bool plain = !value.empty();
  for (unsigned char c : value) {
    plain = plain && c > ' ' && c < 0x7f && c != '"' && c != '=' && c != '\\';
  }
  return plain ? std::string(value) : absl::StrCat("\"", absl::CHexEscape(value), "\"");
}

std::string TextLine(absl::string_view message, std::initializer_list<LogField> fields) {
  std::string line = absl::CHexEscape(message);
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", field.key, "=", TextValue(field.value));
  }
  return line;
}

}  // namespace

absl::StatusOr<LogFormat> ParseLogFormat(absl::string_view text) {
  if (text == "text") return LogFormat::kText;
  if (text == "json") return LogFormat::kJson;
  return FieldError("log-format", absl::StrCat(Quoted(text), " is unknown"), "text, json");
}

void ConfigureLogging(const LogOptions& options) { GetCurrent()->Set(MakeDestination(options)); }

void Log(LogLevel level, absl::string_view message, std::initializer_list<LogField> fields) {
  const std::shared_ptr<const Destination> destination = GetCurrent()->Get();
  if (!destination->logger->should_log(ToSpdlog(level))) return;
  const std::string line = destination->format == LogFormat::kJson ? JsonLine(message, fields)
                                                                   : TextLine(message, fields);
  destination->logger->log(ToSpdlog(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace plumbline
