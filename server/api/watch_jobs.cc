#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/status.h"
#include "server/api/job_filter.h"
#include "server/api/job_reads.h"
#include "server/api/paged_stream.h"
#include "server/api/watch_streams.h"

namespace plumbline::server {
namespace {

constexpr int kPageRevisions = 256;
constexpr int kDefaultSnapshot = 100;
constexpr int kMaxSnapshot = 1000;
constexpr int kSnapshotPage = 100;

v1::EventKind KindOfEvent(const v1::JobEvent& event) {
  switch (event.body_case()) {
    case v1::JobEvent::kJobState:
      return v1::EVENT_KIND_JOB_STATE;
    case v1::JobEvent::kTaskState:
      return v1::EVENT_KIND_TASK_STATE;
    case v1::JobEvent::kAttemptChange:
      return v1::EVENT_KIND_ATTEMPT;
    case v1::JobEvent::kReportReady:
      return v1::EVENT_KIND_REPORT_READY;
    case v1::JobEvent::kAttemptSuperseded:
      return v1::EVENT_KIND_ATTEMPT_SUPERSEDED;
    case v1::JobEvent::kArtifact:
      return v1::EVENT_KIND_ARTIFACT;
    case v1::JobEvent::kProgress:
      return v1::EVENT_KIND_PROGRESS;
    case v1::JobEvent::kNode:
      return v1::EVENT_KIND_NODE;
    case v1::JobEvent::kStep:
      return v1::EVENT_KIND_STEP;
    case v1::JobEvent::kLatentDrift:
      return v1::EVENT_KIND_LATENT_DRIFT;
    case v1::JobEvent::kPreview:
      return v1::EVENT_KIND_PREVIEW;
    case v1::JobEvent::kLog:
      return v1::EVENT_KIND_LOG;
    case v1::JobEvent::kRuleFrozen:
      return v1::EVENT_KIND_RULE_FROZEN;
    case v1::JobEvent::kSensitivity:
      return v1::EVENT_KIND_SENSITIVITY;
    case v1::JobEvent::BODY_NOT_SET:
      break;
  }
  return v1::EVENT_KIND_UNSPECIFIED;
}

// Jobs of a filtered list: first as they are, then along the log of revisions, whose numbers are
// the resume tokens.
class WatchJobsStream final : public PagedStream<v1::WatchJobsResponse> {
 public:
  WatchJobsStream(const Api& api, const Caller& caller, const v1::WatchJobsRequest& request)
      : PagedStream(api, caller, "JobService/WatchJobs"),
        request_(request),
        kinds_(request.event_kinds().begin(), request.event_kinds().end()) {
    api_.hub->Subscribe(EventHub::kAllJobs, this);
  }

  ~WatchJobsStream() override { api_.hub->Unsubscribe(EventHub::kAllJobs, this); }

 protected:
  Page ReadPage() override {
    Page page;
    absl::Status status = started_ ? absl::OkStatus() : Begin();
    while (status.ok() && page.items.empty()) {
      const int64_t before = snapshot_complete_ ? revision_ : snapshot_before_;
      status = snapshot_complete_ ? ReadChanges(&page) : ReadSnapshot(&page);
      // Nothing of what was read is for this caller, but there may be more.
      if (before == (snapshot_complete_ ? revision_ : snapshot_before_)) break;
    }
    if (!status.ok()) page.end = status;
    return page;
  }

 private:
  std::string Token(int64_t revision) const {
    return absl::StrCat(api_.store->format().store_id(), ".", revision);
  }

  absl::Status Begin() {
    started_ = true;
    PLUMBLINE_ASSIGN_OR_RETURN(const auto revisions, api_.store->OldestAndNewestRevision());
    const auto [oldest, newest] = revisions;
    if (request_.snapshot_limit() < 0 || request_.snapshot_limit() > kMaxSnapshot) {
      return FieldError("snapshot_limit", absl::StrCat(request_.snapshot_limit(), " is too many"),
                        "1 to 1000, or 0 for 100");
    }
    snapshot_left_ = request_.snapshot_limit() == 0 ? kDefaultSnapshot : request_.snapshot_limit();
    if (request_.resume_token().empty()) {
      revision_ = newest;
      return absl::OkStatus();
    }
    const std::vector<std::string> parts = absl::StrSplit(request_.resume_token(), '.');
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &revision_) || revision_ < 0) {
      return FieldError("resume_token",
                        absl::StrCat(Quoted(request_.resume_token()), " is no resume token"),
                        "one from an answer of this call");
    }
    if (parts[0] != api_.store->format().store_id() || revision_ + 1 < oldest ||
        revision_ > newest) {
      return absl::OutOfRangeError("the resume token has expired; start without one");
    }
    snapshot_complete_ = true;
    return absl::OkStatus();
  }

  // Messages of the snapshot carry no token: who resumes from one begins again.
  absl::Status ReadSnapshot(Page* page) {
    std::vector<std::pair<int64_t, v1::Job>> jobs;
    bool more = false;
    PLUMBLINE_RETURN_IF_ERROR(api_.store->VisitJobs(
        snapshot_before_, [&](int64_t number, const store::JobRecord& record) {
          if (!Matches(request_.filter(), record.job())) return true;
          more = snapshot_left_ > 0 && jobs.size() == kSnapshotPage;
          if (more || snapshot_left_ == 0) return false;
          --snapshot_left_;
          snapshot_before_ = number;
          jobs.emplace_back(number, record.job());
          return true;
        }));
    for (auto& [number, job] : jobs) {
      PLUMBLINE_RETURN_IF_ERROR(CompleteListedJob(api_, number, &job));
      *page->items.emplace_back().mutable_job() = std::move(job);
    }
    if (more) return absl::OkStatus();
    snapshot_complete_ = true;
    v1::WatchJobsResponse& complete = page->items.emplace_back();
    complete.set_snapshot_complete(true);
    complete.set_resume_token(Token(revision_));
    return absl::OkStatus();
  }

  absl::Status ReadChanges(Page* page) {
    PLUMBLINE_ASSIGN_OR_RETURN(const std::vector<Store::NumberedRevision> revisions,
                               api_.store->ReadRevisions(revision_, kPageRevisions));
    if (!revisions.empty() && revisions.front().number != revision_ + 1) {
      return absl::OutOfRangeError("the reader is too far behind; start without a token");
    }
    int64_t bytes = 0;
    for (const Store::NumberedRevision& each : revisions) {
      PLUMBLINE_RETURN_IF_ERROR(AddRevision(each, page));
      revision_ = each.number;
      if (!page->items.empty()) bytes += static_cast<int64_t>(page->items.back().ByteSizeLong());
      if (bytes > kMaxChunkBytes) break;
    }
    return absl::OkStatus();
  }

  absl::Status AddRevision(const Store::NumberedRevision& each, Page* page) {
    const int64_t number = each.revision.job();
    if (each.revision.sequence() == 0) {
      if (MatchesIdentity(request_.filter(), each.revision.deleted())) {
        AddRemoved(each.revision.deleted().name(), each.number, page);
      }
      return absl::OkStatus();
    }
    const absl::StatusOr<store::JobRecord> record = api_.store->ReadJob(number);
    // Deleted since; the log says so further on.
    if (absl::IsNotFound(record.status())) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(record.status());
    if (!MatchesIdentity(request_.filter(), record->job())) return absl::OkStatus();
    absl::StatusOr<v1::JobEvent> event = api_.store->ReadEvent(number, each.revision.sequence());
    if (absl::IsNotFound(event.status())) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(event.status());
    const v1::EventKind kind = KindOfEvent(*event);
    if (!MatchesState(request_.filter(), record->job())) {
      if (kind == v1::EVENT_KIND_JOB_STATE) AddRemoved(record->job().name(), each.number, page);
      return absl::OkStatus();
    }
    const bool wanted = kinds_.count(kind) > 0;
    if (kind == v1::EVENT_KIND_JOB_STATE || kind == v1::EVENT_KIND_TASK_STATE) {
      v1::WatchJobsResponse& update = page->items.emplace_back();
      *update.mutable_job() = record->job();
      PLUMBLINE_RETURN_IF_ERROR(CompleteListedJob(api_, number, update.mutable_job()));
      // Whoever resumes between a job and its event gets both.
      update.set_resume_token(Token(wanted ? each.number - 1 : each.number));
    }
    if (wanted) {
      v1::WatchJobsResponse& update = page->items.emplace_back();
      *update.mutable_event() = *std::move(event);
      update.set_resume_token(Token(each.number));
    }
    return absl::OkStatus();
  }

  void AddRemoved(const std::string& name, int64_t revision, Page* page) const {
    v1::WatchJobsResponse& update = page->items.emplace_back();
    update.set_removed(name);
    update.set_resume_token(Token(revision));
  }

  const v1::WatchJobsRequest request_;
  const std::set<int> kinds_;
  bool started_ = false;
  bool snapshot_complete_ = false;
  int64_t snapshot_before_ = std::numeric_limits<int64_t>::max();
  int snapshot_left_ = 0;
  int64_t revision_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::WatchJobsResponse>* NewWatchJobsStream(
    const Api& api, const Caller& caller, const v1::WatchJobsRequest& request) {
  auto* const stream = new WatchJobsStream(api, caller, request);
  stream->Start();
  return stream;
}

}  // namespace plumbline::server
