#ifndef PLUMBLINE_CLIENT_SWEEP_TEXT_H_
#define PLUMBLINE_CLIENT_SWEEP_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// A sweep of one layout for a person: the distribution of each leaf's error under the composition,
// and of hybrids the leaf that is worst.
std::string SweepText(const v1::TaskReport& task, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SWEEP_TEXT_H_
