#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status.h"
#include "rocksdb/iterator.h"
#include "server/proto_util.h"
#include "server/store/store.h"
#include "server/store/store_impl.h"

namespace plumbline::server {
namespace {

absl::Status NoSuch(absl::string_view what, absl::string_view name) {
  return WithReason(absl::NotFoundError(absl::StrCat("there is no ", what, " ", Quoted(name))),
                    "NOT_FOUND");
}

rocksdb::Slice ToSlice(absl::string_view text) { return {text.data(), text.size()}; }
absl::string_view ToView(const rocksdb::Slice& slice) { return {slice.data(), slice.size()}; }

}  // namespace

absl::StatusOr<std::string> Store::Impl::Get(Family family, absl::string_view key) const {
  std::string value;
  const rocksdb::Status status =
      db_->Get(rocksdb::ReadOptions(), handle(family), ToSlice(key), &value);
  if (!status.ok()) return FromRocksdb(status, "read the store");
  return value;
}

absl::Status Store::Impl::Visit(
    Family family, absl::string_view begin, absl::string_view end, bool newest_first,
    const std::function<bool(absl::string_view, absl::string_view)>& visit) const {
  rocksdb::ReadOptions options;
  const rocksdb::Slice lower = ToSlice(begin);
  const rocksdb::Slice upper = ToSlice(end);
  options.iterate_lower_bound = &lower;
  if (!end.empty()) options.iterate_upper_bound = &upper;
  const std::unique_ptr<rocksdb::Iterator> each(db_->NewIterator(options, handle(family)));
  newest_first ? each->SeekToLast() : each->SeekToFirst();
  for (; each->Valid(); newest_first ? each->Prev() : each->Next()) {
    if (!visit(ToView(each->key()), ToView(each->value()))) break;
  }
  return FromRocksdb(each->status(), "read the store");
}

absl::StatusOr<int64_t> Store::Impl::NewestNumber(Family family, const std::string& prefix) const {
  return EndNumber(family, prefix, /*newest=*/true);
}

absl::StatusOr<int64_t> Store::Impl::OldestNumber(Family family, const std::string& prefix) const {
  return EndNumber(family, prefix, /*newest=*/false);
}

absl::StatusOr<int64_t> Store::Impl::EndNumber(Family family, const std::string& prefix,
                                               bool newest) const {
  int64_t number = 0;
  PLUMBLINE_RETURN_IF_ERROR(Visit(family, prefix, keys::PrefixEnd(prefix), newest,
                                  [&number](absl::string_view key, absl::string_view) {
                                    number = keys::TrailingNumber(key);
                                    return false;
                                  }));
  return number;
}

absl::StatusOr<int64_t> Store::Impl::GetNumber(Family family, absl::string_view key) const {
  const absl::StatusOr<std::string> bytes = Get(family, key);
  if (absl::IsNotFound(bytes.status())) return 0;
  if (!bytes.ok()) return bytes.status();
  return keys::TrailingNumber(*bytes);
}

absl::StatusOr<int64_t> Store::NewestJobNumber() const {
  return impl_->GetNumber(Family::kMeta, keys::NewestJob());
}

absl::StatusOr<int64_t> Store::NewestFencingToken() const {
  return impl_->GetNumber(Family::kLeases, keys::FencingToken());
}

absl::StatusOr<int64_t> Store::FindJob(absl::string_view id) const {
  absl::StatusOr<std::string> number = impl_->Get(Family::kJobs, keys::JobId(id));
  if (absl::IsNotFound(number.status())) return NoSuch("job", absl::StrCat("jobs/", id));
  if (!number.ok()) return number.status();
  return keys::TrailingNumber(*number);
}

absl::StatusOr<int64_t> Store::FindRequest(absl::string_view request_id) const {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string number,
                             impl_->Get(Family::kJobs, keys::RequestId(request_id)));
  return keys::TrailingNumber(number);
}

absl::StatusOr<store::JobRecord> Store::ReadJob(int64_t job) const {
  absl::StatusOr<store::JobRecord> record =
      impl_->GetRecord<store::JobRecord>(Family::kJobs, keys::Job(job));
  if (absl::IsNotFound(record.status()))
    return WithReason(absl::NotFoundError("the job was deleted"), "NOT_FOUND");
  return record;
}

absl::StatusOr<store::TaskRecord> Store::ReadTask(TaskKey task) const {
  return impl_->GetRecord<store::TaskRecord>(Family::kJobs, keys::Task(task));
}

absl::StatusOr<v1::TaskReport> Store::ReadReport(TaskKey task) const {
  return impl_->GetRecord<v1::TaskReport>(Family::kJobs, keys::Report(task));
}

absl::StatusOr<std::vector<store::TaskRecord>> Store::ReadTasks(int64_t job) const {
  std::vector<store::TaskRecord> tasks;
  const std::string prefix = keys::Tasks(job);
  PLUMBLINE_RETURN_IF_ERROR(
      impl_->VisitRecords<store::TaskRecord>(Family::kJobs, prefix, keys::PrefixEnd(prefix), false,
                                             [&tasks](absl::string_view, store::TaskRecord task) {
                                               tasks.push_back(std::move(task));
                                               return true;
                                             }));
  return tasks;
}

absl::Status Store::VisitJobs(
    int64_t before, const std::function<bool(int64_t, const store::JobRecord&)>& visit) const {
  return impl_->VisitRecords<store::JobRecord>(
      Family::kJobs, keys::Jobs(), keys::Job(before), true,
      [&visit](absl::string_view key, const store::JobRecord& job) {
        return visit(keys::TrailingNumber(key), job);
      });
}

absl::StatusOr<std::vector<int64_t>> Store::LiveJobs() const {
  std::vector<int64_t> jobs;
  const std::string prefix = keys::LiveJobs();
  PLUMBLINE_RETURN_IF_ERROR(impl_->Visit(Family::kJobs, prefix, keys::PrefixEnd(prefix), false,
                                         [&jobs](absl::string_view key, absl::string_view) {
                                           jobs.push_back(keys::TrailingNumber(key));
                                           return true;
                                         }));
  return jobs;
}

absl::StatusOr<std::vector<Store::FinishedJob>> Store::FinishedJobs(FinishedJob after,
                                                                    absl::Time end,
                                                                    int max_count) const {
  std::vector<FinishedJob> jobs;
  if (end <= after.first) return jobs;
  PLUMBLINE_RETURN_IF_ERROR(impl_->Visit(
      Family::kJobs, keys::FinishedJob(after.first, after.second + 1), keys::FinishedJob(end, 0),
      false, [&jobs, max_count](absl::string_view key, absl::string_view) {
        const int64_t seconds = keys::TrailingNumber(key.substr(0, key.size() - 8));
        jobs.emplace_back(absl::FromUnixSeconds(seconds), keys::TrailingNumber(key));
        return static_cast<int>(jobs.size()) < max_count;
      }));
  return jobs;
}

absl::StatusOr<std::vector<std::pair<TaskKey, store::LeaseRecord>>> Store::ReadLeases() const {
  std::vector<std::pair<TaskKey, store::LeaseRecord>> leases;
  const std::string prefix = keys::Leases();
  PLUMBLINE_RETURN_IF_ERROR(impl_->VisitRecords<store::LeaseRecord>(
      Family::kLeases, prefix, keys::PrefixEnd(prefix), false,
      [&leases](absl::string_view key, store::LeaseRecord lease) {
        leases.emplace_back(keys::TrailingTask(key), std::move(lease));
        return true;
      }));
  return leases;
}

absl::StatusOr<std::vector<v1::JobEvent>> Store::ReadEvents(int64_t job, int64_t after,
                                                            int max_count,
                                                            int64_t max_bytes) const {
  std::vector<v1::JobEvent> events;
  int64_t bytes = 0;
  PLUMBLINE_RETURN_IF_ERROR(impl_->VisitRecords<v1::JobEvent>(
      Family::kEvents, keys::Event(job, after + 1), keys::PrefixEnd(keys::Events(job)), false,
      [&](absl::string_view, v1::JobEvent event) {
        bytes += static_cast<int64_t>(event.ByteSizeLong());
        events.push_back(std::move(event));
        return static_cast<int>(events.size()) < max_count && bytes < max_bytes;
      }));
  return events;
}

absl::StatusOr<Store::EncodedEvents> Store::ReadEncodedEvents(int64_t job, int64_t after,
                                                              int max_count,
                                                              int64_t max_bytes) const {
  EncodedEvents read;
  int64_t bytes = 0;
  PLUMBLINE_RETURN_IF_ERROR(
      impl_->Visit(Family::kEvents, keys::Event(job, after + 1), keys::PrefixEnd(keys::Events(job)),
                   false, [&](absl::string_view key, absl::string_view value) {
                     bytes += static_cast<int64_t>(value.size());
                     read.events.emplace_back(value);
                     read.last_sequence = keys::TrailingNumber(key);
                     return static_cast<int>(read.events.size()) < max_count && bytes < max_bytes;
                   }));
  return read;
}

absl::StatusOr<v1::JobEvent> Store::ReadEvent(int64_t job, int64_t sequence) const {
  return impl_->GetRecord<v1::JobEvent>(Family::kEvents, keys::Event(job, sequence));
}

absl::StatusOr<int64_t> Store::NewestSequence(int64_t job) const {
  return impl_->NewestNumber(Family::kEvents, keys::Events(job));
}

absl::StatusOr<std::vector<Store::NumberedRevision>> Store::ReadRevisions(int64_t after,
                                                                          int max_count) const {
  std::vector<NumberedRevision> revisions;
  PLUMBLINE_RETURN_IF_ERROR(impl_->VisitRecords<store::Revision>(
      Family::kEvents, keys::Revision(after + 1), keys::PrefixEnd(keys::Revisions()), false,
      [&](absl::string_view key, store::Revision revision) {
        revisions.push_back({keys::TrailingNumber(key), std::move(revision)});
        return static_cast<int>(revisions.size()) < max_count;
      }));
  return revisions;
}

absl::StatusOr<std::pair<int64_t, int64_t>> Store::OldestAndNewestRevision() const {
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t oldest,
                             impl_->OldestNumber(Family::kEvents, keys::Revisions()));
  PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest,
                             impl_->NewestNumber(Family::kEvents, keys::Revisions()));
  return std::make_pair(oldest, newest);
}

absl::StatusOr<std::vector<store::WorkerRecord>> Store::ReadWorkers() const {
  std::vector<store::WorkerRecord> workers;
  const std::string prefix = keys::Workers();
  PLUMBLINE_RETURN_IF_ERROR(impl_->VisitRecords<store::WorkerRecord>(
      Family::kMeta, prefix, keys::PrefixEnd(prefix), false,
      [&workers](absl::string_view, store::WorkerRecord worker) {
        workers.push_back(std::move(worker));
        return true;
      }));
  return workers;
}

absl::StatusOr<std::map<std::string, absl::Duration>> Store::ReadShares() const {
  std::map<std::string, absl::Duration> shares;
  const std::string prefix = keys::Shares();
  PLUMBLINE_RETURN_IF_ERROR(impl_->VisitRecords<store::ShareRecord>(
      Family::kMeta, prefix, keys::PrefixEnd(prefix), false,
      [&](absl::string_view key, const store::ShareRecord& record) {
        shares[std::string(key.substr(prefix.size()))] = FromDuration(record.used());
        return true;
      }));
  return shares;
}

absl::StatusOr<v1::Artifact> Store::ReadArtifact(absl::string_view name) const {
  absl::StatusOr<v1::Artifact> artifact =
      impl_->GetRecord<v1::Artifact>(Family::kArtifacts, keys::Artifact(name));
  if (absl::IsNotFound(artifact.status())) return NoSuch("artifact", name);
  return artifact;
}

absl::StatusOr<std::vector<v1::Artifact>> Store::ReadArtifactsOf(int64_t job) const {
  std::vector<std::string> names;
  const std::string prefix = keys::JobArtifacts(job);
  PLUMBLINE_RETURN_IF_ERROR(impl_->Visit(Family::kArtifacts, prefix, keys::PrefixEnd(prefix), false,
                                         [&names](absl::string_view, absl::string_view name) {
                                           names.emplace_back(name);
                                           return true;
                                         }));
  std::vector<v1::Artifact> artifacts;
  for (const std::string& name : names) {
    PLUMBLINE_ASSIGN_OR_RETURN(v1::Artifact artifact, ReadArtifact(name));
    artifacts.push_back(std::move(artifact));
  }
  return artifacts;
}

absl::StatusOr<v1::Artifact> Store::FindTaskArtifact(TaskKey task,
                                                     absl::string_view file_name) const {
  PLUMBLINE_ASSIGN_OR_RETURN(const std::string name,
                             impl_->Get(Family::kArtifacts, keys::TaskArtifact(task, file_name)));
  return ReadArtifact(name);
}

absl::StatusOr<v1::Artifact> Store::FindUploadedArtifact(absl::string_view sha256,
                                                         absl::string_view file_name,
                                                         bool plugin) const {
  PLUMBLINE_ASSIGN_OR_RETURN(
      const std::string name,
      impl_->Get(Family::kArtifacts, keys::UploadedArtifact(sha256, file_name, plugin)));
  return ReadArtifact(name);
}

absl::StatusOr<std::vector<std::string>> Store::Impl::Suffixes(Family family,
                                                               const std::string& prefix) const {
  std::vector<std::string> suffixes;
  PLUMBLINE_RETURN_IF_ERROR(Visit(family, prefix, keys::PrefixEnd(prefix), false,
                                  [&](absl::string_view key, absl::string_view) {
                                    suffixes.emplace_back(absl::StripPrefix(key, prefix));
                                    return true;
                                  }));
  return suffixes;
}

absl::StatusOr<std::vector<std::string>> Store::ArtifactNames() const {
  return impl_->Suffixes(Family::kArtifacts, keys::Artifacts());
}

absl::StatusOr<std::vector<std::string>> Store::UploadNames() const {
  return impl_->Suffixes(Family::kArtifacts, keys::Uploads());
}

absl::StatusOr<store::UploadRecord> Store::ReadUpload(absl::string_view name) const {
  absl::StatusOr<store::UploadRecord> upload =
      impl_->GetRecord<store::UploadRecord>(Family::kArtifacts, keys::Upload(name));
  if (absl::IsNotFound(upload.status())) return NoSuch("upload", name);
  return upload;
}

absl::Status Store::VisitAudit(int64_t before,
                               const std::function<bool(const v1::AuditEvent&)>& visit) const {
  return impl_->VisitRecords<v1::AuditEvent>(
      Family::kAudit, keys::Audit(0), keys::Audit(before), true,
      [&visit](absl::string_view, const v1::AuditEvent& event) { return visit(event); });
}

}  // namespace plumbline::server
