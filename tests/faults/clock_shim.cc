// Loaded before a program's other libraries, makes its wall clock jump: the machine's time plus the
// nanoseconds, a native int64, at the beginning of the file that CLOCK_SHIM_FILE names, whenever
// that file changes. The steady clock stays what it is. What waits until a time of the wall clock
// (condition variables, and futexes, which absl::Mutex uses) wakes by the clock as it then is, as
// under Linux when the clock is set.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace {

constexpr int64_t kSecond = 1'000'000'000;
// How often who waits looks at the clock.
constexpr int64_t kSlice = 20'000'000;
// No machine has been up for so long: a later time is one of the wall clock.
constexpr int64_t kWallClock = 1'000'000'000 * kSecond;

template <typename Function>
Function* Next(const char* name, const char* version = nullptr) {
  void* const found =
      version == nullptr ? dlsym(RTLD_NEXT, name) : dlvsym(RTLD_NEXT, name, version);
  return reinterpret_cast<Function*>(found);
}

int64_t ToNumber(const timespec& time) { return time.tv_sec * kSecond + time.tv_nsec; }
timespec ToTimespec(int64_t number) {
  return {static_cast<time_t>(number / kSecond), static_cast<int64_t>(number % kSecond)};
}

int RealTime(clockid_t clock, timespec* time) {
  static auto* const next = Next<int(clockid_t, timespec*)>("clock_gettime");
  return next(clock, time);
}

int64_t RealNow() {
  timespec time;
  RealTime(CLOCK_REALTIME, &time);
  return ToNumber(time);
}

int64_t Offset() {
  static const volatile int64_t* const offset = [] {
    const char* const path = std::getenv("CLOCK_SHIM_FILE");
    const int file = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void* const map =
        file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    if (map == MAP_FAILED) abort();
    return static_cast<const volatile int64_t*>(map);
  }();
  return *offset;
}

// Until when, by the machine's clock, to wait for the next look; 0: `until` is here.
int64_t NextLook(int64_t until) {
  const int64_t real = RealNow();
  const int64_t left = until - (real + Offset());
  return left <= 0 ? 0 : real + std::min(left, kSlice);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int status = RealTime(clock, time);
  if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    *time = ToTimespec(ToNumber(*time) + Offset());
  }
  return status;
}

int gettimeofday(timeval* time, void*) noexcept {
  const int64_t now = RealNow() + Offset();
  time->tv_sec = now / kSecond;
  time->tv_usec = now % kSecond / 1000;
  return 0;
}

time_t time(time_t* time) noexcept {
  const time_t now = (RealNow() + Offset()) / kSecond;
  if (time != nullptr) *time = now;
  return now;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* time) {
  static auto* const next = Next<int(pthread_cond_t*, pthread_mutex_t*, const timespec*)>(
      "pthread_cond_timedwait", "GLIBC_2.3.2");
  const int64_t until = ToNumber(*time);
  if (until < kWallClock) return next(condition, mutex, time);
  const int64_t look = NextLook(until);
  // At the end of its time it still lets the mutex go once.
  const timespec look_time = ToTimespec(look);
  const int status = next(condition, mutex, &look_time);
  // Waking for no reason is allowed, and whoever waits looks at its condition again.
  return status == ETIMEDOUT && look != 0 ? 0 : status;
}

int64_t syscall(int64_t number, ...) noexcept {
  static auto* const next = Next<int64_t(int64_t, ...)>("syscall");
  va_list list;
  va_start(list, number);
  int64_t a[6];
  for (int64_t& argument : a) argument = va_arg(list, int64_t);
  va_end(list);
  const auto* const time = reinterpret_cast<const timespec*>(a[3]);
  const bool waits = number == SYS_futex && time != nullptr && (a[1] & FUTEX_CLOCK_REALTIME) != 0 &&
                     (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET;
  if (!waits) return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
  while (true) {
    const int64_t look = NextLook(ToNumber(*time));
    const timespec look_time = ToTimespec(look);
    const int64_t status =
        next(number, a[0], a[1], a[2], reinterpret_cast<int64_t>(&look_time), a[4], a[5]);
    if (status == 0 || errno != ETIMEDOUT || look == 0) return status;
  }
}

}  // extern "C"
