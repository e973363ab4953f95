#ifndef PLUMBLINE_COMMON_CHOSEN_NAME_H_
#define PLUMBLINE_COMMON_CHOSEN_NAME_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

// Names and remarks that people choose and others read in lists, logs and reports: what is shown
// must be what is there. One rule for all of them; some, such as labels, allow less.

namespace plumbline {

// Whether `text` is UTF-8 of one line, each character of which is seen where it stands: no control
// or format characters (those that turn the direction of writing among them), no invisible ones, no
// space but U+0020, nothing of the private use areas. By the general categories and the property
// Default_Ignorable_Code_Point of Unicode 15.
bool IsPlainText(absl::string_view text);

// INVALID_ARGUMENT naming `field` and what is accepted unless `name` is plain text of 1 to
// `max_bytes` bytes that neither begins nor ends with a space.
absl::Status CheckChosenName(absl::string_view name, absl::string_view field, size_t max_bytes);

// The same of a remark, which may be empty.
absl::Status CheckRemark(absl::string_view remark, absl::string_view field, size_t max_bytes);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_CHOSEN_NAME_H_
