#include "common/access/server_addresses.h"

#include <sys/un.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/clock.h"
#include "common/host_and_port.h"

namespace plumbline {
namespace {

// A process that asks again and again does not gather threads while nobody answers.
constexpr int kMostUnderWay = 4;
std::atomic<int> under_way{0};

// What the thread that looks up and the one that waits for it share.
struct Answer {
  absl::Mutex mutex;
  bool done ABSL_GUARDED_BY(mutex) = false;
  ServerAddresses addresses ABSL_GUARDED_BY(mutex);
};

ServerAddresses LookUp(const HostAndPort& server, int flags, const HostLookup& lookup) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  const int error = lookup(server.host.c_str(), absl::StrCat(server.port).c_str(), &hints, &found);
  ServerAddresses addresses;
  addresses.is_unknown = error == EAI_NONAME;
  if (error != 0) return addresses;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> all(found, &freeaddrinfo);
  for (const addrinfo* each = all.get(); each != nullptr; each = each->ai_next) {
    SocketAddress& address = addresses.all.emplace_back();
    address.size = each->ai_addrlen;
    std::memcpy(&address.bytes, each->ai_addr, each->ai_addrlen);
  }
  return addresses;
}

ServerAddresses OfPath(absl::string_view path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return {};
  std::memcpy(address.sun_path, path.data(), path.size());
  ServerAddresses addresses;
  SocketAddress& only = addresses.all.emplace_back();
  only.size = sizeof(address);
  std::memcpy(&only.bytes, &address, sizeof(address));
  return addresses;
}

}  // namespace

ServerAddresses FindServer(const std::string& server, absl::Duration limit, HostLookup lookup) {
  absl::string_view path = server;
  if (absl::ConsumePrefix(&path, "unix:")) return OfPath(path);
  const absl::StatusOr<HostAndPort> parsed = ParseHostAndPort(server, 1, "server", "");
  if (!parsed.ok()) return {};
  // An address needs nobody's answer.
  ServerAddresses literal = LookUp(*parsed, AI_NUMERICHOST, &getaddrinfo);
  if (!literal.all.empty()) return literal;
  if (++under_way > kMostUnderWay) {
    --under_way;
    return {};
  }
  const auto answer = std::make_shared<Answer>();
  std::thread([answer, host = *parsed, lookup = std::move(lookup)] {
    ServerAddresses addresses = LookUp(host, 0, lookup);
    --under_way;
    absl::MutexLock lock(&answer->mutex);
    answer->addresses = std::move(addresses);
    answer->done = true;
  }).detach();
  absl::MutexLock lock(&answer->mutex);
  Clock* const clock = SteadyClock();
  clock->AwaitUntil(&answer->mutex, absl::Condition(&answer->done), clock->Now() + limit);
  return answer->addresses;
}

}  // namespace plumbline
