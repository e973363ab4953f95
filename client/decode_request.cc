// Requests for decoding.
#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/request_parts.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr char kOutputFlag[] = "--output";
// The shortest part of a run's ID that stands for it.
constexpr size_t kShortestId = 8;

struct OutputKind {
  absl::string_view extension;
  v1::ArtifactRole role;
};

constexpr std::array<OutputKind, 4> kOutputs = {{
    {".mp4", v1::ARTIFACT_ROLE_VIDEO},
    {".wav", v1::ARTIFACT_ROLE_AUDIO},
    {".png", v1::ARTIFACT_ROLE_IMAGE},
    {".safetensors", v1::ARTIFACT_ROLE_FRAMES},
}};

absl::StatusOr<v1::ArtifactRole> RoleOf(const std::string& path) {
  const std::string lower = absl::AsciiStrToLower(path);
  for (const OutputKind& kind : kOutputs) {
    if (absl::EndsWith(lower, kind.extension)) return kind.role;
  }
  return FieldError(kOutputFlag, absl::StrCat(Quoted(path), " does not say what to make"),
                    "a name that ends in .mp4, .wav, .png or .safetensors");
}

}  // namespace

bool NamesRun(const std::string& latents) {
  if (absl::StartsWith(latents, "runs/")) return true;
  std::error_code error;
  return latents.size() >= kShortestId &&
         latents.find_first_not_of("0123456789abcdef") == std::string::npos &&
         !std::filesystem::exists(latents, error);
}

absl::StatusOr<JobRequest> DecodeRequest(const DecodeLatents& flags, const std::string& run,
                                         PathStyle paths, const InputResolver& resolve) {
  JobRequest request;
  FlagNames& names = request.flags;
  v1::JobSpec& spec = request.spec;
  v1::DecodeSpec& decode = *spec.mutable_decode();
  if (!flags.checkpoint.empty() || run.empty()) FillCheckpoint(flags.checkpoint, paths, &request);
  spec.set_composition(flags.composition);
  names.Add("composition", "--composition", flags.composition);
  if (run.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--latents", "decode.latents", flags.latents, resolve,
                                        decode.mutable_latents(), &names));
  } else {
    decode.set_run(run);
    names.Add("decode.run", "--latents", flags.latents);
  }
  std::map<v1::ArtifactRole, std::string> made;
  for (const std::string& path : flags.out) {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::ArtifactRole role, RoleOf(path));
    if (!made.emplace(role, path).second) {
      return FieldError(kOutputFlag,
                        absl::StrCat(Quoted(path), " and ", Quoted(made[role]), " are of one kind"),
                        "one file of each kind");
    }
    decode.add_outputs(role);
    request.outputs.push_back({role, path});
  }
  names.Add("decode.outputs", kOutputFlag, "");
  decode.set_frames_u8(flags.frames == "u8");
  if (flags.tile.has_value()) decode.set_tile(*flags.tile);
  if (flags.tile_overlap.has_value()) decode.set_tile_overlap(*flags.tile_overlap);
  decode.set_no_tiling(flags.no_tiling);
  if (flags.image_frame.has_value()) decode.set_image_frame(*flags.image_frame);
  if (flags.fps.has_value()) decode.set_fps(*flags.fps);
  names.Add("decode.tile", "--tile", "");
  names.Add("decode.tile_overlap", "--tile-overlap", "");
  names.Add("decode.no_tiling", "--no-tiling", "");
  names.Add("decode.image_frame", "--image-frame", "");
  names.Add("decode.fps", "--fps", "");
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

absl::StatusOr<JobRequest> KeptFramesRequest(const DecodeLatents& flags,
                                             const InputResolver& resolve) {
  JobRequest request;
  v1::DecodeSpec& decode = *request.spec.mutable_decode();
  for (const std::string& path : flags.out) {
    PLUMBLINE_ASSIGN_OR_RETURN(const v1::ArtifactRole role, RoleOf(path));
    if (role != v1::ARTIFACT_ROLE_VIDEO || flags.out.size() > 1) {
      return FieldError(kOutputFlag, "of kept frames one video is made", "one FILE.mp4");
    }
    decode.add_outputs(role);
    request.outputs.push_back({role, path});
  }
  request.flags.Add("checkpoint", "--checkpoint", flags.checkpoint);
  request.flags.Add("composition", "--composition", flags.composition);
  request.spec.set_checkpoint(flags.checkpoint);
  request.spec.set_composition(flags.composition);
  PLUMBLINE_RETURN_IF_ERROR(FillInput("--kept", "decode.kept", flags.kept, resolve,
                                      decode.mutable_kept(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = true;
  return request;
}

}  // namespace plumbline::client
