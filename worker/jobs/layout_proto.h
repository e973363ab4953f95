#ifndef PLUMBLINE_WORKER_JOBS_LAYOUT_PROTO_H_
#define PLUMBLINE_WORKER_JOBS_LAYOUT_PROTO_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "proto/plumbline/v1/layout.pb.h"
#include "worker/h3/layout.h"

namespace plumbline::jobs {

// The shape that a request names or spells out. INVALID_ARGUMENT names `field`, the part that is
// wrong and what is accepted.
absl::StatusOr<h3::LayoutSpec> LayoutFromProto(const v1::Layout& layout, absl::string_view field);

// With every size set, and the name of a shape that has one.
v1::Layout LayoutToProto(const h3::LayoutSpec& spec);

// What people call it: its name, or its sizes as in --layout.
std::string LayoutLabel(const h3::LayoutSpec& spec);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_LAYOUT_PROTO_H_
