#include "worker/jobs/media_comparison.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "google/protobuf/util/message_differencer.h"
#include "kernels/cpu/thread_pool.h"
#include "worker/media/compare_media.h"
#include "worker/media/media_file.h"

namespace plumbline::jobs {
namespace {

using Pair = v1::ComparisonSpec::GenerationPair;

// Of one side among those that are compared in turn.
constexpr int64_t kProgressFrames = 8;

std::string NameOf(const v1::InputFile& file, const std::string& label) {
  if (!label.empty()) return label;
  return file.has_artifact() ? file.artifact() : absl::StrCat("worker:", file.worker_path());
}

absl::StatusOr<media::Media> Open(const v1::InputFile& file, absl::string_view field,
                                  const InputFetcher& fetch, const JobEnvironment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string path, fetch(file, field));
  absl::StatusOr<media::Media> opened = media::OpenMedia(environment.ffmpeg, path);
  if (opened.ok() || !absl::IsInvalidArgument(opened.status())) return opened;
  return FieldError(field, opened.status().message(),
                    "MP4, WAV, or safetensors with `frames` or `samples`");
}

// Two files; `activity` is what people read meanwhile.
class Comparer {
 public:
  Comparer(const InputFetcher& fetch, const JobEnvironment& environment)
      : fetch_(fetch), environment_(environment), threads_(environment.threads) {}

  absl::StatusOr<v1::QualityReport> Compare(const v1::InputFile& a, absl::string_view a_field,
                                            const v1::InputFile& b, absl::string_view b_field,
                                            absl::string_view activity,
                                            media::MediaComparisonOptions options) {
    PLUMBLINE_ASSIGN_OR_RETURN(media::Media subject, Open(a, a_field, fetch_, environment_));
    PLUMBLINE_ASSIGN_OR_RETURN(media::Media reference, Open(b, b_field, fetch_, environment_));
    PLUMBLINE_RETURN_IF_ERROR(media::CheckSameShape(subject, reference, a_field));
    options.check_cancelled = environment_.context.check_cancelled;
    options.on_progress = [this, activity](int64_t done, int64_t total) {
      if (done % kProgressFrames != 0 && done != total) return;
      v1::Progress progress;
      progress.set_unit("frames");
      progress.set_done(done);
      progress.set_total(total);
      progress.set_activity(std::string(activity));
      environment_.context.on_progress(progress);
    };
    absl::StatusOr<v1::QualityReport> report =
        media::CompareMedia(&subject, &reference, options, &threads_);
    if (!report.ok()) return AnnotateStatus(report.status(), a_field);
    return report;
  }

 private:
  const InputFetcher& fetch_;
  const JobEnvironment& environment_;
  ThreadPool threads_;
};

std::string SideName(const Pair::Side& side) {
  return absl::StrCat(side.composition(), " (", side.job(), ")");
}

absl::Status CheckNoise(uint64_t seed, const Pair::Side& side, const Pair::Side& reference) {
  const auto& a = side.noise();
  const auto& b = reference.noise();
  std::string tensor;
  for (int i = 0; i < std::max(a.size(), b.size()) && tensor.empty(); ++i) {
    if (i < a.size() && i < b.size() &&
        google::protobuf::util::MessageDifferencer::Equals(a[i], b[i])) {
      continue;
    }
    tensor = i < a.size() ? a[i].name() : b[i].name();
  }
  if (tensor.empty()) return absl::OkStatus();
  return WithReason(absl::FailedPreconditionError(absl::StrCat(
                        "seed ", seed, ": ", side.job(), " began with another ", tensor, " than ",
                        reference.job(), "; only generations from equal noise are compared")),
                    "NOISE_DIFFERS");
}

// Why the seed cannot be measured; empty: it can.
std::string WhyNotCompared(const Pair& pair) {
  for (const Pair::Side* side : {&pair.side_a(), &pair.side_b()}) {
    if (side->has_media()) continue;
    return absl::StrCat(side->job(), " has no frames of this seed",
                        side->not_decoded().empty() ? "" : ": ", side->not_decoded());
  }
  return "";
}

}  // namespace

absl::StatusOr<JobResult> RunMediaComparison(const v1::ComparisonSpec::MediaPair& pair,
                                             const InputFetcher& fetch,
                                             const JobEnvironment& environment) {
  media::MediaComparisonOptions options;
  options.bounds = pair.bounds();
  if (pair.difference_video()) {
    PLUMBLINE_ASSIGN_OR_RETURN(options.ffmpeg, environment.ffmpeg);
    options.difference_path = environment.output_folder + "/difference";
  }
  JobResult result;
  v1::QualityReport& report = *result.report.mutable_media();
  Comparer comparer(fetch, environment);
  PLUMBLINE_ASSIGN_OR_RETURN(
      report, comparer.Compare(pair.a(), "comparison.media.a", pair.b(), "comparison.media.b",
                               "comparing", std::move(options)));
  report.set_subject(NameOf(pair.a(), pair.a_label()));
  report.set_reference(NameOf(pair.b(), pair.b_label()));
  *result.report.mutable_verdict() = media::JudgeQuality(report, report.subject());
  // There is none of a sound alone.
  if (pair.difference_video() && report.frames_size() > 0) {
    result.files.push_back({environment.output_folder + "/difference", v1::ARTIFACT_ROLE_DIFFERENCE,
                            "difference.mp4", "video/mp4"});
  }
  return result;
}

absl::StatusOr<JobResult> RunGenerationComparison(const Pair& pair, const InputFetcher& fetch,
                                                  const JobEnvironment& environment) {
  if (pair.seeds_size() != 1 || !pair.has_side_a() || !pair.has_side_b()) {
    return FieldError("comparison.generations", "a task compares one seed, its sides filled in");
  }
  const uint64_t seed = pair.seeds(0);
  std::vector<const Pair::Side*> others = {&pair.side_a()};
  for (const Pair::Side& side : pair.side_spread()) others.push_back(&side);
  if (pair.has_side_repeat()) others.push_back(&pair.side_repeat());
  for (const Pair::Side* side : others) {
    PLUMBLINE_RETURN_IF_ERROR(CheckNoise(seed, *side, pair.side_b()));
  }

  JobResult result;
  v1::GenerationComparisonReport& report = *result.report.mutable_generation_comparison();
  report.set_seed(seed);
  report.set_run(pair.side_a().run());
  report.set_reference_run(pair.side_b().run());
  report.set_noise_equal(true);
  *report.mutable_latent_drift() = pair.side_a().latent_drift();
  result.report.set_composition(pair.side_a().composition());
  v1::Verdict& verdict = *result.report.mutable_verdict();
  report.set_not_compared(WhyNotCompared(pair));
  if (!report.not_compared().empty()) {
    verdict.set_outcome(v1::OUTCOME_NOT_JUDGED);
    verdict.set_sentence(absl::StrCat("NOT JUDGED: seed ", seed, ": ", report.not_compared(), "."));
    return result;
  }

  Comparer comparer(fetch, environment);
  const auto compare = [&](const Pair::Side& side,
                           absl::string_view field) -> absl::StatusOr<v1::QualityReport> {
    media::MediaComparisonOptions options;
    options.bounds = pair.side_a().bounds();
    PLUMBLINE_ASSIGN_OR_RETURN(
        v1::QualityReport quality,
        comparer.Compare(side.media(), absl::StrCat("comparison.generations.", field),
                         pair.side_b().media(), "comparison.generations.b",
                         absl::StrCat("seed ", seed, ": ", side.composition()), options));
    quality.set_subject(SideName(side));
    quality.set_reference(SideName(pair.side_b()));
    return quality;
  };
  PLUMBLINE_ASSIGN_OR_RETURN(*report.mutable_quality(), compare(pair.side_a(), "a"));
  verdict = media::JudgeQuality(report.quality(), absl::StrCat("seed ", seed));
  for (int i = 0; i < pair.side_spread_size(); ++i) {
    const Pair::Side& side = pair.side_spread(i);
    if (side.has_media()) {
      PLUMBLINE_ASSIGN_OR_RETURN(*report.add_provider_spread(),
                                 compare(side, absl::StrCat("spread[", i, "]")));
      // The bounds are not theirs.
      report.mutable_provider_spread()->rbegin()->clear_gates();
      report.mutable_provider_spread()->rbegin()->clear_passed();
    } else {
      verdict.add_qualifications(absl::StrCat("no frames of ", SideName(side)));
    }
  }
  if (pair.has_side_repeat() && pair.side_repeat().has_media()) {
    PLUMBLINE_ASSIGN_OR_RETURN(*report.mutable_provider_repeat(),
                               compare(pair.side_repeat(), "repeat"));
    report.mutable_provider_repeat()->clear_gates();
    report.mutable_provider_repeat()->clear_passed();
  } else if (pair.has_side_repeat()) {
    verdict.add_qualifications(absl::StrCat("no frames of ", SideName(pair.side_repeat())));
  }
  return result;
}

}  // namespace plumbline::jobs
