#include "worker/jobs/decode/outputs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/media/png.h"
#include "worker/media/wav.h"

namespace plumbline::jobs {
namespace {

constexpr char kOctets[] = "application/octet-stream";
constexpr char kOutputsField[] = "decode.outputs";

absl::string_view RoleWord(v1::ArtifactRole role) {
  absl::string_view word = v1::ArtifactRole_Name(role);
  return word.substr(sizeof("ARTIFACT_ROLE_") - 1);
}

}  // namespace

std::string DecodeOutputs::Path(absl::string_view name) const {
  return absl::StrCat(folder_, "/", name);
}

void DecodeOutputs::AddFile(absl::string_view name, absl::string_view extension,
                            v1::ArtifactRole role, absl::string_view media_type) {
  files_.push_back({Path(name), role, absl::StrCat(name, request_.suffix, ".", extension),
                    std::string(media_type)});
}

absl::StatusOr<std::unique_ptr<DecodeOutputs>> DecodeOutputs::Create(
    const OutputRequest& request, const media::VideoFormat* video, const media::AudioTrack& audio,
    const JobEnvironment& environment) {
  std::unique_ptr<DecodeOutputs> outputs(new DecodeOutputs(request, audio, environment));
  if (video != nullptr) outputs->format_ = *video;
  for (const v1::ArtifactRole role : request.roles) {
    const bool needs_video = role == v1::ARTIFACT_ROLE_VIDEO || role == v1::ARTIFACT_ROLE_IMAGE;
    if (needs_video && video == nullptr) {
      return FieldError(kOutputsField, absl::StrCat(RoleWord(role), " of latents without a video"),
                        "FRAMES or AUDIO");
    }
    switch (role) {
      case v1::ARTIFACT_ROLE_FRAMES: {
        outputs->frames_path_ = outputs->Path("frames");
        PLUMBLINE_ASSIGN_OR_RETURN(
            media::TensorMediaWriter writer,
            media::TensorMediaWriter::Create(outputs->frames_path_, request.frames, video, &audio));
        outputs->frames_.emplace(std::move(writer));
        outputs->AddFile("frames", "safetensors", role, kOctets);
        break;
      }
      case v1::ARTIFACT_ROLE_VIDEO: {
        if (environment.ffmpeg.ok()) {
          PLUMBLINE_ASSIGN_OR_RETURN(
              outputs->mp4_, media::Mp4Writer::Create(*environment.ffmpeg, outputs->Path("video"),
                                                      *video, &audio));
          outputs->AddFile("video", "mp4", role, "video/mp4");
          break;
        }
        PLUMBLINE_ASSIGN_OR_RETURN(
            media::KeptFramesWriter kept,
            media::KeptFramesWriter::Create(outputs->Path("kept"), *video, &audio));
        outputs->kept_.emplace(std::move(kept));
        outputs->AddFile("kept", "safetensors", v1::ARTIFACT_ROLE_KEPT_FRAMES, kOctets);
        break;
      }
      case v1::ARTIFACT_ROLE_AUDIO:
        if (audio.samples.empty()) {
          return FieldError(kOutputsField, "AUDIO of latents without a sound",
                            "FRAMES, VIDEO or IMAGE");
        }
        outputs->writes_audio_ = true;
        outputs->AddFile("audio", "wav", role, "audio/wav");
        break;
      case v1::ARTIFACT_ROLE_IMAGE:
        outputs->image_frame_ = request.image_frame.value_or(video->frames / 2);
        if (outputs->image_frame_ < 0 || outputs->image_frame_ >= video->frames) {
          return FieldError("decode.image_frame",
                            absl::StrCat(outputs->image_frame_, " is no frame of the video"),
                            absl::StrCat("0 to ", video->frames - 1));
        }
        outputs->AddFile("image", "png", role, "image/png");
        break;
      default:
        return FieldError(kOutputsField, absl::StrCat(RoleWord(role), " is not made by decoding"),
                          "FRAMES, VIDEO, AUDIO, IMAGE");
    }
  }
  return outputs;
}

absl::Status DecodeOutputs::AddFrame(const media::VideoFrame& frame,
                                     absl::Span<const float> decoded) {
  if (frames_.has_value()) PLUMBLINE_RETURN_IF_ERROR(frames_->AddFrame(frame, decoded));
  if (mp4_ != nullptr) PLUMBLINE_RETURN_IF_ERROR(mp4_->AddFrame(frame.bytes));
  if (kept_.has_value()) PLUMBLINE_RETURN_IF_ERROR(kept_->AddFrame(frame));
  if (frame.index != image_frame_) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string png,
                             media::EncodePng(format_.height, format_.width, frame.bytes));
  return WriteFileAtomically(Path("image"), png);
}

absl::StatusOr<std::vector<OutputFile>> DecodeOutputs::Finish() {
  if (frames_.has_value()) PLUMBLINE_RETURN_IF_ERROR(frames_->Finish());
  if (mp4_ != nullptr) PLUMBLINE_RETURN_IF_ERROR(mp4_->Finish());
  if (kept_.has_value()) PLUMBLINE_RETURN_IF_ERROR(kept_->Finish());
  if (writes_audio_) PLUMBLINE_RETURN_IF_ERROR(media::WriteWav(Path("audio"), audio_));
  return files_;
}

}  // namespace plumbline::jobs
