#include "common/evidence/run_tables.h"

#include "absl/strings/str_cat.h"
#include "common/evidence/canonical_json.h"
#include "common/evidence/csv.h"

namespace plumbline {
namespace {

constexpr double kMillisecondsPerSecond = 1000;

void AddTiming(const std::string& task, absl::string_view work, absl::string_view side,
               const v1::Timing& timing, CsvText* csv) {
  const std::string samples = absl::StrCat(timing.samples());
  const std::string median = CanonicalDouble(timing.median_ms());
  const std::string min = CanonicalDouble(timing.min_ms());
  const std::string max = CanonicalDouble(timing.max_ms());
  csv->AddLine({task, work, side, samples, median, min, max});
}

std::string TextOf(CsvText csv) { return csv.empty() ? "" : csv.Take(); }

}  // namespace

std::string TimingTableCsv(const v1::Report& report) {
  CsvText csv({"task", "work", "side", "samples", "median_ms", "min_ms", "max_ms"});
  for (const v1::TaskReport& task : report.tasks()) {
    for (const v1::TimingPair& pair : task.block_replay().timings()) {
      AddTiming(task.title(), pair.work(), "candidate", pair.candidate(), &csv);
      AddTiming(task.title(), pair.work(), "provider/default", pair.provider(), &csv);
    }
    for (const v1::GenerationReport::Step& step : task.generation().steps()) {
      v1::Timing timing;
      timing.set_samples(1);
      timing.set_median_ms(step.seconds() * kMillisecondsPerSecond);
      timing.set_min_ms(timing.median_ms());
      timing.set_max_ms(timing.median_ms());
      AddTiming(task.title(), absl::StrCat("step ", step.index()), task.composition(), timing,
                &csv);
    }
  }
  return TextOf(std::move(csv));
}

std::string LatentDriftCsv(const v1::Report& report) {
  CsvText csv({"task", "seed", "step", "video_relative_l2", "audio_relative_l2"});
  for (const v1::TaskReport& task : report.tasks()) {
    const auto& drifts = task.has_generation_comparison()
                             ? task.generation_comparison().latent_drift()
                             : task.generation().latent_drift();
    for (const v1::LatentDrift& drift : drifts) {
      const std::string seed = absl::StrCat(drift.seed()), step = absl::StrCat(drift.step());
      const std::string video = CanonicalDouble(drift.video());
      const std::string audio = CanonicalDouble(drift.audio());
      csv.AddLine({task.title(), seed, step, video, audio});
    }
  }
  return TextOf(std::move(csv));
}

std::string QualityCsv(const v1::Report& report) {
  CsvText csv({"task", "frame", "psnr_db", "ssim", "temporal_rmse"});
  for (const v1::TaskReport& task : report.tasks()) {
    const v1::QualityReport& quality =
        task.has_media() ? task.media() : task.generation_comparison().quality();
    for (int i = 0; i < quality.frames_size(); ++i) {
      const v1::QualityReport::Frame& frame = quality.frames(i);
      const std::string index = absl::StrCat(i);
      const std::string psnr = CanonicalDouble(frame.psnr_db());
      const std::string ssim = CanonicalDouble(frame.ssim());
      const std::string temporal = CanonicalDouble(frame.temporal_rmse());
      csv.AddLine({task.title(), index, psnr, ssim, temporal});
    }
  }
  return TextOf(std::move(csv));
}

}  // namespace plumbline
