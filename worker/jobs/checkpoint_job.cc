#include "worker/jobs/checkpoint_job.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/files.h"
#include "common/status.h"
#include "worker/checkpoint/manifest.h"
#include "worker/checkpoint/scan.h"

namespace plumbline::jobs {
namespace {

using checkpoint::Scan;
using v1::CheckpointFinding;

constexpr size_t kMaxManifestBytes = 64 << 20;
// A report is one message; a checkpoint of another model has a finding for each tensor.
constexpr int kMaxFindings = 500;

// The revision that MiniMaxAI released, by the digests of its text files.
constexpr absl::string_view kReleasedRevision = "42ed227ee7df40d41602854ae760620d6eb651fe";
constexpr absl::string_view kReleasedIndex =
    "ac30a3b58963f2e735d493475fbb81853a5735ec947619648b3e045acda6783e";
constexpr absl::string_view kReleasedConfig =
    "74c11bff524336576096993cbfcdcdc2ef4fa2fa4409df693bdcbc6c666282ae";

// "QKV_ORDER" of KIND_QKV_ORDER.
std::string KindWord(CheckpointFinding::Kind kind) {
  return CheckpointFinding::Kind_Name(kind).substr(5);
}

bool IsReleasedRevision(const Scan& scan) {
  bool index = false, config = false;
  for (const v1::CheckpointReport::File& file : scan.files) {
    index = index || file.sha256() == kReleasedIndex;
    config = config || file.sha256() == kReleasedConfig;
  }
  return index && config;
}

absl::StatusOr<Scan> ScanSpec(const v1::JobSpec& spec, const JobEnvironment& environment) {
  checkpoint::ScanOptions options;
  options.threads = environment.threads;
  options.check_cancelled = environment.context.check_cancelled;
  options.on_progress = [&](int64_t done, int64_t total) {
    v1::Progress progress;
    progress.set_done(done);
    progress.set_total(total);
    progress.set_unit("bytes");
    progress.set_activity("reading the checkpoint");
    environment.context.on_progress(progress);
  };
  if (absl::StartsWith(spec.checkpoint(), "synthetic:")) {
    PLUMBLINE_ASSIGN_OR_RETURN(const auto weights,
                               environment.checkpoints->Open(spec.checkpoint()));
    return checkpoint::ScanComputed(*weights, options);
  }
  const std::vector<std::string>& roots = environment.checkpoints->roots();
  const absl::StatusOr<std::string> directory = ResolveUnderRoots(spec.checkpoint(), roots);
  if (!directory.ok()) return FieldError("checkpoint", directory.status().message());
  absl::StatusOr<Scan> scan = checkpoint::ScanCheckpoint(*directory, roots, options);
  if (!absl::IsInvalidArgument(scan.status())) return scan;
  return FieldError("checkpoint", absl::StrReplaceAll(scan.status().message(),
                                                      {{absl::StrCat(*directory, "/"), ""}}));
}

v1::CheckpointReport MakeReport(const Scan& scan, bool judged_by_manifest) {
  v1::CheckpointReport report;
  report.set_layout(scan.layout);
  report.set_sha256(scan.sha256);
  report.set_bytes_read(scan.bytes_read);
  report.set_judged_by_manifest(judged_by_manifest);
  absl::flat_hash_set<std::string> bad_files, bad_tensors;
  for (const CheckpointFinding& finding : scan.findings) {
    bad_files.insert(finding.file());
    bad_tensors.insert(finding.tensor());
    if (report.findings_size() < kMaxFindings) *report.add_findings() = finding;
  }
  for (const v1::CheckpointReport::File& file : scan.files) {
    v1::CheckpointReport::File& added = *report.add_files();
    added = file;
    added.set_passed(!bad_files.contains(file.path()));
  }
  for (const checkpoint::ScannedTensor& tensor : scan.tensors) {
    v1::CheckpointReport::Tensor& added = *report.add_tensors();
    added.set_name(tensor.name);
    added.set_dtype(std::string(DTypeName(tensor.dtype)));
    for (int64_t extent : tensor.shape) added.add_shape(extent);
    added.set_norm(tensor.figures.norm);
    added.set_nonfinite(tensor.figures.nonfinite);
    added.set_fingerprint(tensor.figures.Fingerprint());
    added.set_passed(!bad_tensors.contains(tensor.name));
  }
  return report;
}

v1::Verdict Judge(const Scan& scan, bool judged_by_manifest) {
  v1::Verdict verdict;
  if (!scan.findings.empty()) {
    const CheckpointFinding& first = scan.findings.front();
    verdict.set_outcome(v1::OUTCOME_FAILED);
    verdict.mutable_first_failure()->set_entry(first.tensor().empty() ? first.file()
                                                                      : first.tensor());
    verdict.mutable_first_failure()->set_gate(absl::AsciiStrToLower(KindWord(first.kind())));
    verdict.set_sentence(absl::StrCat(
        "FAILED: ", scan.findings.size(),
        scan.findings.size() == 1 ? " finding: " : " findings, first ", KindWord(first.kind()),
        " at ", verdict.first_failure().entry(), ": ", first.message(), "."));
    return verdict;
  }
  const std::string what =
      absl::StrCat(scan.files.size(), " files, ", scan.tensors.size(), " tensors",
                   IsReleasedRevision(scan) ? absl::StrCat(", revision ", kReleasedRevision) : "");
  if (judged_by_manifest) {
    verdict.set_outcome(v1::OUTCOME_PASSED);
    verdict.set_sentence(absl::StrCat("PASSED: ", what, ", all as the manifest says."));
    return verdict;
  }
  verdict.set_outcome(v1::OUTCOME_PARTIAL);
  verdict.add_qualifications("digests and orders not judged: no manifest");
  verdict.set_sentence(absl::StrCat("PARTIAL: ", what,
                                    ", whole and finite (digests and orders not judged: no "
                                    "manifest)."));
  return verdict;
}

}  // namespace

absl::StatusOr<JobResult> RunCheckpointCheck(const v1::JobSpec& spec,
                                             const std::string& manifest_path,
                                             const JobEnvironment& environment) {
  const bool writes = spec.checkpoint_check().has_manifest();
  checkpoint::Manifest manifest;
  if (!manifest_path.empty()) {
    // Before minutes of reading.
    constexpr absl::string_view kField = "checkpoint_check.verify.manifest";
    PLUMBLINE_ASSIGN_OR_RETURN(const std::string text, ReadFile(manifest_path, kMaxManifestBytes));
    PLUMBLINE_ASSIGN_OR_RETURN(manifest, checkpoint::ReadManifest(text, kField));
  }
  PLUMBLINE_ASSIGN_OR_RETURN(Scan scan, ScanSpec(spec, environment));
  if (!manifest_path.empty()) checkpoint::JudgeByManifest(manifest, &scan);

  JobResult result;
  *result.report.mutable_checkpoint() = MakeReport(scan, !manifest_path.empty());
  *result.report.mutable_verdict() = Judge(scan, !manifest_path.empty());
  if (!writes || !scan.findings.empty()) return result;
  OutputFile file;
  file.path = environment.output_folder + "/manifest";
  file.role = v1::ARTIFACT_ROLE_MANIFEST;
  file.file_name = "manifest.json";
  file.media_type = "application/json";
  PLUMBLINE_RETURN_IF_ERROR(WriteFileAtomically(file.path, checkpoint::ManifestText(scan)));
  result.files.push_back(std::move(file));
  result.report.mutable_verdict()->Clear();
  result.report.mutable_verdict()->set_outcome(v1::OUTCOME_NOT_JUDGED);
  result.report.mutable_verdict()->set_sentence(absl::StrCat("NOT JUDGED: the manifest has ",
                                                             scan.files.size(), " files and ",
                                                             scan.tensors.size(), " tensors."));
  return result;
}

}  // namespace plumbline::jobs
