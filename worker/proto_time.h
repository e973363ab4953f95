#ifndef PLUMBLINE_WORKER_PROTO_TIME_H_
#define PLUMBLINE_WORKER_PROTO_TIME_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"

namespace plumbline::worker {

// Between Abseil's times and those of messages, to the nanosecond, rounding down.

inline google::protobuf::Timestamp ToTimestamp(absl::Time time) {
  google::protobuf::Timestamp timestamp;
  const int64_t seconds = absl::ToUnixSeconds(time);
  timestamp.set_seconds(seconds);
  timestamp.set_nanos(
      static_cast<int32_t>(absl::ToInt64Nanoseconds(time - absl::FromUnixSeconds(seconds))));
  return timestamp;
}

inline google::protobuf::Duration ToDuration(absl::Duration duration) {
  google::protobuf::Duration result;
  result.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  result.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(duration)));
  return result;
}

inline absl::Duration FromDuration(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) + absl::Nanoseconds(duration.nanos());
}

}  // namespace plumbline::worker

#endif  // PLUMBLINE_WORKER_PROTO_TIME_H_
