// One connection of an HttpServer, and what all of them share. For http_server.cc alone.
#ifndef PLUMBLINE_COMMON_HTTP_CONNECTION_H_
#define PLUMBLINE_COMMON_HTTP_CONNECTION_H_

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/http_server.h"

namespace plumbline::http_internal {

class Connection {
 public:
  virtual ~Connection() = default;
  // Reads, answers, and so on, until the client or a time limit ends it. Once.
  virtual void Run() = 0;
  // Any thread. Breaks it off.
  virtual void Close() = 0;
  // Any thread. The answer that is being given is the last.
  virtual void CloseAfterAnswer() = 0;
  // Any thread. For how long its client has not taken what is being sent; zero where nothing is.
  virtual absl::Duration StuckFor() const = 0;
};

// Who is connected. Any thread may call.
class Registry {
 public:
  using Entry = std::list<std::weak_ptr<Connection>>::iterator;

  // A place in the registry from construction to destruction.
  class Place {
   public:
    // `peer`: PeerOf the connection.
    Place(Registry* registry, std::string peer) : registry_(registry), peer_(std::move(peer)) {
      registry_->Enter(peer_);
    }
    ~Place() { registry_->Leave(this); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // It waits for a request, or answers one. Those that wait may be closed for newcomers.
    void SetWaiting(std::weak_ptr<Connection> self) { registry_->Move(this, self, true); }
    void SetAnswering(std::weak_ptr<Connection> self) { registry_->Move(this, self, false); }

   private:
    friend class Registry;
    Registry* const registry_;
    const std::string peer_;
    bool listed_ = false;
    bool waiting_ = false;
    Entry entry_;
  };

  int size() const;
  // Of the connections of `peer`.
  int SizeOf(const std::string& peer) const;
  // Closes the connection that has waited longest or, where none waits, the one whose client has
  // been stuck longest, and for `stuck` at least; false if there is neither.
  bool CloseOneIdle(absl::Duration stuck);
  // Closes all that wait, lets answers be given for `grace`, closes the rest, and returns when
  // nobody holds any.
  void CloseAll(absl::Duration grace);

 private:
  void Enter(const std::string& peer);
  void Leave(Place* place);
  void Move(Place* place, std::weak_ptr<Connection> self, bool waiting);
  std::vector<std::shared_ptr<Connection>> Live(bool waiting) const;

  mutable absl::Mutex mutex_;
  int size_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> sizes_ ABSL_GUARDED_BY(mutex_);  // By peer, "" left out; none is 0.
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<std::weak_ptr<Connection>> waiting_ ABSL_GUARDED_BY(mutex_);  // Longest first.
  std::list<std::weak_ptr<Connection>> answering_ ABSL_GUARDED_BY(mutex_);
};

// Bytes that may be in use together. Any thread may call.
class Budget {
 public:
  explicit Budget(int64_t bytes) : left_(bytes) {}
  bool Take(int64_t bytes);
  void GiveBack(int64_t bytes);

 private:
  absl::Mutex mutex_;
  int64_t left_ ABSL_GUARDED_BY(mutex_);
};

struct Route {
  std::string method;
  std::string path;  // Without the "*".
  bool is_prefix = false;
  HttpHandler handler;
  HttpStreamHandler stream_handler;  // In place of it.
};

// Outlives every connection.
struct Shared {
  explicit Shared(const HttpLimits& limits)
      : limits(limits), bodies(limits.max_bodies_bytes), handlers(kHandlerThreads) {}

  // Handlers wait for a disk, never for a client.
  static constexpr int kHandlerThreads = 8;

  const HttpLimits limits;
  std::vector<Route> routes;
  HttpFilter filter;
  HttpExtraHeaders extra_headers;
  Registry registry;
  Budget bodies;
  boost::asio::thread_pool handlers;
};

// Who has `address`, as far as connections are counted: an IPv4 address, also as IPv6 writes it, or
// the first half of an IPv6 one, as bytes. "": loopback, unless `limits` count it.
std::string PeerAt(boost::asio::ip::address address, const HttpLimits& limits);
// PeerAt the other end. "": nobody is there any more, too.
std::string PeerOf(const boost::asio::ip::tcp::socket& socket, const HttpLimits& limits);

// With TLS unless `context` is null.
std::shared_ptr<Connection> NewConnection(Shared* shared, boost::asio::ip::tcp::socket socket,
                                          std::shared_ptr<boost::asio::ssl::context> context);

}  // namespace plumbline::http_internal

#endif  // PLUMBLINE_COMMON_HTTP_CONNECTION_H_
