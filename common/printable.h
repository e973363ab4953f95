#ifndef PLUMBLINE_COMMON_PRINTABLE_H_
#define PLUMBLINE_COMMON_PRINTABLE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plumbline {

// `untrusted` with every byte that is no printable ASCII character written as \xNN: for a line of
// text, or a string of the API, which must be UTF-8.
std::string Printable(absl::string_view untrusted);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_PRINTABLE_H_
