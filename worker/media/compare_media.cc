#include "worker/media/compare_media.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status.h"
#include "worker/media/audio_meter.h"
#include "worker/media/frame_order.h"
#include "worker/media/mp4_writer.h"
#include "worker/media/video_meter.h"

namespace plumbline::media {
namespace {

// Of whose figures a report has room.
constexpr int64_t kMaxFrames = 1 << 16;
constexpr float kDifferenceGain = 4;

std::string VideoText(const FrameSource* video) {
  if (video == nullptr) return "no picture";
  const VideoFormat& format = video->format();
  return absl::StrCat(format.frames, " frames of ", format.width, "x", format.height, " at ",
                      format.frames_per_second, " a second");
}

std::string AudioText(const AudioTrack& audio) {
  if (audio.channels == 0) return "no sound";
  return absl::StrCat(audio.SamplesPerChannel(), " samples of ", audio.channels, " channels at ",
                      audio.sample_rate_hz, " Hz");
}

void AddGate(absl::string_view name, double value, double bound, bool passed,
             v1::QualityReport* report) {
  v1::GateResult& gate = *report->add_gates();
  gate.set_gate(std::string(name));
  gate.set_value(value);
  gate.set_bound(bound);
  gate.set_passed(passed);
}

void AddGates(const v1::QualityBounds& bounds, bool has_video, bool has_audio,
              v1::QualityReport* report) {
  const bool finite = !report->has_first_nonfinite_frame() && !report->has_first_nonfinite_sample();
  AddGate("finite", finite ? 1 : 0, 1, finite, report);
  // Nothing that is NaN is within a bound.
  if (has_video) {
    AddGate("psnr", report->psnr_db(), bounds.psnr_db_min(),
            report->psnr_db() >= bounds.psnr_db_min(), report);
    AddGate("ssim", report->ssim(), bounds.ssim_min(), report->ssim() >= bounds.ssim_min(), report);
    AddGate("temporal_rmse", report->temporal_rmse(), bounds.temporal_rmse_max(),
            report->temporal_rmse() <= bounds.temporal_rmse_max(), report);
  }
  if (has_audio) {
    AddGate("audio_relative_l2", report->audio_relative_l2(), bounds.audio_relative_l2_max(),
            report->audio_relative_l2() <= bounds.audio_relative_l2_max(), report);
  }
  report->set_passed(std::all_of(report->gates().begin(), report->gates().end(),
                                 [](const v1::GateResult& gate) { return gate.passed(); }));
}

// The values of a frame, as floats.
absl::Span<const float> Values(const VideoFrame& frame, std::vector<float>* widened) {
  if (!frame.values.empty()) return frame.values;
  widened->assign(frame.bytes.begin(), frame.bytes.end());
  for (float& value : *widened) value /= 255.0f;
  return *widened;
}

// The video of the difference.
class DifferenceVideo {
 public:
  static absl::StatusOr<std::unique_ptr<DifferenceVideo>> Create(
      const MediaComparisonOptions& options, const VideoFormat& format, const AudioTrack& subject,
      const AudioTrack& reference) {
    auto video = std::make_unique<DifferenceVideo>();
    video->sound_ = reference;
    for (size_t i = 0; i < video->sound_.samples.size(); ++i) {
      video->sound_.samples[i] = std::clamp(subject.samples[i] - reference.samples[i], -1.0f, 1.0f);
    }
    PLUMBLINE_ASSIGN_OR_RETURN(
        video->writer_,
        Mp4Writer::Create(options.ffmpeg, options.difference_path, format, &video->sound_));
    return video;
  }

  absl::Status Add(const VideoFrame& subject, const VideoFrame& reference) {
    const absl::Span<const float> a = Values(subject, &widened_subject_);
    const absl::Span<const float> b = Values(reference, &widened_reference_);
    shown_.resize(a.size());
    for (size_t i = 0; i < a.size(); ++i) shown_[i] = 0.5f + kDifferenceGain * (a[i] - b[i]);
    bytes_.resize(a.size());
    ToBytes(shown_, absl::MakeSpan(bytes_));
    return writer_->AddFrame(bytes_);
  }

  absl::Status Finish() { return writer_->Finish(); }

 private:
  AudioTrack sound_;
  std::unique_ptr<Mp4Writer> writer_;
  std::vector<float> widened_subject_;
  std::vector<float> widened_reference_;
  std::vector<float> shown_;
  std::vector<uint8_t> bytes_;
};

absl::Status CompareFrames(Media* subject, Media* reference, const MediaComparisonOptions& options,
                           ThreadPool* threads, v1::QualityReport* report) {
  const VideoFormat& format = reference->video->format();
  if (std::min(format.height, format.width) < kSsimWindow) {
    return absl::InvalidArgumentError(absl::StrCat(
        "frames of ", format.width, "x", format.height,
        " are too small to be measured; accepted: sides of ", kSsimWindow, " and more"));
  }
  if (format.frames > kMaxFrames) {
    return absl::InvalidArgumentError(absl::StrCat(
        format.frames, " frames are more than a report can hold; accepted: at most ", kMaxFrames));
  }
  std::unique_ptr<DifferenceVideo> difference;
  if (!options.difference_path.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        difference, DifferenceVideo::Create(options, format, subject->audio, reference->audio));
  }
  VideoMeter meter(format.height, format.width, threads);
  for (int64_t i = 0; i < format.frames; ++i) {
    if (options.check_cancelled) PLUMBLINE_RETURN_IF_ERROR(options.check_cancelled());
    // Decoding takes as long as measuring, and neither side waits for the other.
    absl::StatusOr<VideoFrame> next[2];
    threads->ParallelFor(0, 2, 1, [&](int64_t side, int64_t) {
      next[side] = (side == 0 ? subject : reference)->video->Next();
    });
    PLUMBLINE_ASSIGN_OR_RETURN(const VideoFrame a, std::move(next[0]));
    PLUMBLINE_ASSIGN_OR_RETURN(const VideoFrame b, std::move(next[1]));
    meter.Add(a, b);
    if (difference != nullptr) PLUMBLINE_RETURN_IF_ERROR(difference->Add(a, b));
    if (options.on_progress) options.on_progress(i + 1, format.frames);
  }
  meter.Finish(report);
  return difference == nullptr ? absl::OkStatus() : difference->Finish();
}

std::string GateText(const v1::QualityReport& report, const v1::GateResult& gate) {
  if (gate.gate() != "finite") {
    return absl::StrFormat("%s (%.4g where %.4g is allowed)", gate.gate(), gate.value(),
                           gate.bound());
  }
  if (report.has_first_nonfinite_frame()) {
    return absl::StrCat("frame ", report.first_nonfinite_frame(), " is not finite");
  }
  return absl::StrCat("sample ", report.first_nonfinite_sample(), " is not finite");
}

}  // namespace

v1::QualityBounds WithDefaultBounds(v1::QualityBounds bounds) {
  if (!bounds.has_psnr_db_min()) bounds.set_psnr_db_min(30);
  if (!bounds.has_ssim_min()) bounds.set_ssim_min(0.99);
  if (!bounds.has_temporal_rmse_max()) bounds.set_temporal_rmse_max(0.01);
  if (!bounds.has_audio_relative_l2_max()) bounds.set_audio_relative_l2_max(0.05);
  return bounds;
}

absl::Status CheckSameShape(const Media& subject, const Media& reference, absl::string_view field) {
  const std::pair<std::string, std::string> pairs[] = {
      {VideoText(subject.video.get()), VideoText(reference.video.get())},
      {AudioText(subject.audio), AudioText(reference.audio)}};
  for (const auto& [has, wants] : pairs) {
    if (has != wants) {
      return WithReason(
          FieldError(field, absl::StrCat("has ", has), absl::StrCat(wants, ", as the reference")),
          "SHAPE_DIFFERS");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::QualityReport> CompareMedia(Media* subject, Media* reference,
                                               const MediaComparisonOptions& options,
                                               ThreadPool* threads) {
  v1::QualityReport report;
  const bool has_video = reference->video != nullptr;
  const bool has_audio = reference->audio.channels > 0;
  if (has_video) {
    PLUMBLINE_RETURN_IF_ERROR(CompareFrames(subject, reference, options, threads, &report));
  }
  if (has_audio) MeasureAudio(subject->audio, reference->audio, &report);
  AddGates(WithDefaultBounds(options.bounds), has_video, has_audio, &report);
  return report;
}

v1::Verdict JudgeQuality(const v1::QualityReport& report, absl::string_view what) {
  v1::Verdict verdict;
  for (const v1::GateResult& gate : report.gates()) {
    if (gate.passed()) continue;
    verdict.set_outcome(v1::OUTCOME_FAILED);
    verdict.mutable_first_failure()->set_entry("quality");
    verdict.mutable_first_failure()->set_gate(gate.gate());
    verdict.mutable_first_failure()->set_where(std::string(what));
    verdict.set_sentence(
        absl::StrCat("FAILED: ", what, ": first failure ", GateText(report, gate), "."));
    return verdict;
  }
  verdict.set_outcome(v1::OUTCOME_PASSED);
  std::string sentence = absl::StrCat("PASSED: ", what, ":");
  if (report.frames_size() > 0) {
    absl::StrAppendFormat(&sentence, " PSNR %.2f dB, SSIM %.4f, temporal RMSE %.3g",
                          report.psnr_db(), report.ssim(), report.temporal_rmse());
  }
  if (report.channels_size() > 0) {
    absl::StrAppendFormat(&sentence, "%s audio relative L2 %.3g",
                          report.frames_size() > 0 ? "," : "", report.audio_relative_l2());
  }
  verdict.set_sentence(absl::StrCat(sentence, "."));
  return verdict;
}

}  // namespace plumbline::media
