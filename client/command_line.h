#ifndef PLUMBLINE_CLIENT_COMMAND_LINE_H_
#define PLUMBLINE_CLIENT_COMMAND_LINE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/server_connector.h"

// What a person typed, as data. Nothing here is checked beyond its form: whether a layout exists is
// for the service to say.

namespace plumbline::client {

// Of every command that makes a job.
struct JobFlags {
  std::string report;               // JSON file to write.
  bool wait = false;                // Also implied by an output file.
  std::vector<std::string> labels;  // K=V
  int32_t priority = 0;
};

// Captures: a file, or worker:PATH.
struct CaptureFlags {
  std::string inputs;
  std::string golden;
  std::vector<std::string> providers;  // NAME=FILE
  std::string candidate;
};

struct SubmitBlockReplay {
  std::string checkpoint;
  int32_t block = 0;
  std::vector<std::string> layouts;  // Names.
  std::vector<std::string> layout;   // Names or TEXT,FRAMES,HEIGHT,WIDTH,AUDIO,KEYFRAMES.
  std::string composition;
  std::vector<std::string> plugins;  // Files.
  bool backward = false;
  CaptureFlags captures;
  std::string inject;
  std::string save_tensors;  // File to write.
  std::string bundle;        // Folder to write.
  JobFlags job;
};

struct SubmitFullModel {
  std::string checkpoint;
  std::string layout;   // A name, or sizes.
  std::string layouts;  // "sweep", or a name.
  CaptureFlags captures;
  std::vector<std::string> providers;  // Of the ensemble.
  std::string composition;
  std::vector<std::string> plugins;  // Files.
  std::string freeze_rule;           // File to write.
  std::string rule;                  // File, or worker:PATH.
  bool allow_other_device = false;
  bool ablation = false;
  std::string inject;
  std::vector<std::string> keep;  // Patterns.
  std::string save_tensors;       // File to write.
  std::string bundle;             // Folder to write.
  JobFlags job;
};

struct SubmitSweep {
  std::string checkpoint;
  int32_t block = 0;
  std::vector<std::string> layouts;
  std::vector<std::string> layout;
  std::string composition;
  std::vector<std::string> plugins;  // Files.
  std::string seeds;                 // "0..9", "1,4,7..9"
  std::string swap;                  // "each-node" or empty.
  JobFlags job;
};

struct SubmitGeneration {
  std::string checkpoint;
  std::string contract;      // JSON file.
  std::string conditioning;  // A file, or worker:PATH.
  std::string seeds;         // Of the contract's: "42,43". Empty: all.
  std::string composition;
  std::vector<std::string> plugins;  // Files.
  std::string noise;                 // As `conditioning`.
  std::string gate;                  // Name of a full-model job.
  bool preflight = false;
  std::string against;              // Name of a generation job.
  std::vector<std::string> spread;  // Likewise.
  std::string repeat;               // Likewise.
  bool verify_last_step = false;
  bool latents_only = false;
  std::string inject;
  std::string save_tensors;  // File to write.
  std::string bundle;        // Folder to write.
  JobFlags job;
};

struct SubmitDiagnostic {
  std::string run;  // ID of a run, or its first characters.
  int32_t step = 0;
  std::string composition;
  std::vector<std::string> plugins;  // Files.
  JobFlags job;
};

struct DecodeLatents {
  std::string checkpoint;
  std::string latents;           // A file, worker:PATH, or a run as SubmitDiagnostic's.
  std::string kept;              // In place of latents: a file, worker:PATH or artifacts/NAME.
  std::vector<std::string> out;  // Files to write, each of another kind.
  std::string composition;
  std::string frames;  // "f32", "u8" or empty.
  std::optional<int32_t> tile;
  std::optional<int32_t> tile_overlap;
  bool no_tiling = false;
  std::optional<int32_t> image_frame;
  std::optional<double> fps;
  JobFlags job;
};

struct ShowRule {
  std::string rule;  // File, or worker:PATH; so below.
  JobFlags job;
};
struct SealRule {
  std::string rule;
  std::string output;  // Empty: the file itself.
  JobFlags job;
};
struct CompareRules {
  std::string a;
  std::string b;
  JobFlags job;
};

struct RecomputeVerdict {
  std::string bundle;      // Folder.
  std::string public_key;  // PEM file; empty: none.
  JobFlags job;
};

struct VerifyCheckpoint {
  std::string checkpoint;
  std::string manifest;  // File, or worker:PATH; empty: none.
  JobFlags job;
};
struct WriteManifest {
  std::string checkpoint;
  std::string output;  // File to write.
  JobFlags job;
};

struct Selftest {
  std::vector<std::string> worker_labels;  // K=V
  JobFlags job;
};

struct CompareFiles {
  std::string a;
  std::string b;
  JobFlags job;
};

struct CompareMedia {
  std::string a;  // File, worker:PATH, name of a run; or both names of generation jobs.
  std::string b;
  std::string difference;           // File to write; empty: none.
  std::vector<std::string> spread;  // Generation jobs, beside those of a and b.
  std::string repeat;               // Likewise.
  std::string seeds;                // Likewise; empty: all.
  JobFlags job;
};

struct BuildLayout {
  std::string layout;
  std::string save_tensors;
  JobFlags job;
};

struct ListJobs {
  std::vector<std::string> kinds;
  std::vector<std::string> states;
  std::vector<std::string> labels;  // K=V
  int limit = 50;
};
struct GetJob {
  std::string job;
  std::string format;  // "text" or "json".
};
struct WatchJobCommand {
  std::string job;
  int64_t after = 0;
  std::string format;
};
struct CancelJob {
  std::string job;
  std::string reason;
};
struct CompareJobs {
  std::string a;
  std::string b;
  std::string format;
};
struct DeleteJobs {
  std::vector<std::string> jobs;
};
struct ShowReport {
  std::string job;
  std::string format;
  std::string bundle;  // Folder to write; empty: none.
};
struct ListWorkers {};
struct DrainWorker {
  std::string worker;
  std::string reason;
};
struct ListRuns {
  std::string job;  // Only those that this job needs or made; empty: all.
  int limit = 50;
};
struct ShowRun {
  std::string run;  // As SubmitDiagnostic's; so below.
  std::string format;
};
struct VerifyRun {
  std::string run;
};
struct CompareRuns {
  std::string a;
  std::string b;
  bool media = false;
};
struct AdoptRun {
  std::string run;
  std::string from;
};
struct DeleteRuns {
  std::vector<std::string> runs;
};
struct BackupRuns {};
struct CreateToken {
  std::string file;
  std::string name;
  std::string role;
  std::string expires;
  std::string certificate;
};
struct ListTokens {
  std::string file;
};
struct RevokeToken {
  std::string file;
  std::string name;
};
struct SubmitSlurmWorkers {
  int workers = 0;
  std::string partition;  // As sbatch takes them; empty: the cluster's default; so below.
  std::string account;
  std::string qos;
  std::string time;
  std::string gres;                 // Empty: gpu:1, unless `sbatch` asks for GPUs.
  std::vector<std::string> sbatch;  // Other options, each with its value.
  std::string name = "plumbline-worker";
  int notice_seconds = 60;
  std::string worker;      // Program. Empty: the one beside this program.
  std::string state_root;  // Folder. Empty: the user's.
  std::string log_dir;     // Folder. Empty: below state_root.
  bool dry_run = false;
  bool unchecked = false;
  std::vector<std::string> worker_flags;
};
struct ShowSlurmWorkers {
  std::vector<std::string> jobs;  // Empty: the user's of this name.
  std::string name = "plumbline-worker";
};
struct CancelSlurmWorkers {
  std::vector<std::string> jobs;
};
struct ListFaults {
  std::string job_kind;  // Empty: all kinds.
};

using Command =
    std::variant<SubmitBlockReplay, SubmitFullModel, SubmitSweep, SubmitGeneration,
                 SubmitDiagnostic, DecodeLatents, ShowRule, SealRule, CompareRules,
                 RecomputeVerdict, VerifyCheckpoint, WriteManifest, Selftest, CompareFiles,
                 CompareMedia, BuildLayout, ListJobs, GetJob, WatchJobCommand, CancelJob,
                 CompareJobs, DeleteJobs, ShowReport, ListWorkers, DrainWorker, ListRuns, ShowRun,
                 VerifyRun, CompareRuns, AdoptRun, DeleteRuns, BackupRuns, CreateToken, ListTokens,
                 RevokeToken, SubmitSlurmWorkers, ShowSlurmWorkers, CancelSlurmWorkers, ListFaults>;

struct CommandLine {
  ServerFlags server;
  std::string signing_key;  // PEM file that bundles are signed with; empty: they are not.
  Command command;
};

// What --help or --version asked for instead of a command.
struct HelpText {
  std::string text;
};

// INVALID_ARGUMENT says which flag or word is wrong and where help is.
absl::StatusOr<std::variant<CommandLine, HelpText>> ParseCommandLine(int argc,
                                                                     const char* const* argv);

}  // namespace plumbline::client

#endif  // PLUMBLINE_CLIENT_COMMAND_LINE_H_
