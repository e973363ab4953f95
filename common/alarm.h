#ifndef PLUMBLINE_COMMON_ALARM_H_
#define PLUMBLINE_COMMON_ALARM_H_

#include <chrono>
#include <cstdint>

#include "absl/synchronization/mutex.h"

namespace plumbline {

// For who waits on an absl::Mutex by the machine's steady clock, which the mutex itself cannot: its
// own timed waits go by the wall clock, and when that is set back they last as much longer. Holding
// `mutex`, make one, await a condition that looks at the clock, and let it go: once `time` is there
// the mutex is taken and let go by a thread of the process's, so that the condition is looked at.
class Alarm {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Alarm(absl::Mutex* mutex, Time time);
  ~Alarm();
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

 private:
  const Time time_;
  const int64_t number_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_COMMON_ALARM_H_
