#include "server/scheduler/full_model_validation.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/chosen_name.h"
#include "common/vocabulary.h"
#include "server/scheduler/job_plan.h"
#include "server/scheduler/job_validation.h"

namespace plumbline::server {
namespace {

constexpr size_t kMaxFileNameBytes = 255;
constexpr int kMaxBlock = 9999;
constexpr int kMaxPatterns = 100;
constexpr size_t kMaxPatternBytes = 256;
// So that a task's report is one message.
constexpr int kMaxSeeds = 1000;
constexpr int kMaxSwappedSeeds = 40;
constexpr int kMaxBundleFiles = 1000;
constexpr size_t kMaxKeyBytes = 4096;
constexpr uint64_t kDefaultSeeds = 10;
// Fewer make no ensemble.
constexpr size_t kLeastProviders = 3;
constexpr absl::string_view kReport = "report.json";
constexpr absl::string_view kSums = "SHA256SUMS";

// A provider's name as reports have it.
std::string CanonicalProvider(absl::string_view name) {
  if (name == "provider") return "provider/default";
  const auto variants = ProviderVariants();
  const bool known = std::find(variants.begin(), variants.end(), name) != variants.end();
  return known ? absl::StrCat("provider/", name) : std::string(name);
}

// Golden and provider compositions are measured and not judged, so they need no rule.
bool IsReference(absl::string_view composition) {
  return !absl::StrContains(composition, '+') &&
         (composition == "golden" || absl::StartsWith(composition, "provider/"));
}

// Puts the default and canonical names in.
void CheckProviders(bool needs_rule, v1::FullModelSpec* full_model, SpecChecker* checker) {
  if (full_model->providers().empty()) {
    for (absl::string_view variant : ProviderVariants()) {
      full_model->add_providers(std::string(variant));
    }
  }
  std::set<std::string> known, captured;
  for (absl::string_view variant : ProviderVariants()) known.insert(CanonicalProvider(variant));
  for (const auto& [name, file] : full_model->captures().providers()) {
    captured.insert(CanonicalProvider(name));
  }
  std::set<std::string> all = captured;
  std::set<std::string> named;
  const std::string accepted = absl::StrCat(absl::StrJoin(ProviderVariants(), ", "),
                                            ", or the name of a captured provider, each once");
  for (int i = 0; i < full_model->providers_size(); ++i) {
    std::string& name = *full_model->mutable_providers(i);
    const std::string field = absl::StrCat("spec.full_model.providers[", i, "]");
    const std::string written = name;
    name = CanonicalProvider(written);
    if (known.count(name) == 0 && captured.count(name) == 0) {
      checker->Add(field, absl::StrCat("unknown provider ", Quoted(written)), accepted);
    } else if (!named.insert(name).second) {
      checker->Add(field, absl::StrCat(Quoted(written), " is there twice"), accepted);
    }
    all.insert(name);
  }
  if (needs_rule && all.size() < kLeastProviders) {
    checker->Add("spec.full_model.providers", absl::StrCat(all.size(), " make no rule"),
                 absl::StrCat("at least ", kLeastProviders, " of ",
                              absl::StrJoin(ProviderVariants(), ", "), "; or a rule"));
  }
}

void CheckKeep(const v1::FullModelSpec& full_model, SpecChecker* checker) {
  if (full_model.keep_size() > kMaxPatterns) {
    checker->Add("spec.full_model.keep", absl::StrCat(full_model.keep_size(), " patterns"),
                 absl::StrCat("at most ", kMaxPatterns));
  }
  for (int i = 0; i < full_model.keep_size(); ++i) {
    if (!full_model.keep(i).empty() && full_model.keep(i).size() <= kMaxPatternBytes) continue;
    checker->Add(absl::StrCat("spec.full_model.keep[", i, "]"), "is no pattern",
                 "1 to 256 characters, e.g. nodes.block.*.grad");
  }
}

// What holds for the inputs of one layout alone.
void RefuseOneLayout(const v1::FullModelSpec& full_model, SpecChecker* checker) {
  const std::pair<absl::string_view, bool> fields[] = {
      {"spec.full_model.captures", full_model.has_captures()},
      {"spec.full_model.rule", full_model.has_rule()},
      {"spec.full_model.freeze_rule", full_model.freeze_rule()}};
  for (const auto& [field, given] : fields) {
    if (given) checker->Add(field, "is of one layout, and a sweep has many", "nothing");
  }
}

// What needs a candidate, of a job that runs none.
void RefuseCandidate(const v1::JobSpec& spec, SpecChecker* checker) {
  const std::pair<absl::string_view, bool> fields[] = {
      {"spec.full_model.captures.candidate", spec.full_model().captures().has_candidate()},
      {"spec.full_model.ablation", spec.full_model().ablation()},
      {"spec.inject", !spec.inject().empty()},
      {"spec.save_tensors", spec.save_tensors()}};
  for (const auto& [field, given] : fields) {
    if (given) checker->Add(field, "a rule is frozen without a candidate", "nothing");
  }
}

}  // namespace

void CheckFullModel(v1::JobSpec* spec, SpecChecker* checker) {
  v1::FullModelSpec& full_model = *spec->mutable_full_model();
  checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  const bool sweeps =
      full_model.layouts_size() == 1 && full_model.layouts(0).name() == kSweepLayouts;
  if (full_model.layouts_size() > 1) {
    checker->Add("spec.full_model.layouts", absl::StrCat(full_model.layouts_size(), " layouts"),
                 "one layout, `sweep`, or none with captured inputs");
  }
  SpecChecker::ExpandSweep(full_model.mutable_layouts());
  if (!full_model.layouts().empty() || !full_model.has_captures()) {
    checker->Layouts("spec.full_model.layouts", full_model.mutable_layouts());
  }
  if (sweeps) RefuseOneLayout(full_model, checker);
  checker->Captures("spec.full_model.captures", full_model.captures());
  checker->Composition(kWholeModel, spec);
  CheckProviders(
      full_model.freeze_rule() || (!full_model.has_rule() && !IsReference(spec->composition())),
      &full_model, checker);
  if (full_model.has_rule()) checker->File("spec.full_model.rule", full_model.rule());
  if (full_model.allow_other_device() && !full_model.has_rule()) {
    checker->Add("spec.full_model.allow_other_device", "there is no rule that it could be for",
                 "with a rule");
  }
  CheckKeep(full_model, checker);
  if (full_model.freeze_rule()) {
    RefuseCandidate(*spec, checker);
    return;
  }
  checker->Fault(KindName(v1::JOB_KIND_FULL_MODEL), full_model.captures(), spec->inject());
  if (full_model.ablation() && full_model.captures().has_candidate()) {
    checker->Add("spec.full_model.ablation", "no node of a captured candidate can be replaced",
                 "a candidate that runs");
  }
}

void CheckSweep(v1::JobSpec* spec, SpecChecker* checker) {
  v1::SweepSpec& sweep = *spec->mutable_sweep();
  checker->Checkpoint("spec.checkpoint", spec->checkpoint());
  checker->Layouts("spec.sweep.layouts", sweep.mutable_layouts());
  if (sweep.seeds().empty()) {
    for (uint64_t seed = 0; seed < kDefaultSeeds; ++seed) sweep.add_seeds(seed);
  }
  const int max_seeds = sweep.swap_each_node() ? kMaxSwappedSeeds : kMaxSeeds;
  if (sweep.seeds_size() > max_seeds) {
    checker->Add(
        "spec.sweep.seeds", absl::StrCat(sweep.seeds_size(), " seeds"),
        absl::StrCat("at most ", kMaxSeeds, ", with each node swapped at most ", kMaxSwappedSeeds));
  }
  if (std::set<uint64_t>(sweep.seeds().begin(), sweep.seeds().end()).size() <
      static_cast<size_t>(sweep.seeds_size())) {
    checker->Add("spec.sweep.seeds", "a seed is there twice", "each seed once");
  }
  checker->Range("spec.sweep.block", sweep.block(), 0, kMaxBlock);
  checker->Composition(sweep.block(), spec);
  if (!spec->inject().empty()) {
    checker->Add("spec.inject", "a sweep measures a candidate as it is", "nothing");
  }
  if (spec->save_tensors()) {
    checker->Add("spec.save_tensors", "a sweep keeps no tensors", "nothing");
  }
}

void CheckRule(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->RefuseModelFields(spec);
  const v1::RuleSpec& rule = spec.rule();
  switch (rule.operation_case()) {
    case v1::RuleSpec::kShow:
      checker->File("spec.rule.show", rule.show());
      break;
    case v1::RuleSpec::kSeal:
      checker->File("spec.rule.seal", rule.seal());
      break;
    case v1::RuleSpec::kCompare:
      checker->File("spec.rule.compare.a", rule.compare().a());
      checker->File("spec.rule.compare.b", rule.compare().b());
      break;
    case v1::RuleSpec::OPERATION_NOT_SET:
      checker->Add("spec.rule", "says nothing to do", "show, seal or compare");
  }
}

void CheckVerdict(const v1::JobSpec& spec, SpecChecker* checker) {
  checker->RefuseModelFields(spec);
  const auto& files = spec.verdict().files();
  if (files.size() > kMaxBundleFiles) {
    checker->Add("spec.verdict.files", absl::StrCat(files.size(), " files"),
                 absl::StrCat("at most ", kMaxBundleFiles));
  }
  // A bundle that lost its report is one that does not verify.
  if (!files.contains(std::string(kReport)) && !files.contains(std::string(kSums))) {
    checker->Add("spec.verdict.files", "a bundle has a report",
                 absl::StrCat("with ", kReport, " or ", kSums));
  }
  for (const auto& [path, file] : files) {
    if (path.empty() || absl::StrContains(path, '/')) {
      checker->Add("spec.verdict.files", absl::StrCat(Quoted(path), " is no file of a bundle"),
                   "names without a folder");
    }
    checker->Add(CheckChosenName(path, "spec.verdict.files", kMaxFileNameBytes));
    checker->File(absl::StrCat("spec.verdict.files[", path, "]"), file);
  }
  const std::string& key = spec.verdict().public_key_pem();
  if (!key.empty() && (key.size() > kMaxKeyBytes || !absl::StrContains(key, "BEGIN PUBLIC KEY"))) {
    checker->Add("spec.verdict.public_key_pem", "is no public key", "an Ed25519 public key in PEM");
  }
}

}  // namespace plumbline::server
