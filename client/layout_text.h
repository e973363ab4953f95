#ifndef PLUMBLINE_CLIENT_LAYOUT_TEXT_H_
#define PLUMBLINE_CLIENT_LAYOUT_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/layout.pb.h"

namespace plumbline::client {

// What a person writes after --layout: a name, or TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES with
// KEYFRAMES `none`, `first`, `last` or `first+last`. Whether the service knows the name and accepts
// the sizes is for the service to say. INVALID_ARGUMENT, with a violation of `flag`, for a text of
// neither form.
absl::StatusOr<v1::Layout> ParseLayout(absl::string_view flag, absl::string_view text);

// The layout's name, or its sizes in the form above.
std::string LayoutText(const v1::Layout& layout);

// Always the sizes.
std::string LayoutSizes(const v1::Layout& layout);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_LAYOUT_TEXT_H_
