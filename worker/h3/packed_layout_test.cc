#include "worker/h3/packed_layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "common/files.h"
#include "common/safetensors.h"
#include "common/sha256.h"
#include "common/status.h"

namespace plumbline::h3 {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
absl::Span<const uint8_t> BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)};
}

class CapturedLayoutsTest : public ::testing::Test {
 protected:
  CapturedLayoutsTest()
      : file_(SafetensorsFile::Open("tests/golden/layouts.safetensors")),
        json_(nlohmann::json::parse(*ReadFile("tests/golden/golden.json", 1 << 20))["layouts"]) {}

  static LayoutSpec SpecOf(const nlohmann::json& json) {
    LayoutSpec spec;
    spec.text_rows = json["text_tokens"];
    spec.latent_frames = json["latent_frames"];
    spec.latent_height = json["latent_height"];
    spec.latent_width = json["latent_width"];
    spec.audio_latents = json["audio_latents"];
    for (const nlohmann::json& anchor : json["anchors"]) {
      (anchor == "first" ? spec.first_keyframe : spec.last_keyframe) = true;
    }
    return spec;
  }

  template <typename T>
  void ExpectSameBytes(const std::string& name, const std::vector<T>& values) {
    const absl::StatusOr<absl::Span<const uint8_t>> expected = file_->Bytes(name);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_EQ(expected->size(), values.size() * sizeof(T)) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, expected->data() + i * sizeof(T), sizeof(T));
      ASSERT_EQ(std::memcmp(&value, &values[i], sizeof(T)), 0)
          << name << ": element " << i << " is " << values[i] << ", captured " << value;
    }
  }

  absl::StatusOr<SafetensorsFile> file_;
  nlohmann::json json_;
};

TEST_F(CapturedLayoutsTest, EqualBitForBit) {
  ASSERT_TRUE(file_.ok()) << file_.status();
  ASSERT_EQ(json_.size(), 4);
  for (const auto& [name, json] : json_.items()) {
    const absl::StatusOr<PackedLayout> layout =
        BuildPackedLayout(SpecOf(json), kReplayVideoTimestep, kReplayAudioTimestep);
    ASSERT_TRUE(layout.ok()) << layout.status();
    EXPECT_EQ(layout->Rows(), json["seq_len"].get<int64_t>());
    EXPECT_EQ(layout->keyframe_rows, json["num_condition_video_rows"].get<int64_t>());
    ExpectSameBytes(name + ".position_ids", layout->position_ids);
    ExpectSameBytes(name + ".token_tags", layout->token_tags);
    ExpectSameBytes(name + ".video_indices", layout->video_indices);
    ExpectSameBytes(name + ".audio_indices", layout->audio_indices);
    ExpectSameBytes(name + ".timestep_indices", layout->timestep_indices);
    EXPECT_EQ(Sha256Hex(BytesOf(layout->position_ids)), json["position_ids_sha256"]) << name;
    EXPECT_EQ(Sha256Hex(BytesOf(layout->token_tags)), json["token_tags_sha256"]) << name;
    ASSERT_EQ(layout->timestep.size(), json["timesteps"].size());
    for (size_t i = 0; i < layout->timestep.size(); ++i) {
      EXPECT_EQ(layout->timestep[i], static_cast<float>(json["timesteps"][i].get<double>()));
    }
  }
}

TEST_F(CapturedLayoutsTest, CompleteFindsWhatTheBuilderKnew) {
  for (const auto& [name, json] : json_.items()) {
    const PackedLayout built =
        *BuildPackedLayout(SpecOf(json), kReplayVideoTimestep, kReplayAudioTimestep);
    PackedLayout layout = built;
    layout.adaln_indices.clear();
    layout.keyframe_rows = -1;
    layout.spec.reset();
    ASSERT_TRUE(CompletePackedLayout("f", &layout).ok());
    EXPECT_EQ(layout.keyframe_rows, built.keyframe_rows);
    EXPECT_EQ(layout.adaln_indices, built.adaln_indices);
  }
}

TEST(PackedLayoutTest, PlacesRows) {
  // 7 text rows, 12 rows of the keyframe, 2 x 5 audio rows, 2 frames of 3 x 4 rows.
  PackedLayout layout = *BuildPackedLayout({7, 2, 6, 8, 5, true, false}, 0.25f, 0.5f);
  struct Case {
    int64_t row;
    RowKind kind;
    std::vector<int64_t> coordinate;
    std::vector<int64_t> without_spec;
  };
  const Case cases[] = {
      {0, RowKind::kText, {0}, {0}},           {6, RowKind::kText, {6}, {6}},
      {7, RowKind::kKeyframe, {0, 0, 0}, {0}}, {18, RowKind::kKeyframe, {0, 2, 3}, {11}},
      {19, RowKind::kAudio, {0, 0}, {0, 0}},   {28, RowKind::kAudio, {1, 4}, {1, 4}},
      {29, RowKind::kVideo, {0, 0, 0}, {0}},   {46, RowKind::kVideo, {1, 1, 1}, {17}},
      {52, RowKind::kVideo, {1, 2, 3}, {23}},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(layout.PlaceOfRow(c.row).kind, c.kind) << c.row;
    EXPECT_EQ(layout.PlaceOfRow(c.row).coordinate, c.coordinate) << c.row;
  }
  layout.spec.reset();
  for (const Case& c : cases) {
    EXPECT_EQ(layout.PlaceOfRow(c.row).kind, c.kind) << c.row;
    EXPECT_EQ(layout.PlaceOfRow(c.row).coordinate, c.without_spec) << c.row;
  }
}

TEST(PackedLayoutTest, KeyframesAreNeverNoisierThanTheirTimestep) {
  const LayoutSpec spec = {1, 1, 2, 2, 1, true, true};
  EXPECT_THAT(BuildPackedLayout(spec, 0.25f, 0.5f)->timestep, ElementsAre(0.25f, 0.5f, 0.999f));
  EXPECT_THAT(BuildPackedLayout(spec, 0.9995f, 0.5f)->timestep, ElementsAre(0.5f, 0.9995f));
  EXPECT_THAT(BuildPackedLayout(spec, 0.5f, 0.25f)->timestep, ElementsAre(0.25f, 0.5f, 0.999f));
  EXPECT_THAT(BuildPackedLayout(spec, 0.5f, 0.5f)->timestep, ElementsAre(0.5f, 0.999f));
  const PackedLayout swapped = *BuildPackedLayout(spec, 0.5f, 0.25f);
  // Text, two keyframes, two audio rows, video.
  EXPECT_THAT(swapped.timestep_indices, ElementsAre(1, 2, 2, 0, 0, 1));
  EXPECT_THAT(swapped.adaln_indices, ElementsAre(4, 6, 6, 2, 2, 3));
}

// As BuildPackedLayout would have, whatever the layout had before, and without its spec.
TEST(PackedLayoutTest, SetTimestepsEqualsBuilding) {
  for (const LayoutSpec& spec :
       {LayoutSpec{7, 2, 6, 8, 5, true, false}, LayoutSpec{3, 1, 2, 4, 2, false, false}}) {
    PackedLayout layout = *BuildPackedLayout(spec, 0.25f, 0.5f);
    layout.spec.reset();
    for (const std::pair<float, float>& times :
         {std::pair(0.0f, 0.0f), std::pair(0.9995f, 0.3f), std::pair(0.1f, 0.6f)}) {
      ASSERT_TRUE(SetTimesteps(times.first, times.second, &layout).ok());
      const PackedLayout built = *BuildPackedLayout(spec, times.first, times.second);
      EXPECT_EQ(layout.timestep, built.timestep);
      EXPECT_EQ(layout.timestep_indices, built.timestep_indices);
      EXPECT_EQ(layout.adaln_indices, built.adaln_indices);
    }
    EXPECT_THAT(SetTimesteps(2, 0, &layout).message(), HasSubstr("video_timestep"));
  }
}

TEST(PackedLayoutTest, TextRowsOfAVisionBlockAreTaggedVideo) {
  const LayoutSpec spec = {3, 1, 2, 2, 1, true, false};
  const PackedLayout layout = *BuildPackedLayout(spec, 0.25f, 0.5f, {1, 0, 1});
  // Text, keyframe, two audio rows, video. Only the modulation changes.
  EXPECT_THAT(layout.token_tags, ElementsAre(1, 0, 1, 0, 2, 2, 0));
  EXPECT_THAT(layout.text_indices, ElementsAre(0, 1, 2));
  EXPECT_THAT(layout.timestep_indices, ElementsAre(0, 0, 0, 2, 1, 1, 0));
  EXPECT_THAT(layout.adaln_indices, ElementsAre(1, 0, 1, 6, 5, 5, 0));
  EXPECT_EQ(layout.PlaceOfRow(1).kind, RowKind::kText);
  EXPECT_EQ(layout.position_ids, BuildPackedLayout(spec, 0.25f, 0.5f)->position_ids);

  EXPECT_THAT(BuildPackedLayout(spec, 0.25f, 0.5f, {1, 0}).status().message(),
              HasSubstr("text_token_tags: holds 2 values; accepted: 3"));
  EXPECT_THAT(BuildPackedLayout(spec, 0.25f, 0.5f, {1, 0, 2}).status().message(),
              HasSubstr("text_token_tags: row 2 has tag 2"));
}

TEST(PackedLayoutTest, RefusesBadTimesteps) {
  const LayoutSpec spec = {1, 1, 2, 2, 1, false, false};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(BuildPackedLayout(spec, 1.5f, 0.5f).status().message(), HasSubstr("video_timestep"));
  EXPECT_THAT(BuildPackedLayout(spec, nan, 0.5f).status().message(), HasSubstr("video_timestep"));
  EXPECT_THAT(BuildPackedLayout(spec, 0.5f, -1).status().message(), HasSubstr("audio_timestep"));
  EXPECT_FALSE(BuildPackedLayout({}, 0.5f, 0.5f).ok());
}

TEST(PackedLayoutTest, CompleteNamesTheTensorThatIsWrong) {
  const PackedLayout good = *BuildPackedLayout({7, 2, 6, 8, 5, true, false}, 0.25f, 0.5f);
  auto error_after = [&good](void (*change)(PackedLayout*)) {
    PackedLayout layout = good;
    change(&layout);
    const absl::Status status = CompletePackedLayout("f", &layout);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(error_after([](PackedLayout* l) { l->position_ids.pop_back(); }),
              HasSubstr("f: position_ids: holds 158 values; accepted: 159"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->position_ids[4] = 1.0 / 0.0; }),
              HasSubstr("f: position_ids: row 1 is not finite"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->token_tags[5] = 3; }),
              HasSubstr("f: token_tags: row 5 has tag 3"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->token_tags.clear(); }), HasSubstr("f: "));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->timestep_indices[9] = 3; }),
              HasSubstr("f: timestep_indices: row 9 has index 3; accepted: 0 to 2"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->timestep[1] = 2; }), HasSubstr("f: timestep"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->timestep.clear(); }), HasSubstr("f: timestep"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->video_indices[0] = -1; }),
              HasSubstr("f: video_indices: row -1"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->video_indices[0] = 53; }),
              HasSubstr("f: video_indices: row 53"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->audio_indices[0] = 3; }),
              HasSubstr("f: audio_indices: row 3 is out of range or named before"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->video_indices.pop_back(); }),
              HasSubstr("row 52 is in none of them"));
  EXPECT_THAT(error_after([](PackedLayout* l) { l->audio_indices.pop_back(); }),
              HasSubstr("f: audio_indices: holds 9 rows"));
}

}  // namespace
}  // namespace plumbline::h3
