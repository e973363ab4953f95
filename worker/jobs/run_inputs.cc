#include "worker/jobs/run_inputs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/jobs/layout_proto.h"

namespace plumbline::jobs {
namespace {

constexpr char kDefaultLayout[] = "tiny";

// Whether the rows are the same and in the same places, whatever their timesteps.
bool SameRows(const h3::PackedLayout& a, const h3::PackedLayout& b) {
  return a.position_ids == b.position_ids && a.token_tags == b.token_tags &&
         a.video_indices == b.video_indices && a.audio_indices == b.audio_indices &&
         a.text_indices == b.text_indices;
}

}  // namespace

absl::StatusOr<std::unique_ptr<SafetensorsFile>> OpenCapture(absl::string_view field,
                                                             const std::string& path) {
  if (path.empty()) return nullptr;
  absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::Open(path);
  if (!opened.ok()) return FieldError(field, opened.status().message(), "a safetensors file");
  return std::make_unique<SafetensorsFile>(*std::move(opened));
}

absl::StatusOr<RunLayout> ChooseLayout(const google::protobuf::RepeatedPtrField<v1::Layout>& wanted,
                                       absl::string_view field, const h3::PackedLayout* captured) {
  RunLayout chosen;
  if (captured != nullptr && wanted.empty()) {
    chosen.packed = *captured;
    chosen.label = "captured inputs";
    return chosen;
  }
  v1::Layout layout;
  layout.set_name(kDefaultLayout);
  if (!wanted.empty()) layout = wanted[0];
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::LayoutSpec shape, LayoutFromProto(layout, field));
  PLUMBLINE_ASSIGN_OR_RETURN(chosen.packed, h3::BuildPackedLayout(shape, h3::kReplayVideoTimestep,
                                                                  h3::kReplayAudioTimestep));
  chosen.label = LayoutLabel(shape);
  chosen.layout = LayoutToProto(shape);
  if (captured == nullptr) return chosen;
  if (!SameRows(*captured, chosen.packed)) {
    return FieldError(
        field,
        absl::StrCat("the captured inputs have another layout (", captured->Rows(), " rows) than ",
                     chosen.label, " (", chosen.packed.Rows(), " rows)"),
        "the layout of the captured inputs, or none");
  }
  // The same rows, and now their places are known.
  const int64_t keyframe_rows = chosen.packed.keyframe_rows;
  chosen.packed = *captured;
  chosen.packed.spec = shape;
  chosen.packed.keyframe_rows = keyframe_rows;
  return chosen;
}

h3::RowCounts RowsOf(const h3::PackedLayout& layout) {
  h3::RowCounts rows;
  rows.packed = layout.Rows();
  rows.text = layout.TextRows();
  rows.video = layout.VideoRows();
  rows.audio = layout.AudioRows();
  rows.timesteps = layout.Timesteps();
  return rows;
}

bool SameLayout(const h3::PackedLayout& a, const h3::PackedLayout& b) {
  return SameRows(a, b) && a.timestep == b.timestep && a.timestep_indices == b.timestep_indices;
}

std::map<std::string, std::string> LayoutDigests(const h3::PackedLayout& layout) {
  return {{"position_ids", DigestOf(layout.position_ids)},
          {"token_tags", DigestOf(layout.token_tags)},
          {"video_indices", DigestOf(layout.video_indices)},
          {"audio_indices", DigestOf(layout.audio_indices)},
          {"text_indices", DigestOf(layout.text_indices)},
          {"timestep", DigestOf(layout.timestep)},
          {"timestep_indices", DigestOf(layout.timestep_indices)}};
}

}  // namespace plumbline::jobs
