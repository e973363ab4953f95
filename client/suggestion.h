#ifndef PLUMBLINE_CLIENT_SUGGESTION_H_
#define PLUMBLINE_CLIENT_SUGGESTION_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plumbline::client {

// The least number of characters to insert, delete, replace or swap with their neighbour that
// makes `b` of `a`.
int EditDistance(absl::string_view a, absl::string_view b);

// The accepted word that `written` most likely was meant to be; empty if none is near.
std::string NearestWord(absl::string_view written, absl::Span<const absl::string_view> accepted);

// What `written`, the value of `flag`, may have meant, e.g. `did you mean "tiny"?`, from the
// product's own names: layouts, faults, implementations, nodes and groups. Empty if every word is
// known or none is near.
std::string SuggestionFor(absl::string_view flag, absl::string_view written);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_SUGGESTION_H_
