#include "server/scheduler/job_validation.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "server/scheduler/checkpoint_validation.h"
#include "server/scheduler/full_model_validation.h"
#include "server/scheduler/generation_validation.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/media_validation.h"
#include "server/scheduler/spec_checker.h"

namespace plumbline::server {
namespace {

constexpr int kMaxPriority = 100;
constexpr size_t kMaxCompositionBytes = 64 << 10;
constexpr int kMaxBlock = 9999;
constexpr int kMaxPlugins = 8;

// Whether a block replay has the entry only with its backward.
bool IsOfBackward(absl::string_view entry) {
  return absl::EndsWith(entry, ".grad") || absl::StartsWith(entry, "leaf.");
}

bool IsOneOf(absl::string_view text, absl::Span<const absl::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

// Removes "PLACE.N/" from the front.
bool ConsumePlace(absl::string_view place, absl::string_view* node) {
  absl::string_view rest = *node;
  if (!absl::ConsumePrefix(&rest, absl::StrCat(place, "."))) return false;
  const size_t slash = rest.find('/');
  const absl::string_view index = rest.substr(0, slash);
  if (slash == absl::string_view::npos || index.empty() || index.size() > 4 ||
      !std::all_of(index.begin(), index.end(), absl::ascii_isdigit)) {
    return false;
  }
  *node = rest.substr(slash + 1);
  return true;
}

// How many blocks there are only a worker knows.
bool IsNode(absl::string_view node, int block) {
  if (block != kWholeModel) {
    if (absl::ConsumePrefix(&node, absl::StrCat("block.", block, "/"))) {
      return IsOneOf(node, BlockNodes());
    }
    return IsOneOf(node, BlockNodes()) || IsOneOf(node, NodeGroups());
  }
  if (ConsumePlace("block", &node) || ConsumePlace("refiner", &node)) {
    return IsOneOf(node, BlockNodes());
  }
  return IsOneOf(node, BlockNodes()) || IsOneOf(node, NodeGroups()) ||
         IsOneOf(node, BoundaryNodes());
}

std::string AcceptedNodes(int block) {
  std::string accepted =
      absl::StrCat(absl::StrJoin(BlockNodes(), ", "), ", ", absl::StrJoin(NodeGroups(), ", "));
  if (block != kWholeModel) return absl::StrCat(accepted, ", or block.", block, "/NODE");
  return absl::StrCat(accepted, ", ", absl::StrJoin(BoundaryNodes(), ", "),
                      ", or block.N/NODE, refiner.N/NODE");
}

void CheckBlockReplay(v1::JobSpec* spec, SpecChecker* checker) {
  v1::BlockReplaySpec& replay = *spec->mutable_block_replay();
  checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  checker->Range("spec.block_replay.block", replay.block(), 0, kMaxBlock);
  SpecChecker::ExpandSweep(replay.mutable_layouts());
  if (!replay.layouts().empty() || !replay.has_captures()) {
    checker->Layouts("spec.block_replay.layouts", replay.mutable_layouts());
  }
  checker->Captures("spec.block_replay.captures", replay.captures());
  if (replay.has_captures() && replay.layouts_size() > 1) {
    checker->Add("spec.block_replay.layouts", "captures have one layout", "one layout, or none");
  }
  checker->Composition(replay.block(), spec);
  checker->Fault(KindName(v1::JOB_KIND_BLOCK_REPLAY), replay.captures(), spec->inject());
  const FaultInfo* const fault = FindFault(KindName(v1::JOB_KIND_BLOCK_REPLAY), spec->inject());
  if (fault != nullptr && !replay.backward() && IsOfBackward(fault->expected_entry)) {
    checker->Add("spec.inject",
                 absl::StrCat(Quoted(fault->name), " is a fault of the backward, at ",
                              fault->expected_entry),
                 "with backward");
  }
}

void CheckComparison(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->RefuseModelFields(spec);
  switch (spec.comparison().subject_case()) {
    case v1::ComparisonSpec::kTensors:
      checker->File("spec.comparison.tensors.a", spec.comparison().tensors().a());
      checker->File("spec.comparison.tensors.b", spec.comparison().tensors().b());
      break;
    case v1::ComparisonSpec::kMedia:
      CheckMediaPair(spec.comparison().media(), checker);
      break;
    case v1::ComparisonSpec::kGenerations:
      CheckGenerationPair(spec.comparison().generations(), checker);
      break;
    default:
      checker->Add("spec.comparison", "names nothing to compare", "tensors, media or generations");
  }
}

void CheckLayout(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->RefuseModelFields(spec);
  if (spec.layout().has_layout()) {
    checker->Layout("spec.layout.layout", spec.layout().layout());
    return;
  }
  std::vector<absl::string_view> names;
  for (const NamedLayout& layout : NamedLayouts()) names.push_back(layout.name);
  checker->Add("spec.layout.layout", "is not set", absl::StrJoin(names, ", "));
}

// Plug-ins that the job brings.
void CheckPlugins(const v1::JobSpec& spec, const std::function<bool(const std::string&)>& is_plugin,
                  SpecChecker* checker) {
  if (spec.plugins().empty()) return;
  if (is_plugin == nullptr) {
    checker->Add("spec.plugins", "this server takes no uploaded plug-ins",
                 "plug-ins that a worker has (`plumbline workers list`), or a server and workers "
                 "that were started with --allow-plugin-uploads");
    return;
  }
  if (spec.plugins_size() > kMaxPlugins) {
    checker->Add("spec.plugins", absl::StrCat("has ", spec.plugins_size()),
                 absl::StrCat("at most ", kMaxPlugins));
    return;
  }
  if (!absl::StrContains(spec.composition(), "plugin/")) {
    checker->Add("spec.plugins", "the composition names no plug-in",
                 "candidate+plugin/NAME:NODE, or no plug-in");
  }
  for (int i = 0; i < spec.plugins_size(); ++i) {
    const std::string field = absl::StrCat("spec.plugins[", i, "]");
    const v1::InputFile& file = spec.plugins(i);
    // A worker's own plug-ins lie in its folders and need no file.
    if (!file.has_artifact() || !is_plugin(file.artifact())) {
      checker->Add(field, absl::StrCat(Quoted(file.artifact()), " is no uploaded plug-in"),
                   "an artifact that was uploaded with `plugin`");
    }
  }
}

}  // namespace

absl::Status ValidateSpec(const std::function<bool(const std::string&)>& has_artifact,
                          const std::function<bool(const std::string&)>& is_plugin,
                          v1::JobSpec* spec) {
  SpecChecker checker(has_artifact);
  checker.Labels(*spec);
  checker.Placement(spec->placement());
  checker.Range("spec.priority", spec->priority(), -kMaxPriority, kMaxPriority);
  CheckPlugins(*spec, is_plugin, &checker);
  switch (spec->kind_case()) {
    case v1::JobSpec::kBlockReplay:
      CheckBlockReplay(spec, &checker);
      break;
    case v1::JobSpec::kFullModel:
      CheckFullModel(spec, &checker);
      break;
    case v1::JobSpec::kSweep:
      CheckSweep(spec, &checker);
      break;
    case v1::JobSpec::kRule:
      CheckRule(*spec, &checker);
      break;
    case v1::JobSpec::kVerdict:
      CheckVerdict(*spec, &checker);
      break;
    case v1::JobSpec::kGeneration:
      CheckGeneration(spec, &checker);
      break;
    case v1::JobSpec::kDiagnostic:
      CheckDiagnostic(spec, &checker);
      break;
    case v1::JobSpec::kDecode:
      CheckDecode(spec, &checker);
      break;
    case v1::JobSpec::kCheckpointCheck:
      CheckCheckpoint(*spec, &checker);
      break;
    case v1::JobSpec::kSelftest:
      CheckSelftest(*spec, &checker);
      break;
    case v1::JobSpec::kLayout:
      CheckLayout(*spec, &checker);
      break;
    case v1::JobSpec::kComparison:
      CheckComparison(*spec, &checker);
      break;
    default:
      checker.Add("spec", "has no kind",
                  "block_replay, full_model, sweep, generation, decode, diagnostic, "
                  "checkpoint_check, rule, verdict, layout, comparison or selftest");
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
    const bool known = IsOneOf(name, Implementations());
    if (known || (absl::ConsumePrefix(&plugin, "plugin/") && IsPluginName(plugin))) {
      return std::string(name);
    }
    return FieldError(field, absl::StrCat("unknown implementation ", Quoted(name)),
                      absl::StrCat("provider, ", absl::StrJoin(Implementations(), ", "),
                                   ", plugin/NAME with a NAME of ", kPluginNameForm));
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
      if (IsNode(node, block)) continue;
      return FieldError(field, absl::StrCat("unknown node ", Quoted(node)), AcceptedNodes(block));
    }
    absl::StrAppend(&canonical, "+", implementation, ":", halves.second);
  }
  return canonical;
}

}  // namespace plumbline::server
