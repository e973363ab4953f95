#ifndef PLUMBLINE_COMMON_NEAREST_WORD_H_
#define PLUMBLINE_COMMON_NEAREST_WORD_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plumbline {

// The least number of characters to insert, delete, replace or swap with their neighbour that
// makes `b` of `a`.
int EditDistance(absl::string_view a, absl::string_view b);

// The accepted word that `written` most likely was meant to be; empty if none is near.
std::string NearestWord(absl::string_view written, absl::Span<const absl::string_view> accepted);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_NEAREST_WORD_H_
