#include "server/scheduler/spec_checker.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/chosen_name.h"
#include "common/vocabulary.h"
#include "server/resource_name.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/job_validation.h"

namespace plumbline::server {
namespace {

constexpr int kMaxLabels = 32;
constexpr size_t kMaxLabelBytes = 63;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxNameBytes = 255;
// As the workers' own limits.
constexpr int64_t kMaxRows = 1 << 22;
constexpr int32_t kMaxFrames = 1 << 16;
constexpr int32_t kMaxSide = 1 << 12;

std::string NamesOf(absl::Span<const NamedLayout> layouts) {
  return absl::StrJoin(layouts, ", ", [](std::string* out, const NamedLayout& layout) {
    absl::StrAppend(out, layout.name);
  });
}

bool IsWord(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

}  // namespace

void SpecChecker::Add(absl::string_view field, absl::string_view what, absl::string_view accepted) {
  violations_.push_back({std::string(field), absl::StrCat(what, "; accepted: ", accepted)});
}

void SpecChecker::Add(const absl::Status& status) {
  for (FieldViolation& violation : GetFieldViolations(status)) {
    violations_.push_back(std::move(violation));
  }
}

void SpecChecker::Range(absl::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value < min || value > max) {
    Add(field, absl::StrCat(value, " is out of range"), absl::StrCat(min, " to ", max));
  }
}

void SpecChecker::Size(absl::string_view field, int32_t value, int32_t max, bool even) {
  if (value < 1 || value > max || (even && value % 2 != 0)) {
    Add(field, absl::StrCat(value, " is not possible"),
        absl::StrCat(even ? "even numbers from 2 to " : "1 to ", max));
  }
}

void SpecChecker::Layout(const std::string& field, const v1::Layout& layout) {
  const bool has_sizes = layout.text_rows() != 0 || layout.frames() != 0 || layout.height() != 0 ||
                         layout.width() != 0 || layout.audio_latents() != 0 ||
                         layout.keyframes_size() != 0;
  if (!layout.name().empty()) {
    const auto named = NamedLayouts();
    if (std::none_of(named.begin(), named.end(),
                     [&](const NamedLayout& each) { return each.name == layout.name(); })) {
      Add(field + ".name", absl::StrCat("unknown layout ", Quoted(layout.name())),
          absl::StrCat(NamesOf(named), ", or no name and all sizes"));
    } else if (has_sizes) {
      Add(field, "has a name and sizes", "either a name or all sizes");
    }
    return;
  }
  const size_t before = violations_.size();
  Size(field + ".text_rows", layout.text_rows(), kMaxRows, false);
  Size(field + ".frames", layout.frames(), kMaxFrames, false);
  Size(field + ".height", layout.height(), kMaxSide, true);
  Size(field + ".width", layout.width(), kMaxSide, true);
  Size(field + ".audio_latents", layout.audio_latents(), kMaxRows, false);
  const std::vector<int> keyframes(layout.keyframes().begin(), layout.keyframes().end());
  static const auto* const kAccepted = new std::vector<std::vector<int>>{
      {}, {v1::KEYFRAME_FIRST}, {v1::KEYFRAME_LAST}, {v1::KEYFRAME_FIRST, v1::KEYFRAME_LAST}};
  if (std::find(kAccepted->begin(), kAccepted->end(), keyframes) == kAccepted->end()) {
    Add(field + ".keyframes", "are no keyframes", "none, first, last, first+last");
  }
  // Only of possible sizes, whose product does not overflow.
  if (violations_.size() == before && LayoutRows(layout) > kMaxRows) {
    Add(field, absl::StrCat("has ", LayoutRows(layout), " rows"),
        absl::StrCat("at most ", kMaxRows, " rows"));
  }
}

void SpecChecker::Path(const std::string& field, absl::string_view path) {
  const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
  if (path.empty() || path.size() > kMaxPathBytes || absl::StrContains(path, '\0') ||
      std::find(parts.begin(), parts.end(), "..") != parts.end()) {
    Add(field, absl::StrCat(Quoted(path), " is no path"),
        "a path under the worker's roots, without `..`");
    return;
  }
  Add(CheckRemark(path, field, kMaxPathBytes));
}

void SpecChecker::File(const std::string& field, const v1::InputFile& file) {
  switch (file.source_case()) {
    case v1::InputFile::kArtifact:
      if (const absl::StatusOr<std::string> id =
              ParseName(file.artifact(), "artifacts", field + ".artifact");
          !id.ok()) {
        Add(id.status());
      } else if (!has_artifact_(file.artifact())) {
        Add(field + ".artifact", absl::StrCat("there is no ", Quoted(file.artifact())),
            "a file that was uploaded or that a task made");
      }
      break;
    case v1::InputFile::kWorkerPath:
      Path(field + ".worker_path", file.worker_path());
      break;
    case v1::InputFile::SOURCE_NOT_SET:
      Add(field, "names no file", "artifact or worker_path");
  }
}

void SpecChecker::Checkpoint(const std::string& field, absl::string_view checkpoint) {
  constexpr absl::string_view kAccepted =
      "a folder under the worker's roots, or synthetic:NAME[:SEED] with NAME released, tiny or "
      "a configuration file (.json) and SEED from 0 to 18446744073709551615";
  absl::string_view rest = checkpoint;
  if (checkpoint.empty()) {
    Add(field, "is not set", kAccepted);
    return;
  }
  if (!absl::ConsumePrefix(&rest, "synthetic:")) {
    Path(field, checkpoint);
    return;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(rest, absl::MaxSplits(':', 1));
  uint64_t seed = 0;
  const bool is_name = parts[0] == "released" || parts[0] == "tiny";
  if ((!is_name && !absl::EndsWith(parts[0], ".json")) ||
      (parts.size() > 1 && !absl::SimpleAtoi(parts[1], &seed))) {
    Add(field, absl::StrCat("unknown checkpoint ", Quoted(checkpoint)), kAccepted);
  } else if (!is_name) {
    Path(field, parts[0]);
  }
}

void SpecChecker::Labels(const v1::JobSpec& spec) {
  if (spec.labels_size() > kMaxLabels) {
    Add("spec.labels", absl::StrCat("has ", spec.labels_size(), " labels"),
        absl::StrCat("at most ", kMaxLabels));
  }
  for (const auto& [key, value] : spec.labels()) {
    if (!IsWord(key) || key.size() > kMaxLabelBytes || value.size() > kMaxLabelBytes ||
        (!value.empty() && !IsWord(value))) {
      Add("spec.labels", absl::StrCat(Quoted(absl::StrCat(key, "=", value)), " is no label"),
          "keys and values of at most 63 of [A-Za-z0-9._-]");
    }
  }
}

void SpecChecker::Placement(const v1::Placement& placement) {
  Range("spec.placement.memory_bytes", placement.memory_bytes(), 0, int64_t{1} << 50);
  Add(CheckRemark(placement.device_class(), "spec.placement.device_class", kMaxNameBytes));
  Add(CheckRemark(placement.kernel_sha256(), "spec.placement.kernel_sha256", kMaxNameBytes));
  if (placement.worker_labels_size() > kMaxLabels) {
    Add("spec.placement.worker_labels", absl::StrCat("has ", placement.worker_labels_size()),
        absl::StrCat("at most ", kMaxLabels));
  }
  for (const auto& [key, value] : placement.worker_labels()) {
    Add(CheckChosenName(key, "spec.placement.worker_labels", kMaxNameBytes));
    Add(CheckRemark(value, "spec.placement.worker_labels", kMaxNameBytes));
  }
}

void SpecChecker::Layouts(const std::string& field,
                          google::protobuf::RepeatedPtrField<v1::Layout>* layouts) {
  if (layouts->empty()) layouts->Add()->set_name("tiny");
  if (layouts->size() > kMaxLayouts) {
    Add(field, absl::StrCat(layouts->size(), " layouts"), absl::StrCat("at most ", kMaxLayouts));
  }
  std::map<std::string, std::string> titles;  // By the sizes, which a name may stand for.
  bool twice = false;                         // Said of one, which says it of all.
  for (int i = 0; i < layouts->size(); ++i) {
    const std::string element = absl::StrCat(field, "[", i, "]");
    const size_t before = violations_.size();
    Layout(element, layouts->Get(i));
    if (violations_.size() != before) continue;
    v1::Layout sizes = ResolveLayout(layouts->Get(i));
    sizes.clear_name();
    const std::string title = LayoutTitle(layouts->Get(i));
    const auto [first, is_new] = titles.emplace(LayoutTitle(sizes), title);
    if (is_new || std::exchange(twice, true)) continue;
    Add(element,
        absl::StrCat(title, " is there twice",
                     first->second == title ? "" : absl::StrCat(", as ", first->second, " too")),
        "each layout once");
  }
}

void SpecChecker::ExpandSweep(google::protobuf::RepeatedPtrField<v1::Layout>* layouts) {
  google::protobuf::RepeatedPtrField<v1::Layout> expanded;
  for (const v1::Layout& layout : *layouts) {
    if (layout.name() != kSweepLayouts) {
      *expanded.Add() = layout;
      continue;
    }
    for (absl::string_view sizes : SweepLayouts()) *expanded.Add() = LayoutOfSizes(sizes);
  }
  layouts->Swap(&expanded);
}

void SpecChecker::Captures(const std::string& field, const v1::CaptureSet& captures) {
  if (captures.has_inputs()) File(field + ".inputs", captures.inputs());
  if (captures.has_golden()) File(field + ".golden", captures.golden());
  if (captures.has_candidate()) File(field + ".candidate", captures.candidate());
  for (const auto& [name, file] : captures.providers()) {
    const std::string provider = absl::StrCat(field, ".providers[", name, "]");
    Add(CheckChosenName(name, field + ".providers", kMaxNameBytes));
    if (name == "golden" || name == "candidate") {
      Add(provider, absl::StrCat(Quoted(name), " is another side of the comparison"),
          "a name of your own, or a provider's");
    }
    File(provider, file);
  }
}

void SpecChecker::Composition(int block, v1::JobSpec* spec) {
  if (spec->composition().empty()) spec->set_composition("candidate");
  absl::StatusOr<std::string> composition =
      CanonicalComposition(spec->composition(), block, "spec.composition");
  if (composition.ok()) {
    spec->set_composition(*std::move(composition));
  } else {
    Add(composition.status());
  }
}

void SpecChecker::Fault(absl::string_view job, const v1::CaptureSet& captures,
                        const std::string& fault) {
  if (fault.empty()) return;
  if (FindFault(job, fault) == nullptr) {
    Add("spec.inject", absl::StrCat("unknown fault ", Quoted(fault)), FaultNames(job));
  } else if (captures.has_candidate()) {
    Add("spec.inject", "no fault can be put into a captured candidate", "a candidate that runs");
  }
}

void SpecChecker::RefuseModelFields(const v1::JobSpec& spec) {
  const std::pair<absl::string_view, const std::string*> fields[] = {
      {"spec.checkpoint", &spec.checkpoint()},
      {"spec.composition", &spec.composition()},
      {"spec.inject", &spec.inject()}};
  for (const auto& [field, value] : fields) {
    if (!value->empty()) Add(field, "this kind of job runs no model", "nothing");
  }
}

}  // namespace plumbline::server
