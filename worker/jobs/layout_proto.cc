#include "worker/jobs/layout_proto.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/status.h"
#include "common/vocabulary.h"

namespace plumbline::jobs {
namespace {

// The name of a shape, or "".
absl::string_view NameOf(const h3::LayoutSpec& spec) {
  for (const NamedLayout& named : NamedLayouts()) {
    if (h3::FormatLayout(spec) == named.sizes) return named.name;
  }
  return "";
}

}  // namespace

absl::StatusOr<h3::LayoutSpec> LayoutFromProto(const v1::Layout& layout, absl::string_view field) {
  const bool has_sizes = layout.text_rows() != 0 || layout.frames() != 0 || layout.height() != 0 ||
                         layout.width() != 0 || layout.audio_latents() != 0 ||
                         layout.keyframes_size() != 0;
  h3::LayoutSpec named;
  if (!layout.name().empty()) {
    // A name alone; with sizes, as reports have it, they must be that layout's.
    PLUMBLINE_ASSIGN_OR_RETURN(named, h3::ParseLayout(layout.name(), field));
    if (!has_sizes) return named;
  }
  h3::LayoutSpec spec;
  spec.text_rows = layout.text_rows();
  spec.latent_frames = layout.frames();
  spec.latent_height = layout.height();
  spec.latent_width = layout.width();
  spec.audio_latents = layout.audio_latents();
  for (int keyframe : layout.keyframes()) {
    bool& present = keyframe == v1::KEYFRAME_FIRST ? spec.first_keyframe : spec.last_keyframe;
    const bool known = keyframe == v1::KEYFRAME_FIRST || keyframe == v1::KEYFRAME_LAST;
    if (!known || present || (keyframe == v1::KEYFRAME_FIRST && spec.last_keyframe)) {
      return FieldError(absl::StrCat(field, ".keyframes"),
                        "a keyframe is unknown, twice or out of order",
                        "none, FIRST, LAST, or FIRST and then LAST");
    }
    present = true;
  }
  std::vector<FieldViolation> violations = GetFieldViolations(h3::ValidateLayoutSpec(spec, field));
  // Requests say "frames", "height" and "width".
  for (FieldViolation& violation : violations) {
    violation.field = absl::StrReplaceAll(violation.field, {{".latent_", "."}});
  }
  PLUMBLINE_RETURN_IF_ERROR(FieldErrors(violations));
  if (!layout.name().empty() && spec != named) {
    return FieldError(absl::StrCat(field, ".name"),
                      absl::StrCat(Quoted(layout.name()), " has other sizes than those given"),
                      "a name alone, or sizes alone");
  }
  return spec;
}

v1::Layout LayoutToProto(const h3::LayoutSpec& spec) {
  v1::Layout layout;
  layout.set_name(std::string(NameOf(spec)));
  layout.set_text_rows(static_cast<int32_t>(spec.text_rows));
  layout.set_frames(static_cast<int32_t>(spec.latent_frames));
  layout.set_height(static_cast<int32_t>(spec.latent_height));
  layout.set_width(static_cast<int32_t>(spec.latent_width));
  layout.set_audio_latents(static_cast<int32_t>(spec.audio_latents));
  if (spec.first_keyframe) layout.add_keyframes(v1::KEYFRAME_FIRST);
  if (spec.last_keyframe) layout.add_keyframes(v1::KEYFRAME_LAST);
  return layout;
}

std::string LayoutLabel(const h3::LayoutSpec& spec) {
  const absl::string_view name = NameOf(spec);
  return name.empty() ? h3::FormatLayout(spec) : std::string(name);
}

}  // namespace plumbline::jobs
