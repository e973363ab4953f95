#ifndef PLUMBLINE_SERVER_API_PAGED_STREAM_H_
#define PLUMBLINE_SERVER_API_PAGED_STREAM_H_

#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"
#include "server/api/call.h"
#include "server/error_details.h"

namespace plumbline::server {

// A server stream that reads page after page of something and writes it. It holds one page, so a
// slow reader costs no more than that and delays nobody; while there is nothing to read it costs no
// thread. Deletes itself when gRPC is done with it; Start must be called once.
template <typename Response>
class PagedStream : public grpc::ServerWriteReactor<Response>, public EventListener {
 public:
  struct Page {
    std::vector<Response> items;
    // Set: the stream ends with this after the items. With neither, it waits for OnNews.
    std::optional<absl::Status> end;
  };

  PagedStream(const Api& api, const Caller& caller, absl::string_view method)
      : api_(api), caller_(caller), timer_(api, method) {}

  void Start() {
    api_.pool->Post([this] { Read(); });
  }

  void OnNews() override {
    absl::MutexLock lock(&mutex_);
    news_ = true;
    if (state_ != State::kWaiting) return;
    state_ = State::kReading;
    api_.pool->Post([this] { Read(); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) {
      End(absl::CancelledError("the caller has left"));
    } else if (++next_item_ < page_.items.size()) {
      WriteItem();
    } else if (page_.end.has_value()) {
      End(*page_.end);
    } else {
      {
        absl::MutexLock lock(&mutex_);
        state_ = State::kReading;
      }
      api_.pool->Post([this] { Read(); });
    }
  }

  void OnCancel() override {
    {
      absl::MutexLock lock(&mutex_);
      cancelled_ = true;
      // Whoever reads or writes now will notice.
      if (state_ != State::kWaiting) return;
      state_ = State::kEnded;
    }
    End(absl::CancelledError("the caller has left"));
  }

  // Only after End. A subclass ends its subscription in its destructor.
  void OnDone() override { delete this; }

 protected:
  // The next page. Blocks; called on the pool, never twice at once.
  virtual Page ReadPage() = 0;

  const Api& api_;

 private:
  enum class State { kReading, kWriting, kWaiting, kEnded };

  void Read() {
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        news_ = false;
      }
      page_ = MayGoOn() ? ReadPage() : Page{{}, caller_.stream->MayGoOn()};
      next_item_ = 0;
      std::optional<absl::Status> end;
      {
        absl::MutexLock lock(&mutex_);
        if (cancelled_) {
          end = absl::CancelledError("the caller has left");
        } else if (!page_.items.empty()) {
          state_ = State::kWriting;
        } else if (page_.end.has_value()) {
          end = *page_.end;
        } else if (*api_.stopping) {
          end = absl::UnavailableError("the server is shutting down");
        } else if (news_) {
          continue;
        } else {
          state_ = State::kWaiting;
          return;
        }
        if (end.has_value()) state_ = State::kEnded;
      }
      end.has_value() ? End(*end) : WriteItem();
      return;
    }
  }

  // Whether the caller's token is still good.
  bool MayGoOn() const { return caller_.stream == nullptr || caller_.stream->MayGoOn().ok(); }

  void WriteItem() { this->StartWrite(&page_.items[next_item_]); }

  void End(const absl::Status& status) {
    timer_.End(status);
    this->Finish(ToClientStatus(status));
  }

  const Caller caller_;  // It counts as a stream of the caller as long as this lives.
  const CallTimer timer_;
  // Of whoever reads or writes; the two take turns.
  Page page_;
  size_t next_item_ = 0;

  absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kReading;
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_API_PAGED_STREAM_H_
