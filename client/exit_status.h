#ifndef PLUMBLINE_CLIENT_EXIT_STATUS_H_
#define PLUMBLINE_CLIENT_EXIT_STATUS_H_

#include "absl/status/status.h"
#include "proto/plumbline/v1/drift.pb.h"

namespace plumbline::client {

// What the program ends with. Scripts depend on the numbers.
enum ExitStatus {
  kExitPassed = 0,         // the gate passed, or nothing was judged
  kExitGateFailed = 1,     // the gate failed
  kExitBadRequest = 2,     // what was asked for is wrong; asking again does not help
  kExitServiceFailed = 3,  // the service could not do it
  kExitInterrupted = 130,  // Ctrl-C, as shells report it
};

// kExitBadRequest where the request was to blame, else kExitServiceFailed; kExitPassed for OK.
ExitStatus ExitStatusOf(const absl::Status& status);

// PARTIAL counts as passed: what could be measured passed.
ExitStatus ExitStatusOf(const v1::Verdict& verdict);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_EXIT_STATUS_H_
