#ifndef PLUMBLINE_SERVER_CALLER_H_
#define PLUMBLINE_SERVER_CALLER_H_

#include <string>

namespace plumbline::server {

// Who makes a call, and which: what the audit log says about a change.
struct Caller {
  std::string principal;  // Empty without authentication.
  std::string role;       // Likewise.
  std::string method;     // E.g. "plumbline.v1.JobService/CancelJob".
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_CALLER_H_
