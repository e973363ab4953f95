#ifndef PLUMBLINE_WORKER_JOBS_LAYOUT_H_
#define PLUMBLINE_WORKER_JOBS_LAYOUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "proto/plumbline/v1/layout.pb.h"

namespace plumbline::jobs {

// Builds a packed layout with the timesteps of a block replay and writes its tensors to `path`, a
// safetensors file: position_ids (rows, 3) F64; token_tags (rows), video_indices, audio_indices,
// text_indices, timestep_indices (rows) I64; timestep F32. INVALID_ARGUMENT names the field of
// "layout.layout".
absl::StatusOr<v1::LayoutReport> WriteLayout(const v1::LayoutSpec& spec, const std::string& path);

}  // namespace plumbline::jobs

#endif  // PLUMBLINE_WORKER_JOBS_LAYOUT_H_
