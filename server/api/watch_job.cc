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
// repeated whatever happens to the connection or the coordinator.
class WatchJobStream final : public PagedStream<v1::JobEvent> {
 public:
  WatchJobStream(const Api& api, const v1::WatchJobRequest& request)
      : PagedStream(api, "JobService/WatchJob"),
        name_(request.name()),
        sequence_(request.after_sequence()) {}

  ~WatchJobStream() override {
    if (job_ != 0) api_.hub->Unsubscribe(job_, this);
  }

 protected:
  Page ReadPage() override {
    Page page;
    const absl::Status status = Read(&page);
    if (!status.ok()) page.end = status;
    return page;
  }

 private:
  absl::Status Read(Page* page) {
    if (job_ == 0) {
      if (sequence_ < 0) {
        return FieldError("after_sequence", absl::StrCat(sequence_, " is no sequence number"),
                          "0 or more");
      }
      PLUMBLINE_ASSIGN_OR_RETURN(job_, FindJob(api_, name_, "name"));
      // Before the first read, so that no event falls between the two.
      api_.hub->Subscribe(job_, this);
    }
    // The record first: the events of a job that it shows as finished are all there.
    PLUMBLINE_ASSIGN_OR_RETURN(const store::JobRecord record, api_.store->ReadJob(job_));
    PLUMBLINE_ASSIGN_OR_RETURN(page->items,
                               api_.store->ReadEvents(job_, sequence_, kPageEvents, kPageBytes));
    if (!page->items.empty()) {
      sequence_ = page->items.back().sequence();
    } else if (IsFinal(record.job().state())) {
      page->end = absl::OkStatus();
    }
    return absl::OkStatus();
  }

  const std::string name_;
  int64_t job_ = 0;
  int64_t sequence_;
};

}  // namespace

grpc::ServerWriteReactor<v1::JobEvent>* NewWatchJobStream(const Api& api,
                                                          const v1::WatchJobRequest& request) {
  auto* const stream = new WatchJobStream(api, request);
  stream->Start();
  return stream;
}

}  // namespace plumbline::server
