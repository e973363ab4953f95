#ifndef PLUMBLINE_COMMON_PROTO_JSON_H_
#define PLUMBLINE_COMMON_PROTO_JSON_H_

#include <string>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/json_util.h"

namespace plumbline {

// A message's JSON; equal messages have equal bytes. Protocol Buffers' own MessageToJsonString
// writes a map's entries in an order that changes from one process, and one copy, to the next; here
// they are sorted by their keys. INVALID_ARGUMENT for a message that has no JSON, such as one with
// an Any of a type that this program does not know. Any thread may call.
absl::StatusOr<std::string> ProtoJson(const google::protobuf::Message& message,
                                      const google::protobuf::util::JsonPrintOptions& options);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_PROTO_JSON_H_
