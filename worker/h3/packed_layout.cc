#include "worker/h3/packed_layout.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

// Seconds of latent frames in units of audio latents: 40 / 24 = 5/3 a pixel frame. Of every five
// latent frames the first holds one pixel frame and the others four.
double FrameSpan(int64_t latent_frame) { return 5.0 / 3.0 * (latent_frame % 5 == 0 ? 1.0 : 4.0); }

// The sum of 64-bit floats as numpy's add.reduce orders it (pairwise summation, numpy/core/src/
// umath/loops_utils.h.src): blocks of 128 in eight interleaved partial sums.
double NumpySum(absl::Span<const double> values) {
  constexpr size_t kBlock = 128;
  const size_t size = values.size();
  if (size < 8) {
    double sum = 0;
    for (double value : values) sum += value;
    return sum;
  }
  if (size > kBlock) {
    size_t half = size / 2;
    half -= half % 8;
    return NumpySum(values.first(half)) + NumpySum(values.subspan(half));
  }
  double partial[8];
  for (size_t j = 0; j < 8; ++j) partial[j] = values[j];
  size_t i = 8;
  for (; i < size - size % 8; i += 8) {
    for (size_t j = 0; j < 8; ++j) partial[j] += values[i + j];
  }
  double sum = ((partial[0] + partial[1]) + (partial[2] + partial[3])) +
               ((partial[4] + partial[5]) + (partial[6] + partial[7]));
  for (; i < size; ++i) sum += values[i];
  return sum;
}

// Coordinates of the patches along one side of a frame, so that frames of every aspect ratio cover
// the same area: numpy.linspace(left, left + ratio, patches, endpoint=False) * 32.
std::vector<double> SpatialGrid(int64_t latents, int64_t height, int64_t width) {
  const double ratio =
      static_cast<double>(latents) / std::sqrt(static_cast<double>(height * width));
  const double left = (1.0 - ratio) / 2.0;
  const double stop = left + ratio;
  const int64_t patches = latents / 2;
  const double step = (stop - left) / static_cast<double>(patches);
  std::vector<double> grid(patches);
  for (int64_t j = 0; j < patches; ++j) grid[j] = (left + static_cast<double>(j) * step) * 32.0;
  return grid;
}

// Rows in packed order, with everything but their timesteps.
class Builder {
 public:
  // `text_tags` must outlive the builder, and is empty or has the tag of every text row.
  Builder(const LayoutSpec& spec, absl::Span<const int64_t> text_tags)
      : spec_(spec),
        text_tags_(text_tags),
        height_grid_(SpatialGrid(spec.latent_height, spec.latent_height, spec.latent_width)),
        width_grid_(SpatialGrid(spec.latent_width, spec.latent_height, spec.latent_width)) {
    const size_t rows = spec.Rows();
    layout_.spec = spec;
    layout_.keyframe_rows = spec.KeyframeRows();
    layout_.position_ids.reserve(3 * rows);
    layout_.token_tags.reserve(rows);
  }

  PackedLayout Build() {
    const double origin = static_cast<double>(spec_.text_rows);
    AddText();
    AddKeyframes(origin);
    AddAudio(origin);
    AddVideo(origin);
    return std::move(layout_);
  }

 private:
  void AddRow(double time, double height, double width, int64_t tag,
              std::vector<int64_t>* indices) {
    indices->push_back(layout_.Rows());
    layout_.position_ids.insert(layout_.position_ids.end(), {time, height, width});
    layout_.token_tags.push_back(tag);
  }

  void AddFrame(double time) {
    for (double height : height_grid_) {
      for (double width : width_grid_) {
        AddRow(time, height, width, kVideoTag, &layout_.video_indices);
      }
    }
  }

  void AddText() {
    for (int64_t i = 0; i < spec_.text_rows; ++i) {
      AddRow(static_cast<double>(i), 0, 0, text_tags_.empty() ? kTextTag : text_tags_[i],
             &layout_.text_indices);
    }
  }

  void AddKeyframes(double origin) {
    if (spec_.first_keyframe) AddFrame(origin);
    if (spec_.last_keyframe) {
      std::vector<double> spans(spec_.latent_frames);
      for (int64_t i = 0; i < spec_.latent_frames; ++i) spans[i] = FrameSpan(i);
      AddFrame(origin + NumpySum(spans) - 5.0 / 3.0);
    }
  }

  // The left channel at the left edge of the picture, then the right channel at the right edge.
  void AddAudio(double origin) {
    for (double width : {width_grid_.front(), width_grid_.back()}) {
      for (int64_t i = 0; i < spec_.audio_latents; ++i) {
        AddRow(origin + static_cast<double>(i), 0, width, kAudioTag, &layout_.audio_indices);
      }
    }
  }

  void AddVideo(double origin) {
    double elapsed = 0;
    for (int64_t frame = 0; frame < spec_.latent_frames; ++frame) {
      AddFrame(origin + elapsed);
      elapsed += FrameSpan(frame);
    }
  }

  const LayoutSpec spec_;
  const absl::Span<const int64_t> text_tags_;
  const std::vector<double> height_grid_;
  const std::vector<double> width_grid_;
  PackedLayout layout_;
};

bool IsTimestep(float value) { return value >= 0 && value <= 1; }  // False for NaN.

absl::Status CheckTextTags(absl::Span<const int64_t> tags, int64_t text_rows) {
  if (tags.empty()) return absl::OkStatus();
  if (static_cast<int64_t>(tags.size()) != text_rows) {
    return FieldError("text_token_tags", absl::StrCat("holds ", tags.size(), " values"),
                      absl::StrCat(text_rows, ", as there are text rows"));
  }
  for (size_t row = 0; row < tags.size(); ++row) {
    if (tags[row] != kTextTag && tags[row] != kVideoTag) {
      return FieldError("text_token_tags", absl::StrCat("row ", row, " has tag ", tags[row]),
                        "1 text, 0 in a keyframe's vision block");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLength(absl::string_view source, absl::string_view name, size_t length,
                         size_t expected) {
  if (length == expected) return absl::OkStatus();
  return FieldError(absl::StrCat(source, ": ", name), absl::StrCat("holds ", length, " values"),
                    absl::StrCat(expected, ", as there are rows"));
}

// The place of `row` in `indices`, or -1.
int64_t Find(const std::vector<int64_t>& indices, int64_t row) {
  const auto found = std::find(indices.begin(), indices.end(), row);
  return found == indices.end() ? -1 : found - indices.begin();
}

}  // namespace

absl::string_view RowKindName(RowKind kind) {
  switch (kind) {
    case RowKind::kText:
      return "text";
    case RowKind::kKeyframe:
      return "keyframe";
    case RowKind::kAudio:
      return "audio";
    case RowKind::kVideo:
      return "video";
  }
  return "";
}

RowPlace PackedLayout::PlaceOfRow(int64_t row) const {
  if (const int64_t i = Find(text_indices, row); i >= 0) return {RowKind::kText, {i}};
  if (const int64_t i = Find(audio_indices, row); i >= 0) {
    const int64_t per_channel = AudioRows() / 2;
    return {RowKind::kAudio, {i / per_channel, i % per_channel}};
  }
  int64_t index = Find(video_indices, row);
  RowPlace place;
  place.kind = index < keyframe_rows ? RowKind::kKeyframe : RowKind::kVideo;
  if (place.kind == RowKind::kVideo) index -= keyframe_rows;
  if (!spec.has_value()) {
    place.coordinate = {index};
  } else {
    const int64_t width = spec->latent_width / 2;
    place.coordinate = {index / spec->RowsPerFrame(), index % spec->RowsPerFrame() / width,
                        index % width};
  }
  return place;
}

absl::StatusOr<PackedLayout> BuildPackedLayout(const LayoutSpec& spec, float video_timestep,
                                               float audio_timestep,
                                               absl::Span<const int64_t> text_tags) {
  PLUMBLINE_RETURN_IF_ERROR(ValidateLayoutSpec(spec, "layout"));
  PLUMBLINE_RETURN_IF_ERROR(CheckTextTags(text_tags, spec.text_rows));
  PackedLayout layout = Builder(spec, text_tags).Build();
  PLUMBLINE_RETURN_IF_ERROR(SetTimesteps(video_timestep, audio_timestep, &layout));
  return layout;
}

absl::Status SetTimesteps(float video_timestep, float audio_timestep, PackedLayout* layout) {
  if (!IsTimestep(video_timestep)) {
    return FieldError("video_timestep", absl::StrCat(video_timestep, " is no timestep"), "0 to 1");
  }
  if (!IsTimestep(audio_timestep)) {
    return FieldError("audio_timestep", absl::StrCat(audio_timestep, " is no timestep"), "0 to 1");
  }
  const float keyframe_timestep = std::max(video_timestep, kKeyframeTimestep);
  std::vector<float>& distinct = layout->timestep;
  distinct = {video_timestep, audio_timestep};
  if (layout->keyframe_rows > 0) distinct.push_back(keyframe_timestep);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());

  layout->timestep_indices.resize(layout->Rows());
  layout->adaln_indices.resize(layout->Rows());
  auto set = [&](absl::Span<const int64_t> rows, float timestep) {
    const int64_t index =
        std::lower_bound(distinct.begin(), distinct.end(), timestep) - distinct.begin();
    for (int64_t row : rows) {
      layout->timestep_indices[row] = index;
      layout->adaln_indices[row] = index * kTagCount + layout->token_tags[row];
    }
  };
  const absl::Span<const int64_t> video_rows = layout->video_indices;
  set(layout->text_indices, video_timestep);
  set(layout->audio_indices, audio_timestep);
  set(video_rows.first(layout->keyframe_rows), keyframe_timestep);
  set(video_rows.subspan(layout->keyframe_rows), video_timestep);
  return absl::OkStatus();
}

absl::Status CompletePackedLayout(absl::string_view source, PackedLayout* layout) {
  const size_t rows = layout->token_tags.size();
  PLUMBLINE_RETURN_IF_ERROR(
      CheckLength(source, "position_ids", layout->position_ids.size(), 3 * rows));
  PLUMBLINE_RETURN_IF_ERROR(
      CheckLength(source, "timestep_indices", layout->timestep_indices.size(), rows));
  for (const auto& [name, size] : {std::make_pair("text_indices", layout->TextRows()),
                                   std::make_pair("audio_indices", layout->AudioRows()),
                                   std::make_pair("video_indices", layout->VideoRows()),
                                   std::make_pair("timestep", layout->Timesteps())}) {
    if (size == 0) {
      return FieldError(absl::StrCat(source, ": ", name), "is empty", "at least one value");
    }
  }
  if (layout->AudioRows() % 2 != 0) {
    return FieldError(absl::StrCat(source, ": audio_indices"),
                      absl::StrCat("holds ", layout->AudioRows(), " rows"),
                      "an even number: two channels of equal length");
  }

  std::vector<bool> named(rows, false);
  size_t named_count = 0;
  for (const auto& [name, indices] : {std::make_pair("text_indices", &layout->text_indices),
                                      std::make_pair("audio_indices", &layout->audio_indices),
                                      std::make_pair("video_indices", &layout->video_indices)}) {
    for (int64_t row : *indices) {
      if (row < 0 || row >= static_cast<int64_t>(rows) || named[row]) {
        return FieldError(absl::StrCat(source, ": ", name),
                          absl::StrCat("row ", row, " is out of range or named before"),
                          absl::StrCat("each of the ", rows, " rows, from 0, in one list once"));
      }
      named[row] = true;
      ++named_count;
    }
  }
  if (named_count != rows) {
    const int64_t missing = std::find(named.begin(), named.end(), false) - named.begin();
    return FieldError(absl::StrCat(source, ": text_indices, audio_indices, video_indices"),
                      absl::StrCat("row ", missing, " is in none of them"),
                      "each row in one list once");
  }

  for (float timestep : layout->timestep) {
    if (!IsTimestep(timestep)) {
      return FieldError(absl::StrCat(source, ": timestep"),
                        absl::StrCat(timestep, " is no timestep"), "0 to 1");
    }
  }
  layout->adaln_indices.assign(rows, 0);
  for (size_t row = 0; row < rows; ++row) {
    const int64_t tag = layout->token_tags[row];
    const int64_t timestep = layout->timestep_indices[row];
    if (tag < 0 || tag >= kTagCount) {
      return FieldError(absl::StrCat(source, ": token_tags"),
                        absl::StrCat("row ", row, " has tag ", tag), "0 video, 1 text, 2 audio");
    }
    if (timestep < 0 || timestep >= layout->Timesteps()) {
      return FieldError(absl::StrCat(source, ": timestep_indices"),
                        absl::StrCat("row ", row, " has index ", timestep),
                        absl::StrCat("0 to ", layout->Timesteps() - 1));
    }
    layout->adaln_indices[row] = timestep * kTagCount + tag;
  }
  for (size_t i = 0; i < layout->position_ids.size(); ++i) {
    if (!std::isfinite(layout->position_ids[i])) {
      return FieldError(absl::StrCat(source, ": position_ids"),
                        absl::StrCat("row ", i / 3, " is not finite"), "finite numbers");
    }
  }

  // Keyframes lie before the audio in the packed sequence, the target video behind it.
  const int64_t first_audio = layout->audio_indices.front();
  layout->keyframe_rows = 0;
  for (int64_t row : layout->video_indices) {
    if (row >= first_audio) break;
    ++layout->keyframe_rows;
  }
  return absl::OkStatus();
}

}  // namespace plumbline::h3
