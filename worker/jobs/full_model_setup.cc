#include "worker/jobs/full_model_setup.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/files.h"
#include "common/status.h"
#include "common/vocabulary.h"
#include "worker/drift/capture_names.h"
#include "worker/drift/rule.h"
#include "worker/drift/rule_file.h"
#include "worker/h3/transformer_graph.h"
#include "worker/jobs/full_model_ablation.h"
#include "worker/jobs/run_inputs.h"

namespace plumbline::jobs {
namespace {

constexpr char kGolden[] = "golden";
constexpr char kProvider[] = "provider/";
constexpr char kDefaultProvider[] = "provider/default";
constexpr char kCandidate[] = "candidate";
constexpr char kRuleField[] = "full_model.rule";
constexpr size_t kMaxRuleBytes = 64 << 20;

std::string Variants() { return absl::StrJoin(ProviderVariants(), ", "); }

// "provider/sdpa-flash" for "sdpa-flash", "provider/default" for "provider"; other names stay.
std::string CanonicalProvider(absl::string_view name) {
  if (name == "provider") return kDefaultProvider;
  const auto variants = ProviderVariants();
  const bool is_variant = std::find(variants.begin(), variants.end(), name) != variants.end();
  return is_variant ? absl::StrCat(kProvider, name) : std::string(name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FullModelSetup>> FullModelSetup::Make(
    const v1::JobSpec& spec, const FullModelFiles& files, const h3::WeightSource& weights,
    const JobEnvironment& environment) {
  auto setup = std::make_unique<FullModelSetup>(weights, environment);
  const v1::FullModelSpec& full_model = spec.full_model();
  PLUMBLINE_RETURN_IF_ERROR(setup->ReadInputs(spec, files));
  PLUMBLINE_RETURN_IF_ERROR(setup->ResolveGolden());
  PLUMBLINE_RETURN_IF_ERROR(setup->ResolveProviders(full_model));
  PLUMBLINE_RETURN_IF_ERROR(setup->ResolveCandidate(spec));
  PLUMBLINE_RETURN_IF_ERROR(setup->CheckCaptures());
  PLUMBLINE_RETURN_IF_ERROR(setup->PrepareFault(spec.inject()));
  if (full_model.ablation()) PLUMBLINE_RETURN_IF_ERROR(setup->PrepareAblation());
  PLUMBLINE_RETURN_IF_ERROR(setup->ChooseKept(full_model));
  PLUMBLINE_RETURN_IF_ERROR(setup->ReadRule(files, full_model.allow_other_device()));
  return setup;
}

absl::Status FullModelSetup::ReadInputs(const v1::JobSpec& spec, const FullModelFiles& files) {
  if (!spec.has_full_model()) return FieldError("kind", "is not a full model", "full_model");
  const v1::FullModelSpec& full_model = spec.full_model();
  if (full_model.layouts_size() > 1) {
    return FieldError("full_model.layouts",
                      absl::StrCat("one task runs one layout, not ", full_model.layouts_size()),
                      "one layout");
  }
  save_tensors = spec.save_tensors();
  PLUMBLINE_ASSIGN_OR_RETURN(captures, OpenFullModelCaptures(files));
  PLUMBLINE_ASSIGN_OR_RETURN(inputs, MakeFullModelInputs(full_model, captures, weights.config()));
  graph = h3::BuildTransformerGraph(weights.config());
  rows = RowsOf(inputs.values.layout);
  inventory = h3::MakeInventory(weights.config(), graph, rows);
  return absl::OkStatus();
}

absl::StatusOr<h3::ResolvedComposition> FullModelSetup::Resolve(absl::string_view text) const {
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::Composition parsed, h3::ParseComposition(text));
  return h3::ResolveComposition(parsed, graph, *environment.context.registry,
                                environment.context.device->kind());
}

absl::Status FullModelSetup::ResolveGolden() {
  golden.name = kGolden;
  golden.capture = captures.golden.get();
  if (golden.capture != nullptr) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(golden.composition, Resolve(kGolden));
  return absl::OkStatus();
}

// Those asked for, in their order, then captures under names of the client's own.
absl::Status FullModelSetup::ResolveProviders(const v1::FullModelSpec& spec) {
  std::vector<std::string> names;
  for (const std::string& name : spec.providers()) names.push_back(CanonicalProvider(name));
  if (names.empty()) {
    for (absl::string_view variant : ProviderVariants())
      names.push_back(CanonicalProvider(variant));
  }
  std::map<std::string, const SafetensorsFile*> captured;
  for (const auto& [name, file] : captures.providers) {
    const std::string canonical = CanonicalProvider(name);
    if (!captured.emplace(canonical, file.get()).second) {
      return FieldError("full_model.captures.providers", absl::StrCat(canonical, " is given twice"),
                        "one capture a name");
    }
    if (std::find(names.begin(), names.end(), canonical) == names.end()) {
      names.push_back(canonical);
    }
  }
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    if (std::find(names.begin(), names.begin() + i, name) != names.begin() + i) {
      return FieldError("full_model.providers", absl::StrCat(name, " is named twice"), Variants());
    }
    FullModelSide side;
    side.name = name;
    if (const auto found = captured.find(name); found != captured.end()) {
      side.capture = found->second;
    } else {
      absl::StatusOr<h3::ResolvedComposition> resolved = Resolve(name);
      if (!absl::StartsWith(name, kProvider) || !resolved.ok()) {
        return FieldError("full_model.providers",
                          absl::StrCat("there is no provider ", Quoted(name)),
                          absl::StrCat(Variants(), ", or the name of a captured provider"));
      }
      side.composition = *std::move(resolved);
    }
    providers.push_back(std::move(side));
  }
  return absl::OkStatus();
}

absl::Status FullModelSetup::ResolveCandidate(const v1::JobSpec& spec) {
  const std::string text = spec.composition().empty() ? kCandidate : spec.composition();
  PLUMBLINE_ASSIGN_OR_RETURN(composition, h3::ParseComposition(text));
  if (spec.full_model().freeze_rule()) {
    const std::pair<absl::string_view, bool> unused[] = {
        {"full_model.captures.candidate", captures.candidate != nullptr},
        {"inject", !spec.inject().empty()},
        {"full_model.ablation", spec.full_model().ablation()},
        {"save_tensors", spec.save_tensors()}};
    for (const auto& [field, given] : unused) {
      if (given) {
        return FieldError(field, "a rule is frozen without a candidate", "nothing");
      }
    }
  } else {
    candidate.emplace();
    candidate->name = captures.candidate == nullptr ? composition.ToString() : kCandidate;
    candidate->capture = captures.candidate.get();
    if (candidate->capture == nullptr) {
      PLUMBLINE_ASSIGN_OR_RETURN(candidate->composition, Resolve(text));
    } else if (composition.ToString() != kCandidate) {
      return FieldError(
          "composition",
          absl::StrCat(composition.ToString(), " cannot run: a capture is the candidate"),
          "candidate, or no captured candidate");
    } else if (save_tensors) {
      return FieldError("save_tensors", "the candidate's tensors are those of the capture",
                        "a composition that runs");
    }
  }
  const bool rule_given = spec.full_model().has_rule();
  if (!rule_given && !CandidateIsReference() &&
      static_cast<int>(providers.size()) < drift::kLeastProviders) {
    return FieldError(
        "full_model.providers",
        absl::StrCat("a rule needs ", drift::kLeastProviders, " providers, not ", providers.size()),
        absl::StrCat(Variants(), "; or a rule that was made before"));
  }
  return absl::OkStatus();
}

// References must be whole. What a candidate lacks or has too many fails its gates instead.
absl::Status FullModelSetup::CheckCaptures() {
  std::vector<drift::CapturedTensor> required;
  for (const h3::InventoryTensor& tensor : inventory) {
    required.push_back({tensor.name, tensor.shape});
  }
  const auto check = [&](absl::string_view name, const SafetensorsFile* file) -> absl::Status {
    if (file == nullptr) return absl::OkStatus();
    return drift::CheckCaptureNames(absl::StrCat("full_model.captures.", name), *file, "a model",
                                    required, h3::IsFullModelInputName);
  };
  PLUMBLINE_RETURN_IF_ERROR(check("golden", captures.golden.get()));
  for (const auto& [name, file] : captures.providers) {
    PLUMBLINE_RETURN_IF_ERROR(check(absl::StrCat("providers[", name, "]"), file.get()));
  }
  if (captures.inputs != nullptr) {
    for (const TensorInfo& tensor : captures.inputs->tensors()) {
      if (h3::IsFullModelInputName(tensor.name)) continue;
      return FieldError("full_model.captures.inputs",
                        absl::StrCat(Quoted(tensor.name), " is no input of the model"),
                        "input.*, upstream.video, upstream.audio and the layout's tensors");
    }
  }
  if (captures.candidate == nullptr) return absl::OkStatus();
  absl::flat_hash_set<absl::string_view> known;
  for (const h3::InventoryTensor& tensor : inventory) known.insert(tensor.name);
  for (const TensorInfo& tensor : captures.candidate->tensors()) {
    if (h3::IsFullModelInputName(tensor.name)) continue;
    if (!known.contains(tensor.name)) {
      extra.push_back(tensor.name);
    } else if (!drift::IsComparableType(tensor.dtype)) {
      return FieldError("full_model.captures.candidate",
                        absl::StrCat(tensor.name, " has type ", DTypeName(tensor.dtype)),
                        "BF16, F32, F64");
    }
  }
  return absl::OkStatus();
}

int FullModelSetup::DefaultProvider() const {
  for (size_t i = 0; i < providers.size(); ++i) {
    if (providers[i].name == kDefaultProvider) return static_cast<int>(i);
  }
  return -1;
}

bool FullModelSetup::CandidateIsReference() const {
  return candidate.has_value() && candidate->capture == nullptr && !composition.IsHybrid() &&
         (composition.base == kGolden || absl::StartsWith(composition.base, kProvider));
}

absl::Status FullModelSetup::PrepareFault(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  if (candidate->capture != nullptr) {
    return FieldError("inject", "a captured candidate cannot be changed",
                      "a composition that runs");
  }
  if (CandidateIsReference()) {
    return FieldError("inject",
                      absl::StrCat(candidate->name, " is not judged, so no fault is found in it"),
                      "a candidate");
  }
  PLUMBLINE_ASSIGN_OR_RETURN(
      drift::Fault made,
      drift::MakeFullModelFault(name,
                                {graph, /*block=*/0, weights, *environment.context.registry,
                                 *environment.context.device, *candidate->composition->grad_sum}));
  inert_fault = drift::InertAt(*made.info, inputs.values.layout);
  if (!inert_fault.empty()) return absl::OkStatus();
  fault = std::move(made);
  candidate->operation_faults = fault->operations;
  candidate->reads_faulty_weights = fault->weights != nullptr;
  candidate->reads_faulty_inputs = fault->change_layout != nullptr;
  return absl::OkStatus();
}

absl::Status FullModelSetup::PrepareAblation() {
  const int provider = DefaultProvider();
  if (candidate->capture != nullptr || CandidateIsReference()) {
    return FieldError("full_model.ablation",
                      absl::StrCat("no node of ", candidate->name, " can be replaced"),
                      "a candidate that runs");
  }
  if (provider < 0 || !providers[provider].composition.has_value()) {
    return FieldError("full_model.ablation", "provider/default does not run",
                      "with `default` among the providers, and not as a capture");
  }
  for (absl::string_view group : AblationGroups()) {
    AblatedSide ablated;
    ablated.group = std::string(group);
    const std::string text =
        absl::StrCat(composition.ToString(), "+", kDefaultProvider, ":", group);
    PLUMBLINE_ASSIGN_OR_RETURN(h3::ResolvedComposition resolved, Resolve(text));
    ablated.empty = !resolved.empty_overrides.empty() &&
                    resolved.empty_overrides.back() == absl::StrCat(kDefaultProvider, ":", group);
    ablated.side.name = text;
    if (fault.has_value()) {
      PLUMBLINE_RETURN_IF_ERROR(KeepFaultOfOwnNodes(graph, *candidate->composition, resolved,
                                                    *fault, weights, &ablated.side));
    }
    ablated.side.composition = std::move(resolved);
    ablation.push_back(std::move(ablated));
  }
  return absl::OkStatus();
}

absl::Status FullModelSetup::ChooseKept(const v1::FullModelSpec& spec) {
  kept.assign(inventory.size(), false);
  for (int i = 0; i < spec.keep_size(); ++i) {
    bool any = false;
    for (size_t index = 0; index < inventory.size(); ++index) {
      if (fnmatch(spec.keep(i).c_str(), inventory[index].name.c_str(), 0) != 0) continue;
      kept[index] = true;
      any = true;
    }
    if (!any) {
      return FieldError(absl::StrCat("full_model.keep[", i, "]"),
                        absl::StrCat("no tensor is called ", Quoted(spec.keep(i))),
                        absl::StrCat("names such as ", inventory.front().name, " or ",
                                     inventory.back().name, ", or patterns with * and ?"));
    }
  }
  return absl::OkStatus();
}

absl::Status FullModelSetup::ReadRule(const FullModelFiles& files, bool allow_other_device) {
  std::vector<std::string> names;
  for (const h3::InventoryTensor& tensor : inventory) names.push_back(tensor.name);
  PLUMBLINE_ASSIGN_OR_RETURN(*binds.mutable_checkpoint_sha256(), weights.Digest());
  binds.set_inputs_sha256(inputs.Sha256());
  binds.set_tensor_names_sha256(drift::TensorNamesSha256(names));
  binds.set_device_class(environment.context.device->DeviceClass());
  if (files.rule.empty()) return absl::OkStatus();
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(files.rule, kMaxRuleBytes));
  PLUMBLINE_ASSIGN_OR_RETURN(rule, drift::ReadRule(text, kRuleField));
  std::vector<FieldViolation> violations =
      GetFieldViolations(drift::CheckBinds(*rule, binds, names, allow_other_device));
  for (FieldViolation& violation : violations) {
    violation.field = absl::StrCat(kRuleField, ": ", violation.field);
  }
  return FieldErrors(violations);
}

}  // namespace plumbline::jobs
