#include <utility>

#include "common/clock.h"
#include "common/http_connection.h"

namespace plumbline::http_internal {

int Registry::size() const {
  absl::MutexLock lock(&mutex_);
  return size_;
}

int Registry::SizeOf(const std::string& peer) const {
  absl::MutexLock lock(&mutex_);
  const auto entry = sizes_.find(peer);
  return entry == sizes_.end() ? 0 : entry->second;
}

void Registry::Enter(const std::string& peer) {
  absl::MutexLock lock(&mutex_);
  ++size_;
  if (!peer.empty()) ++sizes_[peer];
}

void Registry::Leave(Place* place) {
  absl::MutexLock lock(&mutex_);
  if (place->listed_) (place->waiting_ ? waiting_ : answering_).erase(place->entry_);
  --size_;
  if (const auto entry = sizes_.find(place->peer_); entry != sizes_.end()) {
    if (--entry->second == 0) sizes_.erase(entry);
  }
}

void Registry::Move(Place* place, std::weak_ptr<Connection> self, bool waiting) {
  std::shared_ptr<Connection> close;
  {
    absl::MutexLock lock(&mutex_);
    if (place->listed_) (place->waiting_ ? waiting_ : answering_).erase(place->entry_);
    std::list<std::weak_ptr<Connection>>& list = waiting ? waiting_ : answering_;
    if (closing_ && waiting) close = self.lock();
    place->entry_ = list.insert(list.end(), std::move(self));
    place->listed_ = true;
    place->waiting_ = waiting;
  }
  if (close != nullptr) close->Close();
}

bool Registry::CloseOneIdle(absl::Duration stuck) {
  std::shared_ptr<Connection> connection;
  {
    absl::MutexLock lock(&mutex_);
    // It stays in the list until it is gone; others may be asked for before that.
    for (auto each = waiting_.begin(); each != waiting_.end() && connection == nullptr; ++each) {
      connection = each->lock();
      if (connection != nullptr) waiting_.splice(waiting_.end(), waiting_, each);
    }
  }
  for (const std::shared_ptr<Connection>& each : connection == nullptr
                                                     ? Live(/*waiting=*/false)
                                                     : std::vector<std::shared_ptr<Connection>>()) {
    const absl::Duration time = each->StuckFor();
    if (time < stuck || time == absl::ZeroDuration()) continue;
    connection = each;
    stuck = time;
  }
  if (connection == nullptr) return false;
  connection->Close();
  return true;
}

std::vector<std::shared_ptr<Connection>> Registry::Live(bool waiting) const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::shared_ptr<Connection>> live;
  for (const std::weak_ptr<Connection>& each : waiting ? waiting_ : answering_) {
    if (std::shared_ptr<Connection> connection = each.lock()) live.push_back(std::move(connection));
  }
  return live;
}

void Registry::CloseAll(absl::Duration grace) {
  {
    absl::MutexLock lock(&mutex_);
    closing_ = true;
  }
  for (const auto& each : Live(/*waiting=*/true)) each->Close();
  for (const auto& each : Live(/*waiting=*/false)) each->CloseAfterAnswer();
  const auto empty = [this] {
    mutex_.AssertReaderHeld();
    return size_ == 0;
  };
  {
    absl::MutexLock lock(&mutex_);
    Clock* const clock = SteadyClock();
    if (clock->AwaitUntil(&mutex_, absl::Condition(&empty), clock->Now() + grace)) return;
  }
  for (const bool waiting : {true, false}) {
    for (const auto& each : Live(waiting)) each->Close();
  }
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&empty));
}

std::string PeerAt(boost::asio::ip::address address, const HttpLimits& limits) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = make_address_v4(boost::asio::ip::v4_mapped, address.to_v6());
  }
  if (address.is_loopback() && !limits.limits_loopback) return "";
  if (address.is_v4()) return address.to_string();
  const auto bytes = address.to_v6().to_bytes();
  return std::string(bytes.begin(), bytes.begin() + bytes.size() / 2);
}

std::string PeerOf(const boost::asio::ip::tcp::socket& socket, const HttpLimits& limits) {
  boost::system::error_code error;
  const boost::asio::ip::address address = socket.remote_endpoint(error).address();
  return error ? "" : PeerAt(address, limits);
}

bool Budget::Take(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  if (bytes > left_) return false;
  left_ -= bytes;
  return true;
}

void Budget::GiveBack(int64_t bytes) {
  absl::MutexLock lock(&mutex_);
  left_ += bytes;
}

}  // namespace plumbline::http_internal
