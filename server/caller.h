#ifndef PLUMBLINE_SERVER_CALLER_H_
#define PLUMBLINE_SERVER_CALLER_H_

#include <memory>
#include <string>

namespace plumbline::server {

// Who makes a call, and which: what the audit log says about a change.
struct Caller {
  std::string principal;       // Empty without authentication.
  std::string role;            // Likewise.
  std::string method;          // E.g. "plumbline.v1.JobService/CancelJob".
  bool authenticated = false;  // Else whoever it is may everything.
  // Of a stream: it counts as open until the last copy is gone.
  std::shared_ptr<const void> slot = nullptr;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_CALLER_H_
