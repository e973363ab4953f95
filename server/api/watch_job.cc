#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "server/api/job_reads.h"
#include "server/api/paged_stream.h"
#include "server/api/watch_streams.h"

namespace plumbline::server {
namespace {

constexpr int kPageEvents = 256;
constexpr int64_t kPageBytes = 1 << 20;

// The events of one job: its place in the stream is a sequence number, so nothing is lost or
// repeated whatever happens to the connection or the coordinator. What is sent is what is stored,
// byte for byte: many watchers cost little.
class WatchJobStream final : public PagedStream<grpc::ByteBuffer> {
 public:
  WatchJobStream(const Api& api, const Caller& caller, const v1::WatchJobRequest& request)
      : PagedStream(api, caller, "JobService/WatchJob"),
        name_(request.name()),
        sequence_(request.after_sequence()) {}

  ~WatchJobStream() override {
    if (job_ != 0) api_.hub->Unsubscribe(job_, this);
  }

 protected:
  Page ReadPage() override {
    Page page;
    absl::Status status = job_ == 0 ? Begin() : absl::OkStatus();
    if (status.ok()) status = Read(&page);
    if (status.ok() && page.items.empty()) status = ReadEnd(&page);
    if (!status.ok()) page.end = status;
    return page;
  }

 private:
  absl::Status Begin() {
    if (sequence_ < 0) {
      return FieldError("after_sequence", absl::StrCat(sequence_, " is no sequence number"),
                        "0 or more");
    }
    PLUMBLINE_ASSIGN_OR_RETURN(job_, FindJob(api_, name_, "name"));
    // Before the first read, so that no event falls between the two.
    api_.hub->Subscribe(job_, this);
    PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, api_.store->ReadJob(job_));
    if (sequence_ > 0 && sequence_ + 1 < record.first_sequence()) {
      return WithReason(
          absl::OutOfRangeError(absl::StrCat("events up to ", record.first_sequence() - 1,
                                             " were kept long enough and are gone; from 0 on what "
                                             "is left is sent")),
          "EVENTS_EXPIRED");
    }
    PLUMBLINE_ASSIGN_OR_RETURN(const int64_t newest, api_.store->NewestSequence(job_));
    if (sequence_ > newest) {
      return WithReason(absl::OutOfRangeError(absl::StrCat(
                            "event ", sequence_, " is not known, the newest is ", newest,
                            ": the coordinator was restored from a backup; watch from 0")),
                        "EVENTS_EXPIRED");
    }
    return absl::OkStatus();
  }

  absl::Status Read(Page* page) {
    PLUMBLINE_ASSIGN_OR_RETURN(
        const Store::EncodedEvents read,
        api_.store->ReadEncodedEvents(job_, sequence_, kPageEvents, kPageBytes));
    for (const std::string& event : read.events) {
      const grpc::Slice slice(event);
      page->items.emplace_back(&slice, 1);
    }
    if (!read.events.empty()) sequence_ = read.last_sequence;
    return absl::OkStatus();
  }

  // Nothing is left for now: is it for good? The record first: the events of a job that it shows as
  // finished are all there.
  absl::Status ReadEnd(Page* page) {
    PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, api_.store->ReadJob(job_));
    if (!IsFinal(record.job().state())) return absl::OkStatus();
    PLUMBLINE_RETURN_IF_ERROR(Read(page));
    if (page->items.empty()) page->end = absl::OkStatus();
    return absl::OkStatus();
  }

  const std::string name_;
  int64_t job_ = 0;
  int64_t sequence_;
};

}  // namespace

grpc::ServerWriteReactor<grpc::ByteBuffer>* NewWatchJobStream(const Api& api, const Caller& caller,
                                                              const v1::WatchJobRequest& request) {
  auto* const stream = new WatchJobStream(api, caller, request);
  stream->Start();
  return stream;
}

}  // namespace plumbline::server
