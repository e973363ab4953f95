#ifndef PLUMBLINE_SERVER_CALLER_H_
#define PLUMBLINE_SERVER_CALLER_H_

#include <memory>
#include <string>

#include "absl/status/status.h"

namespace plumbline::server {

// A stream that is open, as the gate sees it: counted until the last reference is gone.
class OpenStream {
 public:
  virtual ~OpenStream() = default;
  // UNAUTHENTICATED once whoever opened it may call no more. Any thread.
  virtual absl::Status MayGoOn() const = 0;
};

// Who makes a call, and which: what the audit log says about a change.
struct Caller {
  std::string principal;       // Empty without authentication.
  std::string role;            // Likewise.
  std::string method;          // E.g. "plumbline.v1.JobService/CancelJob".
  bool authenticated = false;  // Else whoever it is may everything.
  // What it is known by, for Authenticator::Recheck.
  std::string credential = {};
  // Of a stream, with authentication. Whoever serves it must let go of every copy before gRPC is
  // done with the call, in OnDone() at the latest.
  std::shared_ptr<const OpenStream> stream = nullptr;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_CALLER_H_
