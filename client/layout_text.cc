#include "client/layout_text.h"

#include <cstdint>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "common/vocabulary.h"

namespace plumbline::client {
namespace {

constexpr absl::string_view kSizes[] = {"TEXT", "FRAMES", "HEIGHT", "WIDTH", "AUDIO"};
constexpr size_t kParts = 6;

absl::Status LayoutError(absl::string_view flag, absl::string_view text, absl::string_view what) {
  std::vector<absl::string_view> names;
  for (const NamedLayout& layout : NamedLayouts()) names.push_back(layout.name);
  return FieldError(flag, absl::StrCat(what, " in ", Quoted(text)),
                    absl::StrCat("TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES with KEYFRAMES none, ",
                                 "first, last or first+last, e.g. ", NamedLayouts()[0].sizes,
                                 "; or a name: ", absl::StrJoin(names, ", ")));
}

bool ParseKeyframes(absl::string_view text, v1::Layout* layout) {
  if (text == "none") return true;
  if (text == "first" || text == "first+last") layout->add_keyframes(v1::KEYFRAME_FIRST);
  if (text == "last" || text == "first+last") layout->add_keyframes(v1::KEYFRAME_LAST);
  return layout->keyframes_size() > 0;
}

}  // namespace

absl::StatusOr<v1::Layout> ParseLayout(absl::string_view flag, absl::string_view text) {
  v1::Layout layout;
  if (text.empty()) return LayoutError(flag, text, "nothing");
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() == 1) {
    layout.set_name(std::string(text));
    return layout;
  }
  if (parts.size() != kParts) {
    return LayoutError(flag, text, absl::StrCat(parts.size(), " parts instead of ", kParts));
  }
  int32_t sizes[5];
  for (size_t i = 0; i < 5; ++i) {
    if (!absl::SimpleAtoi(parts[i], &sizes[i])) {
      return LayoutError(flag, text, absl::StrCat(kSizes[i], " is no whole number"));
    }
  }
  layout.set_text_rows(sizes[0]);
  layout.set_frames(sizes[1]);
  layout.set_height(sizes[2]);
  layout.set_width(sizes[3]);
  layout.set_audio_latents(sizes[4]);
  if (!ParseKeyframes(parts[5], &layout)) {
    return LayoutError(flag, text, absl::StrCat("unknown KEYFRAMES ", Quoted(parts[5])));
  }
  return layout;
}

std::string LayoutText(const v1::Layout& layout) {
  return layout.name().empty() ? LayoutSizes(layout) : layout.name();
}

std::string LayoutSizes(const v1::Layout& layout) {
  std::vector<absl::string_view> keyframes;
  for (const int keyframe : layout.keyframes()) {
    keyframes.push_back(keyframe == v1::KEYFRAME_LAST ? "last" : "first");
  }
  return absl::StrCat(absl::StrJoin({layout.text_rows(), layout.frames(), layout.height(),
                                     layout.width(), layout.audio_latents()},
                                    ","),
                      ",", keyframes.empty() ? "none" : absl::StrJoin(keyframes, "+"));
}

}  // namespace plumbline::client
