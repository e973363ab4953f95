// Requests for full models, for what judges them, and for sweeps.
#include <unistd.h>

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/layout_text.h"
#include "client/request_parts.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

constexpr size_t kMaxKeyBytes = 4096;

// A job on rule files: waited for, since its report is what was asked for.
absl::StatusOr<JobRequest> Waited(JobRequest request, const JobFlags& flags) {
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags, &request));
  request.wait = true;
  return request;
}

}  // namespace

bool HasUploads(const SubmitFullModel& flags) {
  return HasUploads(flags.captures) || IsUpload(flags.rule);
}

bool HasUploads(const SubmitBlockReplay& flags) { return HasUploads(flags.captures); }

v1::JobSpec WithoutInputs(v1::JobSpec spec) {
  if (spec.checkpoint_check().has_verify()) {
    spec.mutable_checkpoint_check()->mutable_verify()->clear_manifest();
  }
  if (spec.has_block_replay()) spec.mutable_block_replay()->clear_captures();
  if (!spec.has_full_model()) return spec;
  v1::FullModelSpec& full_model = *spec.mutable_full_model();
  // What only makes sense with the files.
  if (!full_model.captures().providers().empty() || full_model.has_rule()) {
    full_model.clear_providers();
  }
  if (full_model.has_rule()) full_model.clear_allow_other_device();
  full_model.clear_captures();
  if (full_model.has_rule()) full_model.clear_rule();
  return spec;
}

absl::StatusOr<JobRequest> FullModelRequest(const SubmitFullModel& flags, PathStyle paths,
                                            const InputResolver& resolve) {
  JobRequest request;
  v1::JobSpec& spec = request.spec;
  v1::FullModelSpec& full_model = *spec.mutable_full_model();
  FillCheckpoint(flags.checkpoint, paths, &request);
  spec.set_composition(flags.composition);
  spec.set_inject(flags.inject);
  spec.set_save_tensors(!flags.save_tensors.empty());
  request.flags.Add("composition", "--composition", flags.composition);
  request.flags.Add("inject", "--inject", flags.inject);
  request.flags.Add("save_tensors", "--save-tensors", flags.save_tensors);
  const bool named = !flags.layouts.empty();
  const std::string& layout = named ? flags.layouts : flags.layout;
  const char* const layout_flag = named ? "--layouts" : "--layout";
  if (!layout.empty()) {
    PLUMBLINE_ASSIGN_OR_RETURN(*full_model.add_layouts(), ParseLayout(layout_flag, layout));
  }
  request.flags.Add("full_model.layouts", layout_flag, layout);
  if (HasCaptures(flags.captures)) {
    PLUMBLINE_RETURN_IF_ERROR(FillCaptures(flags.captures, "full_model.captures", resolve,
                                           full_model.mutable_captures(), &request.flags));
  }
  for (const std::string& provider : flags.providers) {
    request.flags.Add(absl::StrCat("full_model.providers[", full_model.providers_size(), "]"),
                      "--providers", provider);
    full_model.add_providers(provider);
  }
  request.flags.Add("full_model.providers", "--providers", "");
  if (!flags.freeze_rule.empty()) full_model.set_freeze_rule(true);
  request.flags.Add("full_model.freeze_rule", "--freeze-rule", flags.freeze_rule);
  if (!flags.rule.empty()) {
    PLUMBLINE_RETURN_IF_ERROR(FillInput("--rule", "full_model.rule", flags.rule, resolve,
                                        full_model.mutable_rule(), &request.flags));
  }
  full_model.set_allow_other_device(flags.allow_other_device);
  request.flags.Add("full_model.allow_other_device", "--allow-other-device", "");
  full_model.set_ablation(flags.ablation);
  request.flags.Add("full_model.ablation", "--ablation", "");
  for (const std::string& pattern : flags.keep) {
    request.flags.Add(absl::StrCat("full_model.keep[", full_model.keep_size(), "]"), "--keep",
                      pattern);
    full_model.add_keep(pattern);
  }
  request.flags.Add("full_model.keep", "--keep", "");
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.save_tensors = flags.save_tensors;
  request.rule = flags.freeze_rule;
  request.bundle = flags.bundle;
  request.wait = flags.job.wait || !flags.job.report.empty() || !flags.save_tensors.empty() ||
                 !flags.freeze_rule.empty() || !flags.bundle.empty();
  return request;
}

absl::StatusOr<JobRequest> SweepRequest(const SubmitSweep& flags, PathStyle paths) {
  JobRequest request;
  v1::SweepSpec& sweep = *request.spec.mutable_sweep();
  FillCheckpoint(flags.checkpoint, paths, &request);
  request.spec.set_composition(flags.composition);
  request.flags.Add("composition", "--composition", flags.composition);
  sweep.set_block(flags.block);
  request.flags.Add("sweep.block", "--block", "");
  PLUMBLINE_RETURN_IF_ERROR(FillLayouts(flags.layouts, flags.layout, "sweep.layouts",
                                        sweep.mutable_layouts(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(
      FillSeeds(flags.seeds, "sweep.seeds", sweep.mutable_seeds(), &request.flags));
  sweep.set_swap_each_node(!flags.swap.empty());
  PLUMBLINE_RETURN_IF_ERROR(FillJobFlags(flags.job, &request));
  request.wait = flags.job.wait || !flags.job.report.empty();
  return request;
}

absl::StatusOr<JobRequest> ShowRuleRequest(const ShowRule& flags, const InputResolver& resolve) {
  JobRequest request;
  PLUMBLINE_RETURN_IF_ERROR(FillInput("RULE", "rule.show", flags.rule, resolve,
                                      request.spec.mutable_rule()->mutable_show(), &request.flags));
  return Waited(std::move(request), flags.job);
}

absl::StatusOr<JobRequest> SealRuleRequest(const SealRule& flags, const InputResolver& resolve) {
  JobRequest request;
  PLUMBLINE_RETURN_IF_ERROR(FillInput("RULE", "rule.seal", flags.rule, resolve,
                                      request.spec.mutable_rule()->mutable_seal(), &request.flags));
  request.rule = flags.output;
  if (flags.output.empty()) {
    if (!IsUpload(flags.rule)) {
      return FieldError("--output", "is needed for a rule that lies with the worker", "a file");
    }
    request.rule = flags.rule;
  }
  return Waited(std::move(request), flags.job);
}

absl::StatusOr<JobRequest> CompareRulesRequest(const CompareRules& flags,
                                               const InputResolver& resolve) {
  JobRequest request;
  v1::RuleSpec::ComparePair& pair = *request.spec.mutable_rule()->mutable_compare();
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("A", "rule.compare.a", flags.a, resolve, pair.mutable_a(), &request.flags));
  PLUMBLINE_RETURN_IF_ERROR(
      FillInput("B", "rule.compare.b", flags.b, resolve, pair.mutable_b(), &request.flags));
  return Waited(std::move(request), flags.job);
}

absl::StatusOr<JobRequest> VerdictRequest(const RecomputeVerdict& flags,
                                          const InputResolver& resolve) {
  std::error_code error;
  std::set<std::string> names;
  for (auto at = std::filesystem::directory_iterator(flags.bundle, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    names.insert(at->path().filename().string());
  }
  if (error || names.empty()) {
    return FieldError("BUNDLE",
                      absl::StrCat(Quoted(flags.bundle), " is no bundle",
                                   error ? absl::StrCat(": ", error.message()) : ""),
                      "a folder that --bundle wrote");
  }
  // All before the first is uploaded.
  for (const std::string& name : names) {
    const absl::StatusOr<int> entry = OpenEntry(absl::StrCat(flags.bundle, "/", name));
    if (!entry.ok()) return FieldError("BUNDLE", entry.status().message());
    close(*entry);
  }
  JobRequest request;
  auto& files = *request.spec.mutable_verdict()->mutable_files();
  for (const std::string& name : names) {
    PLUMBLINE_ASSIGN_OR_RETURN(files[name],
                               resolve("BUNDLE", absl::StrCat(flags.bundle, "/", name)));
  }
  request.flags.Add("verdict.files", "BUNDLE", flags.bundle);
  if (!flags.public_key.empty()) {
    absl::StatusOr<std::string> key = ReadFile(flags.public_key, kMaxKeyBytes);
    if (!key.ok()) return FieldError("--public-key", key.status().message(), "a PEM file");
    request.spec.mutable_verdict()->set_public_key_pem(*std::move(key));
  }
  request.flags.AddFile("verdict.public_key_pem", "--public-key", flags.public_key);
  return Waited(std::move(request), flags.job);
}

}  // namespace plumbline::client
