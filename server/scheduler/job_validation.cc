#include "server/scheduler/job_validation.h"

#include <algorithm>
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
#include "common/status.h"
#include "common/vocabulary.h"
#include "server/resource_name.h"
#include "server/scheduler/job_plan.h"

namespace plumbline::server {
namespace {

constexpr int kMaxLabels = 32;
constexpr size_t kMaxLabelBytes = 63;
constexpr int kMaxPriority = 100;
constexpr size_t kMaxPathBytes = 4096;
constexpr size_t kMaxCompositionBytes = 64 << 10;
constexpr int kMaxLayouts = 1000;
// As the workers' own limits.
constexpr int64_t kMaxRows = 1 << 22;
constexpr int32_t kMaxFrames = 1 << 16;
constexpr int32_t kMaxSide = 1 << 12;

constexpr absl::string_view kImplementations[] = {"golden",
                                                  "provider/default",
                                                  "provider/sdpa-flash",
                                                  "provider/sdpa-efficient",
                                                  "provider/sdpa-math",
                                                  "provider/blas-cublaslt",
                                                  "candidate"};

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

// Collects what is wrong, so that a caller sees all of it at once.
class Checker {
 public:
  explicit Checker(const std::function<bool(const std::string&)>& has_artifact)
      : has_artifact_(has_artifact) {}

  absl::Status Result() const { return FieldErrors(violations_); }

  void Add(absl::string_view field, absl::string_view what, absl::string_view accepted) {
    violations_.push_back({std::string(field), absl::StrCat(what, "; accepted: ", accepted)});
  }
  void Add(const absl::Status& status) {
    for (FieldViolation& violation : GetFieldViolations(status)) {
      violations_.push_back(std::move(violation));
    }
  }

  void Range(absl::string_view field, int64_t value, int64_t min, int64_t max) {
    if (value < min || value > max) {
      Add(field, absl::StrCat(value, " is out of range"), absl::StrCat(min, " to ", max));
    }
  }

  void Size(absl::string_view field, int32_t value, int32_t max, bool even) {
    if (value < 1 || value > max || (even && value % 2 != 0)) {
      Add(field, absl::StrCat(value, " is not possible"),
          absl::StrCat(even ? "even numbers from 2 to " : "1 to ", max));
    }
  }

  void Layout(const std::string& field, const v1::Layout& layout) {
    const bool has_sizes = layout.text_rows() != 0 || layout.frames() != 0 ||
                           layout.height() != 0 || layout.width() != 0 ||
                           layout.audio_latents() != 0 || layout.keyframes_size() != 0;
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

  void Path(const std::string& field, absl::string_view path) {
    const std::vector<absl::string_view> parts = absl::StrSplit(path, '/');
    if (path.empty() || path.size() > kMaxPathBytes || absl::StrContains(path, '\0') ||
        std::find(parts.begin(), parts.end(), "..") != parts.end()) {
      Add(field, absl::StrCat(Quoted(path), " is no path"),
          "a path under the worker's roots, without `..`");
    }
  }

  void File(const std::string& field, const v1::InputFile& file) {
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

  void Checkpoint(const std::string& field, absl::string_view checkpoint) {
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

  void Labels(const v1::JobSpec& spec) {
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

 private:
  const std::function<bool(const std::string&)>& has_artifact_;
  std::vector<FieldViolation> violations_;
};

void CheckBlockReplay(v1::JobSpec* spec, Checker* checker) {
  v1::BlockReplaySpec& replay = *spec->mutable_block_replay();
  checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  checker->Range("spec.block_replay.block", replay.block(), 0, 9999);
  if (replay.layouts().empty() && !replay.has_captures()) replay.add_layouts()->set_name("tiny");
  if (replay.layouts_size() > kMaxLayouts) {
    checker->Add("spec.block_replay.layouts", absl::StrCat(replay.layouts_size(), " layouts"),
                 absl::StrCat("at most ", kMaxLayouts));
  }
  for (int i = 0; i < replay.layouts_size(); ++i) {
    checker->Layout(absl::StrCat("spec.block_replay.layouts[", i, "]"), replay.layouts(i));
  }
  const v1::CaptureSet& captures = replay.captures();
  const std::string field = "spec.block_replay.captures";
  if (captures.has_inputs()) checker->File(field + ".inputs", captures.inputs());
  if (captures.has_golden()) checker->File(field + ".golden", captures.golden());
  if (captures.has_candidate()) checker->File(field + ".candidate", captures.candidate());
  for (const auto& [name, file] : captures.providers()) {
    checker->File(absl::StrCat(field, ".providers[", name, "]"), file);
  }
  if (replay.has_captures() && replay.layouts_size() > 1) {
    checker->Add("spec.block_replay.layouts", "captures have one layout", "one layout, or none");
  }

  if (spec->composition().empty()) spec->set_composition("candidate");
  absl::StatusOr<std::string> composition =
      CanonicalComposition(spec->composition(), replay.block(), "spec.composition");
  if (composition.ok()) {
    spec->set_composition(*std::move(composition));
  } else {
    checker->Add(composition.status());
  }
  if (!spec->inject().empty()) {
    if (FindFault(KindName(v1::JOB_KIND_BLOCK_REPLAY), spec->inject()) == nullptr) {
      checker->Add("spec.inject", absl::StrCat("unknown fault ", Quoted(spec->inject())),
                   FaultNames(KindName(v1::JOB_KIND_BLOCK_REPLAY)));
    } else if (captures.has_candidate()) {
      checker->Add("spec.inject", "no fault can be put into a captured candidate",
                   "a candidate that runs");
    }
  }
}

// Kinds that run no model.
void RefuseModelFields(const v1::JobSpec& spec, Checker* checker) {
  const std::pair<absl::string_view, const std::string*> fields[] = {
      {"spec.checkpoint", &spec.checkpoint()},
      {"spec.composition", &spec.composition()},
      {"spec.inject", &spec.inject()}};
  for (const auto& [field, value] : fields) {
    if (!value->empty()) checker->Add(field, "this kind of job runs no model", "nothing");
  }
}

}  // namespace

absl::Status ValidateSpec(const std::function<bool(const std::string&)>& has_artifact,
                          v1::JobSpec* spec) {
  Checker checker(has_artifact);
  checker.Labels(*spec);
  checker.Range("spec.priority", spec->priority(), -kMaxPriority, kMaxPriority);
  checker.Range("spec.placement.memory_bytes", spec->placement().memory_bytes(), 0,
                int64_t{1} << 50);
  if (!spec->plugins().empty()) {
    checker.Add("spec.plugins", "this server takes no uploaded plug-ins", "nothing");
  }
  switch (spec->kind_case()) {
    case v1::JobSpec::kBlockReplay:
      CheckBlockReplay(spec, &checker);
      break;
    case v1::JobSpec::kLayout:
      RefuseModelFields(*spec, &checker);
      if (!spec->layout().has_layout()) {
        checker.Add("spec.layout.layout", "is not set", NamesOf(NamedLayouts()));
      } else {
        checker.Layout("spec.layout.layout", spec->layout().layout());
      }
      break;
    case v1::JobSpec::kComparison:
      RefuseModelFields(*spec, &checker);
      if (!spec->comparison().has_tensors()) {
        checker.Add("spec.comparison", "names nothing to compare", "tensors");
        break;
      }
      checker.File("spec.comparison.tensors.a", spec->comparison().tensors().a());
      checker.File("spec.comparison.tensors.b", spec->comparison().tensors().b());
      break;
    default:
      checker.Add("spec", "has no kind", "block_replay, layout or comparison");
  }
  return checker.Result();
}

absl::StatusOr<std::string> CanonicalComposition(absl::string_view text, int block,
                                                 absl::string_view field) {
  constexpr absl::string_view kGrammar =
      "BASE ('+' IMPL ':' NODE (',' NODE)*)*, e.g. candidate+provider:attention,swiglu";
  if (text.size() > kMaxCompositionBytes) {
    return FieldError(field, "is longer than 64 KiB", kGrammar);
  }
  const auto canonical_implementation =
      [field](absl::string_view name) -> absl::StatusOr<std::string> {
    if (name == "provider") return std::string("provider/default");
    absl::string_view plugin = name;
    const bool known = std::find(std::begin(kImplementations), std::end(kImplementations), name) !=
                       std::end(kImplementations);
    if (known || (absl::ConsumePrefix(&plugin, "plugin/") && IsWord(plugin))) {
      return std::string(name);
    }
    return FieldError(
        field, absl::StrCat("unknown implementation ", Quoted(name)),
        absl::StrCat("provider, ", absl::StrJoin(kImplementations, ", "), ", plugin/NAME"));
  };
  const auto is_node = [block](absl::string_view node) {
    const bool is_one = absl::ConsumePrefix(&node, absl::StrCat("block.", block, "/"));
    const auto is = [node](absl::string_view known) { return known == node; };
    return std::any_of(BlockNodes().begin(), BlockNodes().end(), is) ||
           (!is_one && std::any_of(NodeGroups().begin(), NodeGroups().end(), is));
  };
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '+');
  PLUMBLINE_ASSIGN_OR_RETURN(std::string canonical, canonical_implementation(parts[0]));
  for (size_t i = 1; i < parts.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(parts[i], absl::MaxSplits(':', 1));
    if (halves.second.empty()) {
      return FieldError(field, absl::StrCat(Quoted(parts[i]), " is not IMPL:NODE"), kGrammar);
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string implementation,
                               canonical_implementation(halves.first));
    for (absl::string_view node : absl::StrSplit(halves.second, ',')) {
      if (is_node(node)) continue;
      return FieldError(
          field, absl::StrCat("unknown node ", Quoted(node)),
          absl::StrCat(absl::StrJoin(BlockNodes(), ", "), ", ", absl::StrJoin(NodeGroups(), ", "),
                       ", or block.", block, "/NODE"));
    }
    absl::StrAppend(&canonical, "+", implementation, ":", halves.second);
  }
  return canonical;
}

}  // namespace plumbline::server
