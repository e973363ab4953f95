#include "server/store/store_check.h"

#include <filesystem>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/files.h"
#include "common/sha256.h"
#include "common/status.h"
#include "server/proto_util.h"
#include "server/store/artifact_files.h"
#include "server/store/blob_store.h"
#include "server/store/store_check_records.h"

namespace plumbline::server {
namespace {

constexpr int64_t kReadBytes = 1 << 20;

}  // namespace

absl::StatusOr<StoreCheck::Result> StoreCheck::Run(const std::string& data_dir, rocksdb::Env* env) {
  StoreOptions options;
  options.path = absl::StrCat(data_dir, "/store");
  options.env = env;
  std::error_code error;
  if (!std::filesystem::is_directory(options.path, error)) {
    return absl::NotFoundError(absl::StrCat("there is no store in ", data_dir));
  }
  Result unopened;
  const absl::StatusOr<std::unique_ptr<Store>> store = Store::OpenReadOnly(options);
  if (absl::IsDataLoss(store.status()) || absl::IsNotFound(store.status())) {
    unopened.problems.emplace_back(store.status().message());
    unopened.problem_count = 1;
    return unopened;
  }
  PLUMBLINE_RETURN_IF_ERROR(store.status());
  StoreCheck check(store->get(), data_dir);
  check.CheckFiles();
  check.CheckJobs();
  check.CheckIndices();
  check.CheckEvents();
  check.CheckRevisions();
  check.CheckAudit();
  check.CheckWorkersAndShares();
  check.CheckArtifacts();
  check.CheckSteps();
  return std::move(check.result_);
}

void StoreCheck::Problem(std::string sentence) {
  ++result_.problem_count;
  if (result_.problems.size() < kMaxProblems) result_.problems.push_back(std::move(sentence));
}

void StoreCheck::Note(absl::string_view doing, const absl::Status& status) {
  if (!status.ok()) Problem(absl::StrCat("cannot ", doing, ": ", status.message()));
}

void StoreCheck::CheckFiles() {
  Note("verify the checksums of the store's files",
       FromRocksdb(store_->impl_->db()->VerifyChecksum(), "verify checksums"));
}

void StoreCheck::CheckAudit() {
  int64_t expected = 0;
  Records<v1::AuditEvent>(Family::kAudit, "", [&](absl::string_view key, const auto& event) {
    const int64_t sequence = keys::TrailingNumber(key);
    if (event.sequence() != sequence || (expected != 0 && sequence != expected)) {
      Problem(absl::StrCat("audit event ", sequence, " is out of sequence"));
    }
    expected = sequence + 1;
  });
}

void StoreCheck::CheckWorkersAndShares() {
  Records<store::WorkerRecord>(
      Family::kMeta, keys::Workers(),
      [&](absl::string_view key, const store::WorkerRecord& record) {
        if (key != keys::Worker(record.worker().name())) {
          Problem(absl::StrCat("a worker's record names another one, ", record.worker().name()));
        }
      });
  Records<store::ShareRecord>(
      Family::kMeta, keys::Shares(), [&](absl::string_view key, const store::ShareRecord& record) {
        if (FromDuration(record.used()) < absl::ZeroDuration()) {
          Problem(absl::StrCat("group ", Quoted(key.substr(keys::Shares().size())),
                               " of the fair share has used less than nothing"));
        }
      });
}

void StoreCheck::CheckArtifacts() {
  Records<store::UploadRecord>(
      Family::kArtifacts, keys::Uploads(),
      [&](absl::string_view key, const store::UploadRecord& record) {
        if (key != keys::Upload(record.name())) {
          Problem(absl::StrCat("an upload's record names another one, ", record.name()));
        }
      });
  std::set<std::string> indexed;
  for (const char* const prefix : {"t", "s"}) {
    Note("read the artifacts' index",
         store_->impl_->Visit(Family::kArtifacts, prefix, keys::PrefixEnd(prefix), false,
                              [&indexed](absl::string_view, absl::string_view name) {
                                indexed.emplace(name);
                                return true;
                              }));
  }
  Records<v1::Artifact>(
      Family::kArtifacts, keys::Artifacts(), [&](absl::string_view, const v1::Artifact& artifact) {
        ++result_.artifacts;
        if (indexed.erase(artifact.name()) == 0) {
          Problem(absl::StrCat(artifact.name(), " is in no index"));
        }
        Sha256 digest;
        int64_t size_bytes = 0;
        absl::StatusOr<std::string> piece = std::string();
        do {
          piece = ArtifactFiles::ReadFrom(data_dir_, artifact.name(), size_bytes, kReadBytes);
          if (!piece.ok()) break;
          digest.Update(*piece);
          size_bytes += static_cast<int64_t>(piece->size());
        } while (!piece->empty());
        result_.bytes += size_bytes;
        if (!piece.ok()) {
          Note(absl::StrCat("read the file of ", artifact.name()), piece.status());
        } else if (size_bytes != artifact.size_bytes() || digest.FinishHex() != artifact.sha256()) {
          Problem(absl::StrCat(artifact.name(), " has other bytes than its record says"));
        }
      });
  for (const std::string& name : indexed) {
    Problem(absl::StrCat("the artifacts' index names ", name, ", which has no record"));
  }
}

void StoreCheck::CheckSteps() {
  std::set<std::string> runs;
  Records<store::RunRecord>(
      Family::kRuns, "", [&](absl::string_view key, const store::RunRecord& record) {
        ++result_.runs;
        runs.emplace(key);
        if (record.run().name() != absl::StrCat("runs/", key)) {
          Problem(absl::StrCat("run ", key, " is recorded as ", record.run().name()));
        }
      });
  std::map<std::string, int32_t> references;
  Records<v1::StepRecord>(
      Family::kSteps, keys::Steps(), [&](absl::string_view key, const v1::StepRecord& step) {
        ++result_.steps;
        const absl::string_view run = absl::StripPrefix(step.run(), "runs/");
        if (key != keys::Step(run, step.index())) {
          Problem(
              absl::StrCat("step ", step.index(), " of ", step.run(), " lies under another key"));
        }
        if (runs.count(std::string(run)) == 0) {
          Problem(
              absl::StrCat("step ", step.index(), " is of ", step.run(), ", which has no record"));
        }
        for (const v1::TensorDigest& output : step.outputs()) ++references[output.sha256()];
      });
  CheckBlobs(references);
}

void StoreCheck::CheckBlobs(const std::map<std::string, int32_t>& references) {
  const BlobStore blobs(store_->impl_->db(), store_->impl_->handle(Family::kBlobs), {});
  std::set<std::string> recorded;
  Records<store::BlobRecord>(
      Family::kSteps, keys::BlobRecords(), [&](absl::string_view key, const auto& record) {
        ++result_.blobs;
        const std::string sha256(absl::StripPrefix(key, keys::BlobRecords()));
        recorded.insert(sha256);
        const auto found = references.find(sha256);
        const int32_t count = found == references.end() ? 0 : found->second;
        if (count != record.references()) {
          Problem(absl::StrCat("blob ", sha256, " has ", record.references(),
                               " references on record and ", count, " in fact"));
        }
        if (record.quarantined()) {
          Problem(absl::StrCat("blob ", sha256, " was found corrupt and is quarantined"));
          return;
        }
        const absl::StatusOr<BlobStore::Reading> reading = blobs.Read(sha256);
        Note(absl::StrCat("read blob ", sha256), reading.status());
        if (!reading.ok()) return;
        result_.bytes += static_cast<int64_t>(reading->bytes.size());
        if (!reading->intact) {
          Problem(absl::StrCat("blob ", sha256, " is ",
                               reading->found_sha256.empty() ? "not there whole" : "corrupt"));
        }
      });
  for (const auto& [sha256, count] : references) {
    if (recorded.count(sha256) == 0) Problem(absl::StrCat("blob ", sha256, " has no record"));
  }
}

}  // namespace plumbline::server
