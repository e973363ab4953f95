#ifndef PLUMBLINE_CLIENT_BLOCK_REPLAY_TEXT_H_
#define PLUMBLINE_CLIENT_BLOCK_REPLAY_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// The report of one layout's replay for a person, within 100 columns: what ran; nodes, gradients
// and leaves in execution order with their drift and error, and under each that fails its gates
// what was measured and what is allowed; then invariance, parity and accuracy summed up apart;
// firsts, times and the layout's verdict. `task` holds a block replay.
std::string BlockReplayText(const v1::TaskReport& task, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_BLOCK_REPLAY_TEXT_H_
