#ifndef PLUMBLINE_CLIENT_DECODE_TEXT_H_
#define PLUMBLINE_CLIENT_DECODE_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// What was decoded, and from what.
std::string DecodeText(const v1::TaskReport& task, const Style& style);

// "22 frames of 128 x 96, 4,000 samples a channel; 2 units, 1 decoded before": one line.
std::string DecodedLine(const v1::DecodeReport& report);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_DECODE_TEXT_H_
