#include "client/job_bundle.h"

#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/transfer.h"
#include "common/evidence/bundle.h"
#include "common/evidence/signature.h"
#include "common/files.h"
#include "common/status.h"

namespace plumbline::client {
namespace {

// What a rule file may take; it is held in memory.
constexpr size_t kMaxRuleBytes = 64 << 20;
constexpr size_t kMaxKeyBytes = 4096;

}  // namespace

std::vector<v1::Artifact> ArtifactsOf(const v1::Job& job, v1::ArtifactRole role) {
  std::vector<v1::Artifact> artifacts;
  for (const v1::Artifact& artifact : job.artifacts()) {
    if (artifact.role() == role) artifacts.push_back(artifact);
  }
  return artifacts;
}

absl::StatusOr<std::string> ReadSigningKey(const std::string& path) {
  if (path.empty()) return std::string();
  constexpr absl::string_view kFlag = "--signing-key";
  absl::StatusOr<std::string> key = ReadFile(path, kMaxKeyBytes);
  if (!key.ok()) return FieldError(kFlag, key.status().message(), "a PEM file");
  if (const auto half = PublicKeyOf(*key); !half.ok()) {
    return FieldError(kFlag, absl::StrCat(Quoted(path), ": ", half.status().message()));
  }
  return key;
}

absl::Status WriteJobBundle(Session* session, const v1::Report& report, const v1::Job& job,
                            const std::string& signing_key, const std::string& folder) {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string key, ReadSigningKey(signing_key));
  std::map<std::string, std::string> rules;  // By digest: tasks may share one.
  for (const v1::Artifact& artifact : ArtifactsOf(job, v1::ARTIFACT_ROLE_RULE)) {
    if (rules.count(artifact.sha256()) > 0) continue;
    // Files come to files; this one stays only until it is read.
    const std::string path = absl::StrCat(folder, "/rule.tmp");
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) return FileError(folder, "cannot be made", error.value());
    PLUMBLINE_RETURN_IF_ERROR(DownloadArtifact(session, artifact, path));
    absl::StatusOr<std::string> text = ReadFile(path, kMaxRuleBytes);
    std::filesystem::remove(path, error);
    PLUMBLINE_ASSIGN_OR_RETURN(rules[artifact.sha256()], std::move(text));
  }
  std::vector<std::string> texts;
  for (auto& [digest, text] : rules) texts.push_back(std::move(text));
  PLUMBLINE_ASSIGN_OR_RETURN(const BundleFiles files, MakeBundle(report, texts, key));
  return WriteBundle(files, folder);
}

}  // namespace plumbline::client
