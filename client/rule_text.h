#ifndef PLUMBLINE_CLIENT_RULE_TEXT_H_
#define PLUMBLINE_CLIENT_RULE_TEXT_H_

#include <string>

#include "client/style.h"
#include "proto/plumbline/v1/full_model.pb.h"

namespace plumbline::client {

// A rule for a person: what it is for, its providers, how each fared held out at the rule's factor
// and at the one before, and every bound with the largest error that it comes from. Of two rules:
// both heads, then the bounds side by side in the report's order.
std::string RuleReportText(const v1::RuleReport& report, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_RULE_TEXT_H_
