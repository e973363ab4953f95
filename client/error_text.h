#ifndef PLUMBLINE_CLIENT_ERROR_TEXT_H_
#define PLUMBLINE_CLIENT_ERROR_TEXT_H_

#include <string>

#include "absl/status/status.h"
#include "client/flag_names.h"
#include "client/style.h"

namespace plumbline::client {

// An error for a person: code and message, then a line for each field that cannot be accepted, with
// the flag that set it, the values that are accepted, and what may have been meant.
std::string ErrorText(const absl::Status& status, const FlagNames& flags, const Style& style);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_ERROR_TEXT_H_
