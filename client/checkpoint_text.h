#ifndef PLUMBLINE_CLIENT_CHECKPOINT_TEXT_H_
#define PLUMBLINE_CLIENT_CHECKPOINT_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/checkpoint.pb.h"
#include "proto/plumbline/v1/comparison.pb.h"

namespace plumbline::client {

// What was found, the files, and every finding; tensors are in the JSON.
std::string CheckpointText(const v1::CheckpointReport& report, const Style& style);

// One table: captures, then controls.
std::string SelftestText(const v1::SelftestReport& report, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_CHECKPOINT_TEXT_H_
