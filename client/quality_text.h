#ifndef PLUMBLINE_CLIENT_QUALITY_TEXT_H_
#define PLUMBLINE_CLIENT_QUALITY_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// How far one video and its sound are from another: the figures against their bounds, the frames
// that stand out, the channels.
std::string MediaText(const v1::TaskReport& task, const Style& style);

// The same of one seed of a generation, in one table with the provider's own spread and repeat.
std::string GenerationComparisonText(const v1::TaskReport& task, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_QUALITY_TEXT_H_
