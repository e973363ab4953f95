#include "worker/h3/generation_contract.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/json.h"
#include "common/sha256.h"
#include "common/status.h"
#include "worker/h3/geometry.h"
#include "worker/h3/layout.h"

namespace plumbline::h3 {
namespace {

using nlohmann::json;

constexpr int64_t kCanvasStep = 32;
constexpr int64_t kMaxCanvasSide = 1 << 16;
constexpr int64_t kMaxContractFrames = (kMaxFrames - 5) / 17 * 17 + 5;
constexpr double kMaxFps = 1000;
constexpr int64_t kMaxSamplingRate = 1 << 20;
constexpr size_t kMaxDecoderBytes = 4096;
constexpr size_t kDigestDigits = 64;

constexpr absl::string_view kSeeds = "seeds";
constexpr absl::string_view kRng = "rng";
constexpr absl::string_view kDecoder = "decoder";
constexpr absl::string_view kBounds = "bounds";
constexpr absl::string_view kFps = "fps";

struct IntField {
  absl::string_view name;
  int64_t GenerationContract::*member;
  int64_t min;
  int64_t max;
  bool required;
};

constexpr IntField kIntFields[] = {
    {"num_frames", &GenerationContract::num_frames, 1, kMaxContractFrames, true},
    {"height", &GenerationContract::height, kCanvasStep, kMaxCanvasSide, true},
    {"width", &GenerationContract::width, kCanvasStep, kMaxCanvasSide, true},
    {"num_inference_steps", &GenerationContract::num_inference_steps, kMinGridPoints,
     kMaxGridPoints, true},
    {"sampling_rate", &GenerationContract::sampling_rate, 1, kMaxSamplingRate, false},
    {"num_audio_latents", &GenerationContract::num_audio_latents, 1, kMaxRows / 2, false},
};

// Above 0, to `max`.
struct PositiveField {
  absl::string_view name;
  double GenerationContract::*member;
  double max;
};

constexpr PositiveField kPositiveFields[] = {
    {"video_shift", &GenerationContract::video_shift, kMaxShift},
    {"audio_shift", &GenerationContract::audio_shift, kMaxShift},
    {kFps, &GenerationContract::fps, kMaxFps},
};

struct BoundField {
  absl::string_view name;
  double QualityBounds::*member;
  double min;
  double max;
};

constexpr BoundField kBoundFields[] = {
    {"psnr_db_min", &QualityBounds::psnr_db_min, 0, 300},
    {"ssim_min", &QualityBounds::ssim_min, -1, 1},
    {"temporal_rmse_max", &QualityBounds::temporal_rmse_max, 0, 2},
    {"audio_relative_l2_max", &QualityBounds::audio_relative_l2_max, 0, 1e6},
};

struct DigestField {
  absl::string_view name;
  std::string GenerationContract::*member;
};

constexpr DigestField kDigestFields[] = {
    {"checkpoint_sha256", &GenerationContract::checkpoint_sha256},
    {"conditioning_sha256", &GenerationContract::conditioning_sha256},
};

// A seed as a number, or as protobuf writes 64 bits.
bool ToSeed(const json& value, uint64_t* seed) {
  if (value.is_number_unsigned()) {
    *seed = value.get<uint64_t>();
    return true;
  }
  if (!value.is_string()) return false;
  const std::string& text = value.get_ref<const std::string&>();
  return !text.empty() && absl::c_all_of(text, absl::ascii_isdigit) && absl::SimpleAtoi(text, seed);
}

bool IsDigest(absl::string_view text) {
  return text.size() == kDigestDigits && absl::c_all_of(text, [](char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

// Reads one contract and collects what is wrong with its fields.
class Reader {
 public:
  explicit Reader(absl::string_view where) : where_(where) {}

  absl::StatusOr<GenerationContract> Read(const json& object) {
    if (!object.is_object()) {
      return FieldError(where_, "not a JSON object", "the fields of a generation contract");
    }
    RefuseUnknown(object);
    ReadSeeds(object);
    for (const IntField& field : kIntFields) {
      if (!field.required && !object.contains(field.name)) continue;
      Take(GetInt(object, where_, field.name, field.min, field.max), &(contract_.*field.member));
    }
    ReadCanvas();
    for (const PositiveField& field : kPositiveFields) {
      if (!object.contains(field.name)) continue;
      ReadPositive(object, field);
    }
    ReadTexts(object);
    ReadBounds(object);
    PLUMBLINE_RETURN_IF_ERROR(FieldErrors(violations_));

    PLUMBLINE_RETURN_IF_ERROR(Sampler::Create(where_, contract_.num_inference_steps,
                                              contract_.video_shift, contract_.audio_shift)
                                  .status());
    if (contract_.num_audio_latents == 0) {
      contract_.num_audio_latents = AudioLatents(contract_.AlignedFrames());
    }
    return std::move(contract_);
  }

 private:
  void Refuse(absl::string_view field, absl::string_view description) {
    violations_.push_back({absl::StrCat(where_, ": ", field), std::string(description)});
  }

  template <typename T>
  void Take(absl::StatusOr<T> value, T* to) {
    if (value.ok()) {
      *to = *std::move(value);
      return;
    }
    for (FieldViolation& violation : GetFieldViolations(value.status())) {
      violations_.push_back(std::move(violation));
    }
  }

  void RefuseUnknown(const json& object) {
    for (const auto& [key, value] : object.items()) {
      auto is_key = [&key = key](const auto& field) { return field.name == key; };
      if (absl::c_any_of(kIntFields, is_key) || absl::c_any_of(kPositiveFields, is_key) ||
          absl::c_any_of(kDigestFields, is_key) || key == kSeeds || key == kRng ||
          key == kDecoder || key == kBounds) {
        continue;
      }
      Refuse(Quoted(key), "no field of a generation contract");
    }
  }

  void ReadSeeds(const json& object) {
    const std::string accepted =
        absl::StrCat("an array of 1 to ", kMaxSeeds, " numbers, each 0 to 18446744073709551615");
    const auto seeds = object.find(kSeeds);
    if (seeds == object.end())
      return Refuse(kSeeds, absl::StrCat("is missing; accepted: ", accepted));
    if (!seeds->is_array() || seeds->empty() || seeds->size() > kMaxSeeds) {
      return Refuse(kSeeds, absl::StrCat("is no such list; accepted: ", accepted));
    }
    std::set<uint64_t> before;
    for (size_t i = 0; i < seeds->size(); ++i) {
      uint64_t seed;
      if (!ToSeed((*seeds)[i], &seed)) {
        return Refuse(absl::StrCat(kSeeds, "[", i, "]"),
                      "is no seed; accepted: 0 to 18446744073709551615");
      }
      if (!before.insert(seed).second) {
        return Refuse(absl::StrCat(kSeeds, "[", i, "]"),
                      absl::StrCat(seed, " is in the list before; accepted: different seeds"));
      }
      contract_.seeds.push_back(seed);
    }
  }

  void ReadCanvas() {
    for (const auto& [name, side] :
         {std::make_pair("height", contract_.height), std::make_pair("width", contract_.width)}) {
      if (side % kCanvasStep != 0) {
        Refuse(name, absl::StrCat(side, " is out of step; accepted: multiples of ", kCanvasStep));
      }
    }
  }

  void ReadPositive(const json& object, const PositiveField& field) {
    double value = 1;
    const size_t violations = violations_.size();
    Take(GetDouble(object, where_, field.name), &value);
    if (violations_.size() == violations && !(value > 0 && value <= field.max)) {
      Refuse(field.name,
             absl::StrCat(value, " is out of range; accepted: above 0, to ", field.max));
    }
    contract_.*field.member = value;
  }

  // A text field, or nothing where it is absent, empty or wrong.
  std::optional<std::string> ReadText(const json& object, absl::string_view name) {
    std::string text;
    if (object.contains(name)) Take(GetString(object, where_, name), &text);
    if (text.empty()) return std::nullopt;
    return text;
  }

  void ReadTexts(const json& object) {
    if (const auto text = ReadText(object, kRng)) {
      Take(ParseRng(*text, absl::StrCat(where_, ": ", kRng)), &contract_.rng);
    }
    if (const auto text = ReadText(object, kDecoder)) {
      contract_.decoder = *text;
      if (text->size() > kMaxDecoderBytes) {
        Refuse(kDecoder,
               absl::StrCat("has ", text->size(), " bytes; accepted: a composition of up to ",
                            kMaxDecoderBytes));
      }
    }
    for (const DigestField& field : kDigestFields) {
      const auto text = ReadText(object, field.name);
      if (!text.has_value()) continue;
      contract_.*field.member = *text;
      if (!IsDigest(*text)) {
        Refuse(field.name, absl::StrCat(Quoted(*text), " is no SHA-256; accepted: ", kDigestDigits,
                                        " digits 0-9 and a-f"));
      }
    }
  }

  void ReadBounds(const json& object) {
    const auto bounds = object.find(kBounds);
    if (bounds == object.end()) return;
    if (!bounds->is_object()) return Refuse(kBounds, "is no object; accepted: limits by name");
    const std::string where = absl::StrCat(where_, ": ", kBounds);
    for (const auto& [key, value] : bounds->items()) {
      if (absl::c_none_of(kBoundFields, [&key = key](const auto& f) { return f.name == key; })) {
        violations_.push_back({absl::StrCat(where, ": ", Quoted(key)),
                               "no limit; accepted: psnr_db_min, ssim_min, temporal_rmse_max, "
                               "audio_relative_l2_max"});
      }
    }
    for (const BoundField& field : kBoundFields) {
      if (!bounds->contains(field.name)) continue;
      Take(GetDouble(*bounds, where, field.name, field.min, field.max),
           &(contract_.bounds.*field.member));
    }
  }

  const absl::string_view where_;
  GenerationContract contract_;
  std::vector<FieldViolation> violations_;
};

}  // namespace

int64_t GenerationContract::AlignedFrames() const { return AlignFrames(num_frames); }
int64_t GenerationContract::LatentFrames() const { return (AlignedFrames() - 5) / 17 * 5 + 2; }
int64_t GenerationContract::LatentHeight() const { return height / kPixelsPerLatent; }
int64_t GenerationContract::LatentWidth() const { return width / kPixelsPerLatent; }

absl::StatusOr<GenerationContract> ParseGenerationContract(absl::string_view text,
                                                           absl::string_view where) {
  PLUMBLINE_ASSIGN_OR_RETURN(const json object,
                             ParseJson(text, where, {.max_bytes = 1 << 16, .max_values = 4096}));
  return Reader(where).Read(object);
}

absl::Status CheckContractFits(const GenerationContract& contract, const TransformerConfig& config,
                               absl::string_view where) {
  const int64_t frames = contract.AlignedFrames();
  if (config != ReleasedConfig() ||
      (frames >= kMinReleasedFrames && frames <= kMaxReleasedFrames)) {
    return absl::OkStatus();
  }
  return FieldError(absl::StrCat(where, ": num_frames"),
                    absl::StrCat(contract.num_frames, " frames, rounded up to ", frames,
                                 ", are no duration of the released model"),
                    absl::StrCat("5 to 15 s: ", kMinReleasedFrames, " to ", kMaxReleasedFrames,
                                 " frames once rounded up to 17 n + 5"));
}

absl::Status CheckContractDigests(const GenerationContract& contract,
                                  absl::string_view checkpoint_sha256,
                                  absl::string_view conditioning_sha256, absl::string_view where) {
  std::vector<FieldViolation> violations;
  for (const auto& [field, digest] : {std::make_pair(kDigestFields[0], checkpoint_sha256),
                                      std::make_pair(kDigestFields[1], conditioning_sha256)}) {
    const std::string& wanted = contract.*field.member;
    if (!wanted.empty() && wanted != digest) {
      violations.push_back(
          {absl::StrCat(where, ": ", field.name),
           absl::StrCat("the contract is for ", wanted, ", and what was given is ", digest)});
    }
  }
  return FieldErrors(violations);
}

std::string CanonicalContractJson(const GenerationContract& contract) {
  json object;  // Sorts its keys.
  object[std::string(kSeeds)] = contract.seeds;
  for (const IntField& field : kIntFields) object[std::string(field.name)] = contract.*field.member;
  for (const PositiveField& field : kPositiveFields) {
    object[std::string(field.name)] = contract.*field.member;
  }
  object[std::string(kRng)] = FormatRng(contract.rng);
  object[std::string(kDecoder)] = contract.decoder;
  for (const BoundField& field : kBoundFields) {
    object[std::string(kBounds)][std::string(field.name)] = contract.bounds.*field.member;
  }
  for (const DigestField& field : kDigestFields) {
    object[std::string(field.name)] = contract.*field.member;
  }
  return object.dump();
}

std::string ContractDigest(const GenerationContract& contract) {
  return Sha256Hex(CanonicalContractJson(contract));
}

}  // namespace plumbline::h3
