#ifndef PLUMBLINE_CLIENT_SUGGESTION_H_
#define PLUMBLINE_CLIENT_SUGGESTION_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plumbline::client {

// What `written`, the value of `flag`, may have meant, e.g. `did you mean "tiny"?`, from the
// product's own names: layouts, faults, implementations, nodes and groups. Empty if every word is
// known or none is near.
std::string SuggestionFor(absl::string_view flag, absl::string_view written);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SUGGESTION_H_
