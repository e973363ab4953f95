#ifndef PLUMBLINE_CLIENT_FACTS_H_
#define PLUMBLINE_CLIENT_FACTS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/style.h"

// The lines of a report's summary.

namespace plumbline::client {

// "  LABEL   text", wrapped to style.columns.
std::string Fact(absl::string_view label, absl::string_view text, const Style& style);

// Facts of one line, those that are empty left out.
std::string JoinFacts(std::vector<std::string> facts, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_FACTS_H_
