#ifndef PLUMBLINE_CLIENT_JOB_REQUEST_H_
#define PLUMBLINE_CLIENT_JOB_REQUEST_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/command_line.h"
#include "client/flag_names.h"
#include "proto/plumbline/v1/job.pb.h"

// From what was typed to what is asked of the service.

namespace plumbline::client {

// A job to make, and what becomes of it.
struct JobRequest {
  v1::JobSpec spec;
  FlagNames flags;
  std::string save_tensors;  // File to write, empty: none.
  std::string report;        // Likewise.
  std::string rule;          // Likewise.
  std::string manifest;      // Likewise.
  std::string bundle;        // Folder to write, empty: none.
  std::string difference;    // File to write, empty: none.
  // Files to write, each by what it is for.
  std::vector<std::pair<v1::ArtifactRole, std::string>> outputs;
  bool wait = false;
};

// Makes an input of what stands after a flag; uploads the file, if it is one of the client's.
using InputResolver =
    std::function<absl::StatusOr<v1::InputFile>(absl::string_view flag, absl::string_view written)>;

// How paths that the worker opens are written in a specification.
enum class PathStyle {
  kAsWritten,  // under the roots of a worker elsewhere
  kAbsolute,   // of the embedded worker, which sees this machine's files
};

// INVALID_ARGUMENT, naming the flag, for what has not the form that the flag takes, and whatever
// `resolve` returns.
absl::StatusOr<JobRequest> BlockReplayRequest(const SubmitBlockReplay& flags, PathStyle paths,
                                              const InputResolver& resolve);
absl::StatusOr<JobRequest> FullModelRequest(const SubmitFullModel& flags, PathStyle paths,
                                            const InputResolver& resolve);
absl::StatusOr<JobRequest> SweepRequest(const SubmitSweep& flags, PathStyle paths);
// Reads the contract, a file of the client's.
absl::StatusOr<JobRequest> GenerationRequest(const SubmitGeneration& flags, PathStyle paths,
                                             const InputResolver& resolve);
// `run` is the run's whole name.
absl::StatusOr<JobRequest> DiagnosticRequest(const SubmitDiagnostic& flags, const std::string& run);
// `run` is the run's whole name; empty: the latents are a file.
absl::StatusOr<JobRequest> DecodeRequest(const DecodeLatents& flags, const std::string& run,
                                         PathStyle paths, const InputResolver& resolve);
// Whether --latents means a run and not a file.
bool NamesRun(const std::string& latents);
absl::StatusOr<JobRequest> ShowRuleRequest(const ShowRule& flags, const InputResolver& resolve);
absl::StatusOr<JobRequest> SealRuleRequest(const SealRule& flags, const InputResolver& resolve);
absl::StatusOr<JobRequest> CompareRulesRequest(const CompareRules& flags,
                                               const InputResolver& resolve);
// Every file of the bundle's folder is an input. Reads the public key, a file of the client's.
absl::StatusOr<JobRequest> VerdictRequest(const RecomputeVerdict& flags,
                                          const InputResolver& resolve);
absl::StatusOr<JobRequest> VerifyCheckpointRequest(const VerifyCheckpoint& flags, PathStyle paths,
                                                   const InputResolver& resolve);
absl::StatusOr<JobRequest> ManifestRequest(const WriteManifest& flags, PathStyle paths);
absl::StatusOr<JobRequest> SelftestRequest(const Selftest& flags);
absl::StatusOr<JobRequest> ComparisonRequest(const CompareFiles& flags,
                                             const InputResolver& resolve);
// Of frames that were kept.
absl::StatusOr<JobRequest> KeptFramesRequest(const DecodeLatents& flags,
                                             const InputResolver& resolve);
// "jobs/..."; "runs/...", or the 64 hex digits of a run where no file has that name.
bool IsJobName(absl::string_view written);
bool IsRunName(absl::string_view written);
// Two files, or two runs' media; `resolve` also takes a run's name.
absl::StatusOr<JobRequest> MediaComparisonRequest(const CompareMedia& flags,
                                                  const InputResolver& resolve);
// Two generation jobs.
absl::StatusOr<JobRequest> GenerationComparisonRequest(const CompareMedia& flags);
absl::StatusOr<JobRequest> LayoutRequest(const BuildLayout& flags);

// Whether a flag names a file that must be uploaded.
bool HasUploads(const SubmitBlockReplay& flags);
bool HasUploads(const SubmitFullModel& flags);
bool HasUploads(const VerifyCheckpoint& flags);

// What is left of a specification without its input files: for asking whether the rest is good
// before any file is sent.
v1::JobSpec WithoutInputs(v1::JobSpec spec);

// "worker:PATH" as an input that the worker opens; false for a file of the client's.
bool ParseWorkerPath(absl::string_view written, PathStyle paths, v1::InputFile* input);

// Splits "K=V" at the first '='. INVALID_ARGUMENT with a violation of `flag`.
absl::StatusOr<std::pair<std::string, std::string>> ParsePair(absl::string_view flag,
                                                              absl::string_view written,
                                                              absl::string_view form);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_JOB_REQUEST_H_
