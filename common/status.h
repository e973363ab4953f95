#ifndef PLUMBLINE_COMMON_STATUS_H_
#define PLUMBLINE_COMMON_STATUS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// Helpers on absl::Status. Which field of a request was wrong, which precondition does not hold,
// and the machine-readable reason of an error travel inside the status as payloads;
// common/grpc_status.h carries them over gRPC as google.rpc.BadRequest,
// google.rpc.PreconditionFailure and google.rpc.ErrorInfo.

namespace plumbline {

// One field of a request, a file or a flag that cannot be accepted.
struct FieldViolation {
  std::string field;        // Path as the caller wrote it, e.g. "block_replay.layouts[1]".
  std::string description;  // What is wrong, and the accepted values where they can be listed.

  friend bool operator==(const FieldViolation& a, const FieldViolation& b) {
    return a.field == b.field && a.description == b.description;
  }
};

// One thing that the state of the system lacked, with FAILED_PRECONDITION.
struct Precondition {
  std::string type;         // Class, e.g. "IDENTITY".
  std::string subject;      // What it is about, e.g. "runs/RUN: device_class".
  std::string description;  // What differs or is missing, and how to put it right.

  friend bool operator==(const Precondition& a, const Precondition& b) {
    return a.type == b.type && a.subject == b.subject && a.description == b.description;
  }
};

// Reason of ABORTED where a write carried a fencing token that is no longer the newest.
inline constexpr char kLeaseLostReason[] = "LEASE_LOST";

// INVALID_ARGUMENT with one violation. The message reads "FIELD: DESCRIPTION; accepted: ACCEPTED";
// `accepted` may be empty where the description says it all, and is left out where the description
// has an "accepted" of its own.
absl::Status FieldError(absl::string_view field, absl::string_view description,
                        absl::string_view accepted = "");

// INVALID_ARGUMENT with every violation of a request at once; OK if there are none.
absl::Status FieldErrors(const std::vector<FieldViolation>& violations);

// `status` with these violations in place of its own; code and message stay. OK stays OK.
absl::Status WithFieldViolations(absl::Status status,
                                 const std::vector<FieldViolation>& violations);

// Violations that `status` carries, in order; empty for any other status.
std::vector<FieldViolation> GetFieldViolations(const absl::Status& status);

// `status` with these preconditions that do not hold; OK stays OK.
absl::Status WithPreconditions(absl::Status status, const std::vector<Precondition>& preconditions);

// Preconditions that `status` carries, in order; empty for any other status.
std::vector<Precondition> GetPreconditions(const absl::Status& status);

// `status` with a reason for programs: an UPPER_SNAKE_CASE word. OK stays OK.
absl::Status WithReason(absl::Status status, absl::string_view reason);

// The reason that `status` carries, or "".
std::string GetReason(const absl::Status& status);

// `status`, RESOURCE_EXHAUSTED for want of memory, with the bytes that would have been enough. OK
// stays OK.
absl::Status WithNeededMemory(absl::Status status, int64_t bytes);

// The bytes that `status` says would have been enough; 0 if it says nothing of memory.
int64_t GetNeededMemory(const absl::Status& status);

// `status` with "WHERE: " before its message; code and payloads stay. OK stays OK.
absl::Status AnnotateStatus(const absl::Status& status, absl::string_view where);

// `untrusted` as it may stand in a message: in double quotes, whatever is not printable ASCII
// escaped, cut after 100 bytes.
std::string Quoted(absl::string_view untrusted);

}  // namespace plumbline

// Returns from the current function if `expression`, an absl::Status, is an error.
#define PLUMBLINE_RETURN_IF_ERROR(expression)                                   \
  do {                                                                          \
    if (absl::Status plumbline_status = (expression); !plumbline_status.ok()) { \
      return plumbline_status;                                                  \
    }                                                                           \
  } while (false)

// Assigns the value of `expression`, an absl::StatusOr<T>, to `declaration`, or returns its error.
//   PLUMBLINE_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kLimit));
#define PLUMBLINE_ASSIGN_OR_RETURN(declaration, expression)                                \
  PLUMBLINE_ASSIGN_OR_RETURN_IMPL(PLUMBLINE_STATUS_CONCAT(plumbline_status_or_, __LINE__), \
                                  declaration, expression)

#define PLUMBLINE_ASSIGN_OR_RETURN_IMPL(temporary, declaration, expression) \
  auto temporary = (expression);                                            \
  if (!temporary.ok()) return std::move(temporary).status();                \
  declaration = *std::move(temporary)

#define PLUMBLINE_STATUS_CONCAT(a, b) PLUMBLINE_STATUS_CONCAT_IMPL(a, b)
#define PLUMBLINE_STATUS_CONCAT_IMPL(a, b) a##b

#endif  // PLUMBLINE_COMMON_STATUS_H_
