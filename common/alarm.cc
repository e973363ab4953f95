#include "common/alarm.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace plumbline {
namespace {

// How soon a mutex that somebody holds is tried again.
constexpr std::chrono::milliseconds kTryAgainAfter(1);

// All alarms of the process, and the thread that goes off. Never destroyed. Whoever sets one holds
// its mutex and then takes this one's; the thread, which holds this one's, only ever tries for the
// other: so neither waits for the other, and no mutex is touched after its alarm is gone.
class Alarms {
 public:
  static Alarms& Get() {
    static Alarms* const alarms = new Alarms;
    return *alarms;
  }

  int64_t Set(absl::Mutex* mutex, Alarm::Time time) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const int64_t number = ++newest_;
    const auto entry = alarms_.emplace(std::make_pair(time, number), mutex).first;
    if (entry == alarms_.begin()) changed_.notify_one();
    return number;
  }

  void Forget(Alarm::Time time, int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    alarms_.erase({time, number});
  }

 private:
  Alarms() {
    std::thread([this] { Run(); }).detach();
  }

  [[noreturn]] void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      const Alarm::Time now = std::chrono::steady_clock::now();
      if (alarms_.empty()) {
        changed_.wait(lock);
      } else if (const Alarm::Time first = alarms_.begin()->first.first; first > now) {
        changed_.wait_until(lock, first);
      } else if (!GoOff(now)) {
        changed_.wait_for(lock, kTryAgainAfter);
      }
    }
  }

  // False if a mutex was held by somebody.
  bool GoOff(Alarm::Time now) {
    bool all = true;
    for (auto entry = alarms_.begin(); entry != alarms_.end() && entry->first.first <= now;) {
      if (entry->second->TryLock()) {
        entry->second->Unlock();
        entry = alarms_.erase(entry);
      } else {
        all = false;
        ++entry;
      }
    }
    return all;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<Alarm::Time, int64_t>, absl::Mutex*> alarms_;
  int64_t newest_ = 0;
};

}  // namespace

Alarm::Alarm(absl::Mutex* mutex, Time time)
    : time_(time), number_(Alarms::Get().Set(mutex, time)) {}

Alarm::~Alarm() { Alarms::Get().Forget(time_, number_); }

}  // namespace plumbline
