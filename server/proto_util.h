#ifndef PLUMBLINE_SERVER_PROTO_UTIL_H_
#define PLUMBLINE_SERVER_PROTO_UTIL_H_

#include <string>

#include "absl/time/time.h"

namespace google::protobuf {
class Duration;
class Message;
class Timestamp;
}  // namespace google::protobuf

namespace plumbline::server {

google::protobuf::Timestamp ToTimestamp(absl::Time time);
absl::Time FromTimestamp(const google::protobuf::Timestamp& timestamp);

google::protobuf::Duration ToDuration(absl::Duration duration);
absl::Duration FromDuration(const google::protobuf::Duration& duration);

// The same bytes for equal messages within one process, maps included.
std::string DeterministicBytes(const google::protobuf::Message& message);

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_PROTO_UTIL_H_
