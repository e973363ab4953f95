#ifndef PLUMBLINE_COMMON_GRPC_LOG_H_
#define PLUMBLINE_COMMON_GRPC_LOG_H_

#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "common/logging.h"

namespace plumbline {

// From now on, what gRPC says of itself goes through Log, in the format that Log has, instead of to
// standard error. GRPC_VERBOSITY says how much it says, as ever. Once, before gRPC is used.
void RouteGrpcLog();

// gRPC's lines on their way to Log: "gRPC" with what it said as a field. Whoever connects can make
// gRPC say something, so that a line of one place in its code is logged five times a minute at
// most, and the next one tells how many were left out. Any thread may call.
class GrpcLog {
 public:
  explicit GrpcLog(Clock* clock) : clock_(clock) {}  // Outlives it.

  // `file`: the path of gRPC's source; `level`: how bad gRPC thinks it is. What a peer did while it
  // shook hands is information, whatever gRPC thinks, and nothing is worse than a warning: a server
  // that others can make write errors has none worth reading.
  void Take(absl::string_view file, int line, LogLevel level, absl::string_view message);

 private:
  struct Place {
    absl::Time since = absl::InfinitePast();  // Of the minute that is counted.
    int lines = 0;
    int left_out = 0;
  };

  Clock* const clock_;
  absl::Mutex mutex_;
  // By gRPC's file and line: no more than it has.
  std::map<std::pair<std::string, int>, Place> places_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_GRPC_LOG_H_
