#include "worker/h3/conditioning.h"

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/sha256.h"
#include "common/status.h"
#include "kernels/numerics/bfloat16.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::h3 {
namespace {

constexpr absl::string_view kPromptEmbeds = "prompt_embeds";
constexpr absl::string_view kTextTokenTags = "text_token_tags";
constexpr absl::string_view kAnchors = "anchors";
constexpr int64_t kAny = -1;

struct Anchors {
  absl::string_view text;
  bool first;
  bool last;
};

constexpr Anchors kKnownAnchors[] = {
    {"", false, false},
    {"first", true, false},
    {"last", false, true},
    {"first,last", true, true},
};

bool Fits(absl::Span<const int64_t> shape, absl::Span<const int64_t> expected) {
  if (shape.size() != expected.size()) return false;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (expected[i] == kAny ? shape[i] < 1 || shape[i] > kMaxRows : shape[i] != expected[i]) {
      return false;
    }
  }
  return true;
}

// Widens to float32; the index of the first value that is not finite, or -1.
int64_t Widen(DType dtype, absl::Span<const uint8_t> bytes, absl::Span<float> to) {
  if (dtype == DType::kF32) {
    std::memcpy(to.data(), bytes.data(), bytes.size());
  } else {
    for (size_t i = 0; i < to.size(); ++i) {
      bfloat16 value;
      std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
      to[i] = WidenBf16(value);
    }
  }
  const auto bad = absl::c_find_if(to, [](float value) { return !std::isfinite(value); });
  return bad == to.end() ? -1 : bad - to.begin();
}

// Reads one file and collects what is wrong with it.
class Reader {
 public:
  explicit Reader(const SafetensorsFile& file) : file_(file) {}

  absl::StatusOr<Conditioning> Read(const TransformerConfig& config,
                                    const GenerationContract& contract) {
    ReadAnchors();
    PLUMBLINE_RETURN_IF_ERROR(
        ReadFloats(kPromptEmbeds, {1, kAny, config.text_dim}, &result_.prompt_embeds));
    if (!result_.prompt_embeds.tensor.IsNull()) ReadTags(result_.prompt_embeds.tensor.rows);
    const size_t keyframes = (result_.first_keyframe ? 1 : 0) + (result_.last_keyframe ? 1 : 0);
    result_.condition_latents.resize(keyframes);
    for (size_t i = 0; i < keyframes; ++i) {
      PLUMBLINE_RETURN_IF_ERROR(
          ReadFloats(absl::StrCat("condition_latents.", i),
                     {1, config.in_channels, 1, contract.LatentHeight(), contract.LatentWidth()},
                     &result_.condition_latents[i]));
    }
    RefuseOthers();
    PLUMBLINE_RETURN_IF_ERROR(FieldErrors(violations_));
    Identify();
    return std::move(result_);
  }

 private:
  void Refuse(absl::string_view name, absl::string_view description) {
    violations_.push_back({absl::StrCat(file_.path(), ": ", name), std::string(description)});
  }

  void ReadAnchors() {
    const auto found = file_.metadata().find(std::string(kAnchors));
    // Both sides are views: of "" and a string, C++ would make a string that is gone at once.
    const absl::string_view text =
        found == file_.metadata().end() ? absl::string_view() : absl::string_view(found->second);
    for (const Anchors& anchors : kKnownAnchors) {
      if (anchors.text != text) continue;
      result_.first_keyframe = anchors.first;
      result_.last_keyframe = anchors.last;
      return;
    }
    Refuse(absl::StrCat("__metadata__.", kAnchors),
           absl::StrCat("unknown keyframes ", Quoted(text),
                        "; accepted: first, last, first,last, or empty for none"));
  }

  // Null, with a violation, if there is no tensor of one of the types and the shape.
  const TensorInfo* Find(absl::string_view name, absl::Span<const DType> dtypes,
                         absl::Span<const int64_t> shape) {
    read_.emplace_back(name);
    const std::string accepted = absl::StrCat(
        "; accepted: ",
        absl::StrJoin(dtypes, " or ",
                      [](std::string* out, DType type) { absl::StrAppend(out, DTypeName(type)); }),
        " ", FormatShape(shape));
    const TensorInfo* tensor = file_.Find(name);
    if (tensor == nullptr) {
      Refuse(name, absl::StrCat("is missing", accepted));
      return nullptr;
    }
    const bool flat_in_a_batch = shape.size() == 1 && tensor->shape.size() == 2 &&
                                 tensor->shape[0] == 1 && tensor->shape[1] == shape[0];
    if (!absl::c_linear_search(dtypes, tensor->dtype) ||
        !(Fits(tensor->shape, shape) || flat_in_a_batch)) {
      Refuse(name, absl::StrCat("is ", DTypeName(tensor->dtype), " ", FormatShape(tensor->shape),
                                accepted));
      return nullptr;
    }
    return tensor;
  }

  // Sizes are bounded by those of the file, which has them on disk.
  absl::Status ReadFloats(absl::string_view name, const std::vector<int64_t>& shape,
                          HostTensor* to) {
    const TensorInfo* tensor = Find(name, {DType::kF32, DType::kBF16}, shape);
    if (tensor == nullptr) return absl::OkStatus();
    // (1, rows, width), or (1, channels, 1, height, width) without its axes of one.
    std::vector<int64_t> dense = tensor->shape;
    if (dense.size() == 5) dense = {dense[1], dense[3], dense[4]};
    PLUMBLINE_ASSIGN_OR_RETURN(HostTensor values,
                               AllocateHostTensor(DType::kF32, dense[0], dense[1], dense[2]));
    const absl::Span<float> floats(static_cast<float*>(values.tensor.data),
                                   static_cast<size_t>(values.tensor.NumElements()));
    const int64_t bad = Widen(tensor->dtype, file_.Bytes(*tensor), floats);
    if (bad >= 0) Refuse(name, absl::StrCat("value ", bad, " is not finite"));
    *to = std::move(values);
    return absl::OkStatus();
  }

  void ReadTags(int64_t text_rows) {
    const TensorInfo* tensor = Find(kTextTokenTags, {DType::kI64}, {text_rows});
    if (tensor == nullptr) return;
    result_.text_token_tags.resize(text_rows);
    const absl::Span<const uint8_t> bytes = file_.Bytes(*tensor);
    std::memcpy(result_.text_token_tags.data(), bytes.data(), bytes.size());
    for (size_t row = 0; row < result_.text_token_tags.size(); ++row) {
      const int64_t tag = result_.text_token_tags[row];
      if (tag == kTextTag || tag == kVideoTag) continue;
      Refuse(kTextTokenTags, absl::StrCat("row ", row, " has tag ", tag,
                                          "; accepted: 1 text, 0 in a keyframe's vision block"));
      return;
    }
  }

  void RefuseOthers() {
    for (const TensorInfo& tensor : file_.tensors()) {
      if (tensor.name == kTextTokenTags || absl::c_linear_search(read_, tensor.name)) continue;
      Refuse(Quoted(tensor.name),
             "is no tensor of this conditioning; accepted: prompt_embeds, text_token_tags, and "
             "condition_latents.N, from 0, for each of `anchors`");
    }
  }

  void Identify() {
    nlohmann::json object;  // Sorts its keys.
    object[std::string(kAnchors)] =
        absl::StrCat(result_.first_keyframe ? "first" : "",
                     result_.first_keyframe && result_.last_keyframe ? "," : "",
                     result_.last_keyframe ? "last" : "");
    for (const std::string& name : read_) {
      const TensorInfo& tensor = *file_.Find(name);
      nlohmann::json& entry = object["tensors"][name];
      entry["dtype"] = std::string(DTypeName(tensor.dtype));
      entry["shape"] = tensor.shape;
      entry["sha256"] = Sha256Hex(file_.Bytes(tensor));
    }
    result_.canonical_json = object.dump();
    result_.sha256 = Sha256Hex(result_.canonical_json);
  }

  const SafetensorsFile& file_;
  Conditioning result_;
  std::vector<std::string> read_;
  std::vector<FieldViolation> violations_;
};

}  // namespace

absl::StatusOr<Conditioning> ReadConditioning(const SafetensorsFile& file,
                                              const TransformerConfig& config,
                                              const GenerationContract& contract) {
  return Reader(file).Read(config, contract);
}

absl::StatusOr<LayoutSpec> GenerationLayout(const GenerationContract& contract,
                                            const Conditioning& conditioning,
                                            absl::string_view where) {
  LayoutSpec spec;
  spec.text_rows = conditioning.prompt_embeds.tensor.rows;
  spec.latent_frames = contract.LatentFrames();
  spec.latent_height = contract.LatentHeight();
  spec.latent_width = contract.LatentWidth();
  spec.audio_latents = contract.num_audio_latents;
  spec.first_keyframe = conditioning.first_keyframe;
  spec.last_keyframe = conditioning.last_keyframe;
  PLUMBLINE_RETURN_IF_ERROR(ValidateLayoutSpec(spec, where));
  return spec;
}

}  // namespace plumbline::h3
