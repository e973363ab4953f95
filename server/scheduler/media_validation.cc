#include "server/scheduler/media_validation.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/chosen_name.h"
#include "server/resource_name.h"

namespace plumbline::server {
namespace {

constexpr size_t kMaxLabelBytes = 255;
constexpr int kMaxSpread = 16;
constexpr int kMaxSeeds = 1024;

}  // namespace

void CheckBounds(const std::string& field, const v1::QualityBounds& bounds, SpecChecker* checker) {
  const auto between = [&](bool is_set, absl::string_view name, double value, double min,
                           double max) {
    if (!is_set || (value >= min && value <= max)) return;
    checker->Add(absl::StrCat(field, ".", name), absl::StrCat(value, " is out of range"),
                 absl::StrCat(min, " to ", max));
  };
  between(bounds.has_psnr_db_min(), "psnr_db_min", bounds.psnr_db_min(), 0, 300);
  between(bounds.has_ssim_min(), "ssim_min", bounds.ssim_min(), -1, 1);
  between(bounds.has_temporal_rmse_max(), "temporal_rmse_max", bounds.temporal_rmse_max(), 0, 2);
  between(bounds.has_audio_relative_l2_max(), "audio_relative_l2_max",
          bounds.audio_relative_l2_max(), 0, 1e6);
}

void CheckMediaPair(const v1::ComparisonSpec::MediaPair& pair, SpecChecker* checker) {
  checker->File("spec.comparison.media.a", pair.a());
  checker->File("spec.comparison.media.b", pair.b());
  CheckBounds("spec.comparison.media.bounds", pair.bounds(), checker);
  for (const auto& [name, label] :
       {std::pair("a_label", &pair.a_label()), std::pair("b_label", &pair.b_label())}) {
    checker->Add(CheckRemark(*label, absl::StrCat("spec.comparison.media.", name), kMaxLabelBytes));
  }
}

void CheckGenerationPair(const v1::ComparisonSpec::GenerationPair& pair, SpecChecker* checker) {
  const auto job = [checker](const std::string& name, const std::string& field) {
    checker->Add(
        ParseName(name, "jobs", absl::StrCat("spec.comparison.generations.", field)).status());
  };
  job(pair.a(), "a");
  job(pair.b(), "b");
  for (int i = 0; i < pair.spread_size(); ++i) {
    job(pair.spread(i), absl::StrCat("spread[", i, "]"));
    if (std::count(pair.spread().begin(), pair.spread().begin() + i, pair.spread(i)) > 0) {
      checker->Add(absl::StrCat("spec.comparison.generations.spread[", i, "]"),
                   absl::StrCat(pair.spread(i), " is there twice"), "each job once");
    }
  }
  if (!pair.repeat().empty()) job(pair.repeat(), "repeat");
  if (pair.spread_size() > kMaxSpread) {
    checker->Add("spec.comparison.generations.spread", absl::StrCat(pair.spread_size(), " jobs"),
                 absl::StrCat("at most ", kMaxSpread));
  }
  if (pair.seeds_size() > kMaxSeeds ||
      std::set<uint64_t>(pair.seeds().begin(), pair.seeds().end()).size() !=
          static_cast<size_t>(pair.seeds_size())) {
    checker->Add("spec.comparison.generations.seeds", "are too many, or one is there twice",
                 absl::StrCat("at most ", kMaxSeeds, ", each once"));
  }
  if (pair.has_side_a() || pair.has_side_b() || pair.side_spread_size() > 0 ||
      pair.has_side_repeat()) {
    checker->Add("spec.comparison.generations.side_a", "the sides are the coordinator's to fill in",
                 "nothing");
  }
}

}  // namespace plumbline::server
