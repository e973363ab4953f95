#include "common/grpc_log.h"

#include <grpc/support/log.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace plumbline {
namespace {

constexpr int kLinesAMinute = 5;
constexpr absl::Duration kMinute = absl::Minutes(1);

absl::string_view BaseName(absl::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == absl::string_view::npos ? path : path.substr(slash + 1);
}

// Where gRPC talks about a peer that did not get as far as a call.
bool IsOfHandshake(absl::string_view file) {
  return absl::StartsWith(file, "ssl_transport_security") || absl::StrContains(file, "handshake") ||
         absl::StartsWith(file, "chttp2_server");
}

LogLevel LevelOf(gpr_log_severity severity) {
  switch (severity) {
    case GPR_LOG_SEVERITY_DEBUG:
      return LogLevel::kDebug;
    case GPR_LOG_SEVERITY_INFO:
      return LogLevel::kInfo;
    case GPR_LOG_SEVERITY_ERROR:
      return LogLevel::kError;
  }
  return LogLevel::kError;
}

GrpcLog* TheGrpcLog() {
  // gRPC's threads outlive main().
  static auto* const log = new GrpcLog(SteadyClock());
  return log;
}

}  // namespace

void GrpcLog::Take(absl::string_view file, int line, LogLevel level, absl::string_view message) {
  const absl::string_view name = BaseName(file);
  int left_out = 0;
  {
    absl::MutexLock lock(&mutex_);
    Place& place = places_[{std::string(name), line}];
    const absl::Time now = clock_->Now();
    if (now - place.since >= kMinute) {
      place.since = now;
      place.lines = 0;
    }
    if (place.lines == kLinesAMinute) {
      ++place.left_out;
      return;
    }
    ++place.lines;
    left_out = std::exchange(place.left_out, 0);
  }
  const LogLevel most = IsOfHandshake(name) ? LogLevel::kInfo : LogLevel::kWarning;
  const std::string where = absl::StrCat(name, ":", line);
  if (left_out == 0) {
    Log(std::min(level, most), "gRPC", {{"text", message}, {"at", where}});
  } else {
    Log(std::min(level, most), "gRPC",
        {{"text", message}, {"at", where}, {"left_out_before", left_out}});
  }
}

void RouteGrpcLog() {
  gpr_set_log_function([](gpr_log_func_args* line) {
    TheGrpcLog()->Take(line->file, line->line, LevelOf(line->severity), line->message);
  });
}

}  // namespace plumbline
