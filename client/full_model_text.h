#ifndef PLUMBLINE_CLIENT_FULL_MODEL_TEXT_H_
#define PLUMBLINE_CLIENT_FULL_MODEL_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline::client {

// The full model of one layout for a person: the rule, the tensors that fail and those that are
// nearest to it, what ran, and the ablation. All figures are in the JSON.
std::string FullModelText(const v1::TaskReport& task, const Style& style);

// A bundle's recomputed verdict beside the one it states, and its files.
std::string BundleText(const v1::VerdictReport& report, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_FULL_MODEL_TEXT_H_
