#include "worker/jobs/kept_media.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "worker/media/mp4_writer.h"
#include "worker/media/tensor_media.h"

namespace plumbline::jobs {

absl::StatusOr<JobResult> MakeKeptMedia(const std::string& path, const std::string& source,
                                        const JobEnvironment& environment) {
  PLUMBLINE_ASSIGN_OR_RETURN(const media::FfmpegLibrary* const ffmpeg, environment.ffmpeg);
  absl::StatusOr<media::Media> opened = media::OpenTensorMedia(path);
  if (absl::IsInvalidArgument(opened.status()) || (opened.ok() && opened->video == nullptr)) {
    return FieldError("decode.kept", opened.ok() ? "it holds no frames" : opened.status().message(),
                      "frames that a worker without FFmpeg kept");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(media::Media kept, std::move(opened));
  const std::string video = environment.output_folder + "/video";
  const media::VideoFormat& format = kept.video->format();
  PLUMBLINE_ASSIGN_OR_RETURN(const std::unique_ptr<media::Mp4Writer> writer,
                             media::Mp4Writer::Create(ffmpeg, video, format, &kept.audio));
  for (int64_t i = 0; i < format.frames; ++i) {
    PLUMBLINE_RETURN_IF_ERROR(environment.context.check_cancelled());
    PLUMBLINE_ASSIGN_OR_RETURN(const media::VideoFrame frame, kept.video->Next());
    PLUMBLINE_RETURN_IF_ERROR(writer->AddFrame(frame.bytes));
  }
  PLUMBLINE_RETURN_IF_ERROR(writer->Finish());

  JobResult result;
  v1::DecodeReport& report = *result.report.mutable_decode();
  report.set_source(source);
  report.set_frames(static_cast<int32_t>(format.frames));
  report.set_height(static_cast<int32_t>(format.height));
  report.set_width(static_cast<int32_t>(format.width));
  report.set_samples(static_cast<int32_t>(kept.audio.SamplesPerChannel()));
  report.set_sampling_rate(kept.audio.sample_rate_hz);
  result.report.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  result.report.mutable_verdict()->set_sentence(
      absl::StrCat("NOT JUDGED: an MP4 of ", format.frames, " frames was made of what was kept."));
  result.files.push_back({video, v1::ARTIFACT_ROLE_VIDEO, "video.mp4", "video/mp4"});
  return result;
}

}  // namespace plumbline::jobs
