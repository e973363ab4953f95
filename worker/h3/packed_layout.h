#ifndef PLUMBLINE_WORKER_H3_PACKED_LAYOUT_H_
#define PLUMBLINE_WORKER_H3_PACKED_LAYOUT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/h3/layout.h"

namespace plumbline::h3 {

// Modality of a row: what AdaLN chooses its modulation by.
inline constexpr int64_t kVideoTag = 0;
inline constexpr int64_t kTextTag = 1;
inline constexpr int64_t kAudioTag = 2;
inline constexpr int64_t kTagCount = 3;

// Timesteps, in [0, 1], of block replay and of the captures; and the least that a keyframe's rows
// take.
inline constexpr float kReplayVideoTimestep = 0.25f;
inline constexpr float kReplayAudioTimestep = 0.5f;
inline constexpr float kKeyframeTimestep = 0.999f;

enum class RowKind { kText, kKeyframe, kAudio, kVideo };

// "text", "keyframe", "audio", "video".
absl::string_view RowKindName(RowKind kind);

// Which row of the model a packed row is.
struct RowPlace {
  RowKind kind = RowKind::kText;
  // Text: (index). Audio: (channel, index). Keyframe: (keyframe, y, x). Video: (frame, y, x), y and
  // x in patches. Where the sides of a frame are not known, keyframe and video: (index).
  std::vector<int64_t> coordinate;
};

// What the transformer reads of one packed sequence [text | keyframes | audio | video] beside the
// rows themselves: the tensors of these names in a capture. Plain data, copied freely.
struct PackedLayout {
  std::vector<double> position_ids;  // (rows, 3): time, height, width.
  std::vector<int64_t> token_tags;   // (rows)
  // Packed rows of each modality. Video lists keyframes' rows first, then the target's.
  std::vector<int64_t> video_indices;
  std::vector<int64_t> audio_indices;
  std::vector<int64_t> text_indices;
  std::vector<float> timestep;            // (T): the distinct timesteps, ascending.
  std::vector<int64_t> timestep_indices;  // (rows): into `timestep`.
  std::vector<int64_t> adaln_indices;     // (rows): timestep index * 3 + tag.

  // How many of `video_indices` are keyframes'.
  int64_t keyframe_rows = 0;
  // The shape it was built from; none when it was read from a file.
  std::optional<LayoutSpec> spec;

  int64_t Rows() const { return static_cast<int64_t>(token_tags.size()); }
  int64_t TextRows() const { return static_cast<int64_t>(text_indices.size()); }
  int64_t AudioRows() const { return static_cast<int64_t>(audio_indices.size()); }
  // Keyframes' rows and the target's: the rows that proj_in reads.
  int64_t VideoRows() const { return static_cast<int64_t>(video_indices.size()); }
  int64_t Timesteps() const { return static_cast<int64_t>(timestep.size()); }

  // The place of packed row `row`, 0 <= row < Rows().
  RowPlace PlaceOfRow(int64_t row) const;
};

// Builds the arrays for a valid `spec`, in the arithmetic of the released pipeline (numpy float64).
// `text_tags` has the tag of each text row: kTextTag or, in the rows of a keyframe's vision block,
// kVideoTag; none stands for kTextTag everywhere. Timesteps are those that SetTimesteps gives.
// INVALID_ARGUMENT for a bad spec, timestep or tag.
absl::StatusOr<PackedLayout> BuildPackedLayout(const LayoutSpec& spec, float video_timestep,
                                               float audio_timestep,
                                               absl::Span<const int64_t> text_tags = {});

// Gives the rows of a complete layout new timesteps: text and target video rows `video_timestep`,
// target audio rows `audio_timestep`, keyframes' rows max(video_timestep, kKeyframeTimestep).
// INVALID_ARGUMENT for a timestep that is not in [0, 1].
absl::Status SetTimesteps(float video_timestep, float audio_timestep, PackedLayout* layout);

// Checks arrays that come from a file and fills in what follows from them (`adaln_indices`,
// `keyframe_rows`). INVALID_ARGUMENT, naming the tensor after "SOURCE: ", unless lengths agree, the
// three lists of indices name every row exactly once, tags are 0 to 2, timesteps are in [0, 1],
// their indices in range and positions finite.
absl::Status CompletePackedLayout(absl::string_view source, PackedLayout* layout);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_PACKED_LAYOUT_H_
