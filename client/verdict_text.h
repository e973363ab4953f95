#ifndef PLUMBLINE_CLIENT_VERDICT_TEXT_H_
#define PLUMBLINE_CLIENT_VERDICT_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// The verdict's sentence, what limits it, and `first_failure`: two lines or three.
std::string VerdictText(const v1::Verdict& verdict, const Style& style);

// Whether the fault that was put into the candidate was found where it was put; empty without one.
std::string ControlText(const v1::TaskReport& task, const Style& style);

Ink InkOf(v1::Outcome outcome);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_VERDICT_TEXT_H_
