#include "worker/h3/checkpoint.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/h3/config.h"
#include "worker/h3/file_weights.h"
#include "worker/h3/synthetic_weights.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kField = "checkpoint";
constexpr absl::string_view kSyntheticPrefix = "synthetic:";
constexpr uint64_t kDefaultSeed = 1;
constexpr size_t kMaxConfigBytes = 1 << 16;

absl::StatusOr<TransformerConfig> NamedConfig(absl::string_view name,
                                              const std::vector<std::string>& roots) {
  if (name == "released") return ReleasedConfig();
  if (name == "tiny") return TinyConfig();
  if (!absl::EndsWith(name, ".json")) {
    return FieldError(kField, absl::StrCat("unknown synthetic checkpoint ", Quoted(name)),
                      "synthetic:released, synthetic:tiny, synthetic:CONFIG.json, each with an "
                      "optional :SEED");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string path, ResolveUnderRoots(name, roots));
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMaxConfigBytes));
  return ParseTransformerConfig(text, name);
}

absl::StatusOr<std::shared_ptr<const WeightSource>> OpenSynthetic(
    absl::string_view name, const std::vector<std::string>& roots) {
  uint64_t seed = kDefaultSeed;
  if (const size_t colon = name.rfind(':'); colon != absl::string_view::npos) {
    const absl::string_view seed_text = name.substr(colon + 1);
    if (seed_text.empty() || !absl::ascii_isdigit(seed_text[0]) ||
        !absl::SimpleAtoi(seed_text, &seed)) {
      return FieldError(kField, absl::StrCat(Quoted(seed_text), " is no seed"),
                        "a whole number from 0 to 18446744073709551615");
    }
    name = name.substr(0, colon);
  }
  PLUMBLINE_ASSIGN_OR_RETURN(const TransformerConfig config, NamedConfig(name, roots));
  return MakeSyntheticWeights(config, seed);
}

absl::StatusOr<std::shared_ptr<const WeightSource>> Open(absl::string_view spec,
                                                         const std::vector<std::string>& roots) {
  if (absl::ConsumePrefix(&spec, kSyntheticPrefix)) return OpenSynthetic(spec, roots);
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string directory, ResolveUnderRoots(spec, roots));
  return OpenFileWeights(directory, roots);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const WeightSource>> OpenCheckpoint(
    absl::string_view spec, const std::vector<std::string>& roots) {
  absl::StatusOr<std::shared_ptr<const WeightSource>> weights = Open(spec, roots);
  if (weights.ok() || absl::IsResourceExhausted(weights.status())) return weights;
  // Whatever is wrong with the files is wrong with the request's field.
  absl::string_view message = weights.status().message();
  absl::ConsumePrefix(&message, absl::StrCat(kField, ": "));
  return FieldError(kField, message);
}

}  // namespace plumbline::h3
