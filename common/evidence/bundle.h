// A bundle: what a job found, as files that stand on their own. docs/formats.md describes them.
#ifndef PLUMBLINE_COMMON_EVIDENCE_BUNDLE_H_
#define PLUMBLINE_COMMON_EVIDENCE_BUNDLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/plumbline/v1/comparison.pb.h"
#include "proto/plumbline/v1/job.pb.h"

namespace plumbline {

inline constexpr char kBundleReport[] = "report.json";
inline constexpr char kBundleVerdict[] = "verdict.json";
inline constexpr char kBundleSums[] = "SHA256SUMS";
// Of a signed bundle: Ed25519 over the bytes of SHA256SUMS, raw, and the key that it verifies
// under.
inline constexpr char kBundleSignature[] = "SHA256SUMS.sig";
inline constexpr char kBundlePublicKey[] = "public_key.pem";

// Contents by path within the bundle.
using BundleFiles = std::map<std::string, std::string>;

// The bundle of a finished job: report.json, verdict.json, identity.json, tables and figures of
// what it has, rule.json (rule-1.json and so on where tasks were judged by several) and SHA256SUMS.
// `report` is redacted first. `rules` are the texts of the rule files that the tasks were judged
// by, each once. `signing_key_pem`, where it is not empty, signs it. INVALID_ARGUMENT for a key
// that is none.
absl::StatusOr<BundleFiles> MakeBundle(v1::Report report, const std::vector<std::string>& rules,
                                       const std::string& signing_key_pem = "");

// Writes a bundle into `directory`, which is made if it is not there. ALREADY_EXISTS if it holds
// anything.
absl::Status WriteBundle(const BundleFiles& files, const std::string& directory);

// Every file of `directory`. INVALID_ARGUMENT if it holds anything but regular files with plain
// names (no links, FIFOs, folders) or is larger than bundles are; NOT_FOUND if it is not there.
absl::StatusOr<BundleFiles> ReadBundle(const std::string& directory);

// The report of a bundle. INVALID_ARGUMENT if it is missing or no report.
absl::StatusOr<v1::Report> ReportOfBundle(const BundleFiles& files);

// The text of verdict.json: the job's verdict and those of its tasks.
absl::StatusOr<std::string> VerdictJson(const v1::Report& report);

// Holds every file against SHA256SUMS and fills in `files`, `missing` and what is known of the
// signature. A file that SHA256SUMS does not list fails, SHA256SUMS itself where it is not what its
// first line says, and a signature that does not verify under the bundle's own key, or under
// `public_key_pem` where that is not empty. INVALID_ARGUMENT for a `public_key_pem` that is none.
absl::Status CheckBundleFiles(const BundleFiles& files, const std::string& public_key_pem,
                              v1::VerdictReport* report);

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_EVIDENCE_BUNDLE_H_
