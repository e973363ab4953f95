#include "server/store/keys.h"

#include "absl/strings/str_cat.h"

namespace plumbline::server {

absl::string_view FamilyName(Family family) {
  switch (family) {
    case Family::kMeta:
      return "default";
    case Family::kJobs:
      return "jobs";
    case Family::kLeases:
      return "leases";
    case Family::kEvents:
      return "events";
    case Family::kArtifacts:
      return "artifacts";
    case Family::kAudit:
      return "audit";
    case Family::kRuns:
      return "runs";
    case Family::kSteps:
      return "steps";
    case Family::kBlobs:
      return "blobs";
  }
  return "";
}

namespace keys {
namespace {

std::string Number32(int32_t number) { return Number(number).substr(4); }

int64_t ReadNumber(absl::string_view bytes) {
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<uint8_t>(byte);
  return static_cast<int64_t>(number);
}

}  // namespace

std::string Number(int64_t number) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) {
    bytes[i] = static_cast<char>(static_cast<uint64_t>(number) >> (56 - 8 * i));
  }
  return bytes;
}

int64_t TrailingNumber(absl::string_view key) {
  return key.size() < 8 ? 0 : ReadNumber(key.substr(key.size() - 8));
}

std::string PrefixEnd(absl::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  if (!end.empty()) ++end.back();
  return end;
}

std::string Format() { return "format"; }
std::string NewestJob() { return "newest_job"; }
std::string Worker(absl::string_view name) { return absl::StrCat(Workers(), name); }
std::string Workers() { return "worker/"; }
std::string Share(absl::string_view group) { return absl::StrCat(Shares(), group); }
std::string Shares() { return "share/"; }

std::string Job(int64_t job) { return Jobs() + Number(job); }
std::string Jobs() { return "j"; }
std::string JobId(absl::string_view id) { return absl::StrCat("i", id); }
std::string RequestId(absl::string_view id) { return absl::StrCat("q", id); }
std::string LiveJob(int64_t job) { return LiveJobs() + Number(job); }
std::string LiveJobs() { return "l"; }
std::string FinishedJob(absl::Time end, int64_t job) {
  return FinishedJobs() + Number(absl::ToUnixSeconds(end)) + Number(job);
}
std::string FinishedJobs() { return "f"; }
std::string Task(TaskKey task) { return Tasks(task.job) + Number32(task.task); }
std::string Tasks(int64_t job) { return "t" + Number(job); }
std::string Report(TaskKey task) { return Reports(task.job) + Number32(task.task); }
std::string Reports(int64_t job) { return "r" + Number(job); }

std::string Lease(TaskKey task) { return Leases() + Number(task.job) + Number32(task.task); }
std::string Leases() { return "l"; }
std::string FencingToken() { return "token"; }

TaskKey TrailingTask(absl::string_view key) {
  if (key.size() < 12) return {};
  key.remove_prefix(key.size() - 12);
  return {ReadNumber(key.substr(0, 8)), static_cast<int32_t>(ReadNumber(key.substr(8)))};
}

std::string Event(int64_t job, int64_t sequence) { return Events(job) + Number(sequence); }
std::string Events(int64_t job) { return "e" + Number(job); }
std::string Revision(int64_t revision) { return Revisions() + Number(revision); }
std::string Revisions() { return "v"; }

std::string Artifact(absl::string_view name) { return absl::StrCat(Artifacts(), name); }
std::string Artifacts() { return "a"; }
std::string TaskArtifact(TaskKey task, absl::string_view file_name) {
  return absl::StrCat(JobArtifacts(task.job), Number32(task.task), file_name);
}
std::string JobArtifacts(int64_t job) { return "t" + Number(job); }
std::string UploadedArtifact(absl::string_view sha256, absl::string_view file_name, bool plugin) {
  return absl::StrCat("s", sha256, "/", file_name, plugin ? "/plugin" : "");
}
std::string Upload(absl::string_view name) { return absl::StrCat(Uploads(), name); }
std::string Uploads() { return "u"; }

std::string Audit(int64_t sequence) { return Number(sequence); }

std::string Run(absl::string_view run) { return std::string(run); }

std::string Step(absl::string_view run, int32_t index) {
  return absl::StrCat(Steps(), run, Number32(index));
}
std::string Steps() { return "s"; }
std::string BlobRecord(absl::string_view sha256) { return absl::StrCat(BlobRecords(), sha256); }
std::string BlobRecords() { return "c"; }

std::string Blob(absl::string_view sha256) { return absl::StrCat("b", sha256); }
std::string BlobMark(absl::string_view sha256) { return absl::StrCat(BlobMarks(), sha256); }
std::string BlobMarks() { return "k"; }

}  // namespace keys
}  // namespace plumbline::server
