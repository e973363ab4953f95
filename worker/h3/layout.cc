#include "worker/h3/layout.h"

#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kForm = "TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES";
constexpr int64_t kMaxLatentFrames = 1 << 16;
constexpr int64_t kMaxLatentSide = 1 << 12;

struct CountField {
  absl::string_view name;
  int64_t LayoutSpec::*member;
  int64_t max;
  bool even;
};

// In the order of kForm. No product of three of the limits overflows.
constexpr CountField kCountFields[] = {
    {"text_rows", &LayoutSpec::text_rows, kMaxRows, false},
    {"latent_frames", &LayoutSpec::latent_frames, kMaxLatentFrames, false},
    {"latent_height", &LayoutSpec::latent_height, kMaxLatentSide, true},
    {"latent_width", &LayoutSpec::latent_width, kMaxLatentSide, true},
    {"audio_latents", &LayoutSpec::audio_latents, kMaxRows, false},
};
constexpr size_t kCountFieldCount = sizeof(kCountFields) / sizeof(kCountFields[0]);

struct Keyframes {
  absl::string_view name;
  bool first;
  bool last;
};

constexpr Keyframes kKeyframes[] = {
    {"none", false, false},
    {"first", true, false},
    {"last", false, true},
    {"first+last", true, true},
};

struct NamedLayout {
  absl::string_view name;
  LayoutSpec spec;
};

constexpr NamedLayout kNamedLayouts[] = {
    {"tiny", {104, 2, 12, 16, 8, true, false}},         // 264 rows
    {"small", {291, 7, 14, 20, 37, true, false}},       // 925 rows
    {"medium", {678, 12, 24, 28, 65, true, true}},      // 3160 rows
    {"released", {194, 37, 48, 84, 207, true, false}},  // 38,912 rows: 124 frames of 1344x768
};

std::string Accepted(const CountField& field) {
  return absl::StrCat(field.even ? "even numbers from 2 to " : "1 to ", field.max);
}

// For values that may be anything, so no product is formed of values beyond their limits.
void CheckCounts(const LayoutSpec& spec, absl::string_view where,
                 std::vector<FieldViolation>* violations) {
  for (const CountField& field : kCountFields) {
    const int64_t value = spec.*field.member;
    if (value < 1 || value > field.max || (field.even && value % 2 != 0)) {
      violations->push_back({absl::StrCat(where, ".", field.name),
                             absl::StrCat(value, " is not possible; accepted: ", Accepted(field))});
    }
  }
}

}  // namespace

bool operator==(const LayoutSpec& a, const LayoutSpec& b) {
  for (const CountField& field : kCountFields) {
    if (a.*field.member != b.*field.member) return false;
  }
  return a.first_keyframe == b.first_keyframe && a.last_keyframe == b.last_keyframe;
}

absl::Status ValidateLayoutSpec(const LayoutSpec& spec, absl::string_view field) {
  std::vector<FieldViolation> violations;
  CheckCounts(spec, field, &violations);
  if (violations.empty() && spec.Rows() > kMaxRows) {
    violations.push_back({std::string(field), absl::StrCat(spec.Rows(), " rows; accepted: at most ",
                                                           kMaxRows, " rows")});
  }
  return FieldErrors(violations);
}

absl::StatusOr<LayoutSpec> ParseLayout(absl::string_view text, absl::string_view field) {
  for (const NamedLayout& layout : kNamedLayouts) {
    if (text == layout.name) return layout.spec;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  if (parts.size() != kCountFieldCount + 1) {
    return FieldError(field, absl::StrCat("unknown layout ", Quoted(text)),
                      absl::StrCat(NamedLayouts(), ", or ", kForm));
  }
  LayoutSpec spec;
  for (size_t i = 0; i < kCountFieldCount; ++i) {
    if (!absl::SimpleAtoi(parts[i], &(spec.*kCountFields[i].member))) {
      return FieldError(absl::StrCat(field, ".", kCountFields[i].name),
                        absl::StrCat(Quoted(parts[i]), " is no whole number"),
                        Accepted(kCountFields[i]));
    }
  }
  const absl::string_view keyframes_text = parts[kCountFieldCount];
  const Keyframes* keyframes = nullptr;
  for (const Keyframes& candidate : kKeyframes) {
    if (keyframes_text == candidate.name) keyframes = &candidate;
  }
  if (keyframes == nullptr) {
    return FieldError(absl::StrCat(field, ".keyframes"),
                      absl::StrCat("unknown keyframes ", Quoted(keyframes_text)),
                      "none, first, last, first+last");
  }
  spec.first_keyframe = keyframes->first;
  spec.last_keyframe = keyframes->last;
  PLUMBLINE_RETURN_IF_ERROR(ValidateLayoutSpec(spec, field));
  return spec;
}

std::string NamedLayouts() {
  return absl::StrJoin(kNamedLayouts, ", ", [](std::string* out, const NamedLayout& layout) {
    absl::StrAppend(out, layout.name);
  });
}

std::string FormatLayout(const LayoutSpec& spec) {
  std::string text;
  for (const CountField& field : kCountFields) absl::StrAppend(&text, spec.*field.member, ",");
  for (const Keyframes& keyframes : kKeyframes) {
    if (keyframes.first == spec.first_keyframe && keyframes.last == spec.last_keyframe) {
      absl::StrAppend(&text, keyframes.name);
    }
  }
  return text;
}

}  // namespace plumbline::h3
