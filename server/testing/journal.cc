#include "server/testing/journal.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/grpc_status.h"

namespace plumbline::server {

Journal::Journal(const std::string& path) : file_(path, std::ios::app) {}

void Journal::Note(absl::string_view who, absl::string_view what) {
  const std::string line = absl::StrCat(
      absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ ", SystemClock()->Now(), absl::UTCTimeZone()), who,
      ": ", what, "\n");
  absl::MutexLock lock(&mutex_);
  file_ << line << std::flush;
}

std::string Describe(absl::string_view call, const grpc::ClientContext& context,
                     const grpc::Status& status) {
  const std::string peer = context.peer();
  return absl::StrCat(call, " at ", peer.empty() ? "nobody" : peer, ": ",
                      FromGrpcStatus(status).ToString());
}

}  // namespace plumbline::server
