#ifndef PLUMBLINE_COMMON_ACCESS_PROBE_SOCKET_H_
#define PLUMBLINE_COMMON_ACCESS_PROBE_SOCKET_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/access/server_addresses.h"

namespace plumbline {

// A connection that is made to see who answers. One thread.
class ProbeSocket {
 public:
  // To the first of `addresses` that takes it; null if none does within `limit` each, which holds
  // for each call below too. After three times that nothing more is received, so that nobody who
  // sends byte by byte holds up who asks.
  static std::unique_ptr<ProbeSocket> Connect(const ServerAddresses& addresses,
                                              absl::Duration limit);
  ~ProbeSocket();
  ProbeSocket(const ProbeSocket&) = delete;
  ProbeSocket& operator=(const ProbeSocket&) = delete;

  // False if the other side takes no more.
  bool Send(absl::string_view bytes);
  // What comes next, at most 16 KiB; "" at the end, or if nothing comes.
  std::string Receive();
  // Whether the other side has ended it.
  bool ended() const { return ended_; }

 private:
  ProbeSocket(int descriptor, absl::Time end) : descriptor_(descriptor), end_(end) {}

  const int descriptor_;
  const absl::Time end_;
  bool ended_ = false;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ACCESS_PROBE_SOCKET_H_
