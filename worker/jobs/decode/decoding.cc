#include "worker/jobs/decode/decoding.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/decoders/audio_decoder.h"
#include "worker/h3/decoders/graphs.h"
#include "worker/h3/numerical_identity.h"
#include "worker/jobs/identity.h"
#include "worker/jobs/implementation_trace.h"
#include "worker/media/frame_order.h"

namespace plumbline::jobs {
namespace {

constexpr char kSamples[] = "samples";
constexpr char kFrames[] = "frames";
constexpr char kTail[] = "tail";

std::string TilingText(const h3::TilingOptions& tiling) {
  return tiling.enabled ? absl::StrCat(tiling.tile, ",", tiling.overlap) : "none";
}

// The tensors of a unit, which are those that its index asks for.
absl::StatusOr<std::vector<float>> Take(DecodedUnit* unit, absl::string_view name, size_t size) {
  for (auto& [known, values] : unit->tensors) {
    if (known == name && values.size() == size) return std::move(values);
  }
  return WithReason(
      absl::DataLossError(absl::StrCat("a kept unit has no ", name, " of ", size, " values")),
      "STEP_INCONSISTENT");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Decoding>> Decoding::Make(DecodingRequest request,
                                                         const JobEnvironment& environment) {
  std::unique_ptr<Decoding> made(new Decoding(std::move(request), environment));
  const DecodingRequest& r = made->request_;
  PLUMBLINE_RETURN_IF_ERROR(CheckLatents(r.latents, r.weights, absl::StrCat(r.field, "latents")));
  PLUMBLINE_RETURN_IF_ERROR(h3::CheckTiling(r.tiling, r.weights.video_config, r.field));
  made->video_graph_ = h3::BuildVideoDecoderGraph(r.weights.video_config);
  made->audio_graph_ = h3::BuildAudioDecoderGraph(r.weights.audio_config);
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition composition,
                             h3::ParseComposition(r.composition));
  const JobContext& context = environment.context;
  PLUMBLINE_ASSIGN_OR_RETURN(
      made->composition_, h3::ResolveDecoders(composition, made->video_graph_, made->audio_graph_,
                                              *context.registry, context.device->kind()));
  made->inputs_ = DigestLatents(r.latents);
  PLUMBLINE_RETURN_IF_ERROR(made->Identify());
  if (r.latents.has_video()) {
    made->video_calls_ = std::make_unique<h3::GraphCalls>(
        made->video_graph_, made->composition_.video, *r.weights.video, *context.registry,
        *context.device, context.check_cancelled);
    absl::StatusOr<h3::VideoDecoder> decoder =
        h3::VideoDecoder::Create(r.weights.video_config, r.tiling, made->composition_.blend,
                                 r.latents.video_shape, r.latents.video, made->video_calls_.get());
    if (!decoder.ok()) {
      return FieldError(absl::StrCat(r.field, "latents"), decoder.status().message());
    }
    made->decoder_.emplace(*std::move(decoder));
    made->format_ = {made->decoder_->plan().frames, made->decoder_->height(),
                     made->decoder_->width(), r.frames_per_second};
  }
  return made;
}

absl::Status Decoding::Identify() {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string checkpoint, request_.weights.Identity());
  PLUMBLINE_ASSIGN_OR_RETURN(
      identity_, IdentityOf(composition_.composition.ToString(), checkpoint, environment_));
  std::map<std::string, std::string> parts;
  for (const v1::IdentityPart& part : identity_.parts()) parts[part.name()] = part.value();
  parts["decode.of"] = request_.decode_of.empty() ? "a file" : request_.decode_of;
  parts["decode.tiling"] = TilingText(request_.tiling);
  for (const v1::TensorDigest& input : inputs_) {
    parts[absl::StrCat("decode.", input.name())] = input.sha256();
  }
  for (const auto& [name, value] : parts) {
    v1::IdentityPart& part = *run_identity_.add_parts();
    part.set_name(name);
    part.set_value(value);
  }
  run_identity_.set_sha256(Sha256Hex(h3::CanonicalIdentityJson(parts)));
  return absl::OkStatus();
}

int32_t Decoding::Units() const {
  const int64_t clips = decoder_.has_value() ? decoder_->plan().clips : 0;
  return static_cast<int32_t>(clips) + (request_.latents.has_audio() ? 1 : 0);
}

absl::StatusOr<DecodingResult> Decoding::Run() {
  steps::RunFacts facts;
  facts.identity = run_identity_;
  facts.seed = request_.seed;
  facts.total_steps = Units();
  facts.preflight = request_.preflight;
  facts.decodes = true;
  facts.decode_of = request_.decode_of;
  PLUMBLINE_ASSIGN_OR_RETURN(
      KeptUnits units, KeptUnits::Open(std::move(facts), inputs_, environment_.generation.attempt,
                                       environment_.generation.steps));
  const auto decode = [&]() -> absl::Status {
    PLUMBLINE_RETURN_IF_ERROR(DecodeSound(&units));
    PLUMBLINE_ASSIGN_OR_RETURN(
        const std::unique_ptr<DecodeOutputs> outputs,
        DecodeOutputs::Create(request_.outputs, decoder_.has_value() ? &format_ : nullptr, audio_,
                              environment_));
    PLUMBLINE_RETURN_IF_ERROR(DecodeFrames(&units, outputs.get()));
    PLUMBLINE_ASSIGN_OR_RETURN(result_.files, outputs->Finish());
    result_.report.set_media_pending(outputs->media_pending());
    if (outputs->frames_path().empty()) return absl::OkStatus();
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<v1::TensorDigest> tensors,
                               media::DigestTensors(outputs->frames_path()));
    for (const v1::TensorDigest& tensor : tensors) *result_.report.add_tensors() = tensor;
    return absl::OkStatus();
  };
  const absl::Status decoded = decode();
  // Whatever ended it: what was decoded is not lost.
  const absl::Status flushed = units.Flush();
  PLUMBLINE_RETURN_IF_ERROR(decoded);
  PLUMBLINE_RETURN_IF_ERROR(flushed);
  result_.report.set_units(Units());
  result_.report.set_units_kept(Units() - units.made());
  Describe();
  return std::move(result_);
}

absl::Status Decoding::BeforeUnit(int32_t unit) const {
  PLUMBLINE_RETURN_IF_ERROR(environment_.context.check_cancelled());
  const auto& should_yield = environment_.generation.should_yield;
  if (should_yield && should_yield()) {
    return absl::CancelledError(
        absl::StrCat("handed back before unit ", unit, " of ", Units(), " of decoding"));
  }
  v1::Progress progress;
  progress.set_done(unit);
  progress.set_total(Units());
  progress.set_unit("clips");
  progress.set_activity("decoding");
  environment_.context.on_progress(progress);
  return absl::OkStatus();
}

absl::Status Decoding::DecodeSound(KeptUnits* units) {
  const Latents& latents = request_.latents;
  if (!latents.has_audio()) return absl::OkStatus();
  PLUMBLINE_RETURN_IF_ERROR(BeforeUnit(0));
  const h3::AudioDecoderConfig& config = request_.weights.audio_config;
  const JobContext& context = environment_.context;
  const absl::Time start = context.clock->Now();
  PLUMBLINE_ASSIGN_OR_RETURN(DecodedUnit unit, units->Get(0, [&]() -> absl::StatusOr<DecodedUnit> {
    audio_calls_ = std::make_unique<h3::GraphCalls>(audio_graph_, composition_.audio,
                                                    *request_.weights.audio, *context.registry,
                                                    *context.device, context.check_cancelled);
    PLUMBLINE_ASSIGN_OR_RETURN(
        std::vector<float> samples,
        h3::DecodeAudio(config, latents.audio_channels, latents.audio_latents, latents.audio,
                        audio_calls_.get()));
    *result_.report.mutable_trace()->mutable_groups() =
        MakeImplementationTrace(audio_graph_, audio_calls_->trace(), /*backward=*/false).groups();
    audio_calls_.reset();  // Its memory is the video's now.
    DecodedUnit made;
    made.tensors.emplace_back(kSamples, std::move(samples));
    return made;
  }));
  const int64_t samples = latents.audio_latents * config.SamplesPerLatent();
  audio_.sample_rate_hz = static_cast<int32_t>(config.sampling_rate);
  audio_.channels = latents.audio_channels;
  PLUMBLINE_ASSIGN_OR_RETURN(
      audio_.samples, Take(&unit, kSamples, static_cast<size_t>(latents.audio_channels * samples)));
  result_.report.set_audio_seconds(absl::ToDoubleSeconds(context.clock->Now() - start));
  return absl::OkStatus();
}

absl::StatusOr<DecodedUnit> Decoding::MakeClip(int64_t clip, h3::ClipJoiner* joiner) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<float> raw, decoder_->DecodeClip(clip));
  video_ran_ = true;
  DecodedUnit made;
  made.tensors.emplace_back(kFrames, joiner->Add(raw));
  if (clip + 1 < decoder_->plan().clips) made.tensors.emplace_back(kTail, joiner->tail());
  return made;
}

absl::Status Decoding::DecodeFrames(KeptUnits* units, DecodeOutputs* outputs) {
  if (!decoder_.has_value()) return absl::OkStatus();
  const h3::ClipPlan& plan = decoder_->plan();
  const int64_t pixels = format_.height * format_.width;
  const int32_t first_unit = request_.latents.has_audio() ? 1 : 0;
  h3::ClipJoiner joiner(plan, /*channels=*/3, pixels, composition_.blend);
  double seconds = 0;
  for (int64_t clip = 0; clip < plan.clips; ++clip) {
    const int32_t unit = first_unit + static_cast<int32_t>(clip);
    PLUMBLINE_RETURN_IF_ERROR(BeforeUnit(unit));
    const absl::Time start = environment_.context.clock->Now();
    PLUMBLINE_ASSIGN_OR_RETURN(DecodedUnit decoded,
                               units->Get(unit, [&] { return MakeClip(clip, &joiner); }));
    seconds += absl::ToDoubleSeconds(environment_.context.clock->Now() - start);
    PLUMBLINE_ASSIGN_OR_RETURN(
        const std::vector<float> frames,
        Take(&decoded, kFrames, static_cast<size_t>(plan.FramesOf(clip) * 3 * pixels)));
    if (clip + 1 < plan.clips) {
      PLUMBLINE_ASSIGN_OR_RETURN(
          std::vector<float> tail,
          Take(&decoded, kTail, static_cast<size_t>(plan.faded * 3 * pixels)));
      joiner.Resume(clip + 1, std::move(tail));
    }
    PLUMBLINE_RETURN_IF_ERROR(AddFrames(frames, outputs));
  }
  result_.report.set_video_seconds(seconds);
  return absl::OkStatus();
}

absl::Status Decoding::AddFrames(const std::vector<float>& frames, DecodeOutputs* outputs) {
  const int64_t pixels = format_.height * format_.width;
  const auto values = static_cast<size_t>(3 * pixels);
  pixels_.resize(values);
  bytes_.resize(values);
  for (size_t offset = 0; offset < frames.size(); offset += values) {
    const absl::Span<const float> decoded = absl::MakeConstSpan(frames).subspan(offset, values);
    for (int64_t channel = 0; channel < 3; ++channel) {
      for (int64_t i = channel * pixels; i < (channel + 1) * pixels; ++i) {
        pixels_[static_cast<size_t>(i)] = h3::ToPixel(decoded[static_cast<size_t>(i)], channel);
      }
    }
    media::ToBytes(pixels_, absl::MakeSpan(bytes_));
    PLUMBLINE_RETURN_IF_ERROR(outputs->AddFrame({next_frame_++, pixels_, bytes_}, decoded));
  }
  return absl::OkStatus();
}

void Decoding::Describe() {
  v1::DecodeReport& report = result_.report;
  report.set_composition(composition_.composition.ToString());
  if (decoder_.has_value()) {
    report.set_latent_frames(static_cast<int32_t>(decoder_->plan().latents));
    report.set_frames(static_cast<int32_t>(format_.frames));
    report.set_height(static_cast<int32_t>(format_.height));
    report.set_width(static_cast<int32_t>(format_.width));
    for (const int64_t start : decoder_->rows().starts) {
      report.add_tile_rows(static_cast<int32_t>(start));
    }
    for (const int64_t start : decoder_->columns().starts) {
      report.add_tile_columns(static_cast<int32_t>(start));
    }
  }
  report.set_samples(static_cast<int32_t>(audio_.SamplesPerChannel()));
  report.set_sampling_rate(audio_.sample_rate_hz);
  if (video_ran_) {
    const v1::ImplementationTrace trace =
        MakeImplementationTrace(video_graph_, video_calls_->trace(), /*backward=*/false);
    for (const auto& group : trace.groups()) *report.mutable_trace()->add_groups() = group;
  }
  result_.identity = identity_;
  result_.hybrid = composition_.composition.IsHybrid();
}

std::string DescribeDecoded(const v1::DecodeReport& report) {
  std::string text;
  if (report.frames() > 0) {
    text = absl::StrCat(report.frames(), report.frames() == 1 ? " frame of " : " frames of ",
                        report.width(), " x ", report.height());
  }
  if (report.samples() > 0) {
    absl::StrAppend(&text, text.empty() ? "" : " and ", report.samples(), " samples");
  }
  return absl::StrCat(text, " by ", report.composition());
}

}  // namespace plumbline::jobs
