#ifndef PLUMBLINE_SERVER_TESTING_LOAD_CALLS_H_
#define PLUMBLINE_SERVER_TESTING_LOAD_CALLS_H_

#include <grpcpp/grpcpp.h>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/clock.h"
#include "server/testing/acknowledged_load.h"

// How the clients and workers of acknowledged_load.h call. For these alone.

namespace plumbline::server {

// Steps of each generation.
inline constexpr int32_t kLoadSteps = 4;
inline constexpr absl::Duration kLoadRetryInterval = absl::Milliseconds(20);

inline void SetLoadDeadline(grpc::ClientContext* context) {
  context->set_deadline(absl::ToChronoTime(SystemClock()->Now() + absl::Minutes(1)));
}

// Whether it says that the coordinator is away.
inline bool IsGone(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::UNAVAILABLE ||
         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
}

// Only the first of several tries that fail alike: a coordinator that is away is asked often.
inline void NoteFailure(AcknowledgedBook* book, absl::string_view who, absl::string_view call,
                        const grpc::ClientContext& context, const grpc::Status& status, int tries) {
  if (status.ok() || (IsGone(status) && tries > 1)) return;
  book->Note(who, Describe(call, context, status));
}

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_TESTING_LOAD_CALLS_H_
