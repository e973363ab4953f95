#include "common/alarm.h"

#include <signal.h>

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
    alarms_.emplace(std::make_pair(time, number), mutex);
    // Otherwise it wakes early enough, if only for one that was forgotten, and looks again.
    if (time < wakes_) changed_.notify_one();
    return number;
  }

  void Forget(Alarm::Time time, int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    alarms_.erase({time, number});
  }

 private:
  Alarms() {
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { Run(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  [[noreturn]] void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      const Alarm::Time now = std::chrono::steady_clock::now();
      if (!GoOff(now)) {
        wakes_ = now + kTryAgainAfter;
        changed_.wait_until(lock, wakes_);
      } else if (alarms_.empty()) {
        wakes_ = Alarm::Time::max();
        changed_.wait(lock);
      } else {
        wakes_ = alarms_.begin()->first.first;
        changed_.wait_until(lock, wakes_);
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
  Alarm::Time wakes_ = Alarm::Time::max();  // Of the thread.
};

}  // namespace

Alarm::Alarm(absl::Mutex* mutex, Time time)
    : time_(time), number_(Alarms::Get().Set(mutex, time)) {}

Alarm::~Alarm() { Alarms::Get().Forget(time_, number_); }

}  // namespace plumbline
