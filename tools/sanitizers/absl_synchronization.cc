// Tells ThreadSanitizer about Abseil's locks.
//
// Debian's Abseil is not built with ThreadSanitizer, so the sanitizer sees neither a lock taken nor
// one released and takes everything that a lock guards for a race. The definitions here stand
// before the shared library's own for every caller in the process (gRPC too), call those, and say
// what happens before what. They are linked into `--config=tsan` alone.
//
// Reads are ignored while Abseil has control: it evaluates conditions, of other threads too,
// holding a lock that the sanitizer cannot know of at that moment.

#include <dlfcn.h>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

extern "C" {
void __tsan_acquire(void* address);
void __tsan_release(void* address);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

class IgnoreReads {
 public:
  IgnoreReads() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
  ~IgnoreReads() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
};

// The library's member function of this mangled name, with the object as its first argument.
template <typename Result, typename... Arguments>
class Next {
 public:
  explicit Next(const char* symbol)
      : function_(reinterpret_cast<Function*>(dlsym(RTLD_NEXT, symbol))) {}

  Result operator()(Arguments... arguments) const {
    IgnoreReads ignore_reads;
    return function_(arguments...);
  }

 private:
  using Function = Result(Arguments...);
  Function* const function_;
};

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  static const Next<void, Mutex*> next("_ZN4absl7debian35Mutex4LockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  static const Next<void, Mutex*> next("_ZN4absl7debian35Mutex6UnlockEv");
  __tsan_release(this);
  next(this);
}

bool Mutex::TryLock() {
  static const Next<bool, Mutex*> next("_ZN4absl7debian35Mutex7TryLockEv");
  const bool locked = next(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::ReaderLock() {
  static const Next<void, Mutex*> next("_ZN4absl7debian35Mutex10ReaderLockEv");
  next(this);
  __tsan_acquire(this);
}

void Mutex::ReaderUnlock() {
  static const Next<void, Mutex*> next("_ZN4absl7debian35Mutex12ReaderUnlockEv");
  __tsan_release(this);
  next(this);
}

void Mutex::LockWhen(const Condition& condition) {
  static const Next<void, Mutex*, const Condition&> next(
      "_ZN4absl7debian35Mutex8LockWhenERKNS0_9ConditionE");
  next(this, condition);
  __tsan_acquire(this);
}

bool Mutex::LockWhenWithTimeout(const Condition& condition, Duration timeout) {
  static const Next<bool, Mutex*, const Condition&, Duration> next(
      "_ZN4absl7debian35Mutex19LockWhenWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  const bool holds = next(this, condition, timeout);
  __tsan_acquire(this);
  return holds;
}

bool Mutex::LockWhenWithDeadline(const Condition& condition, Time deadline) {
  static const Next<bool, Mutex*, const Condition&, Time> next(
      "_ZN4absl7debian35Mutex20LockWhenWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  const bool holds = next(this, condition, deadline);
  __tsan_acquire(this);
  return holds;
}

void Mutex::Await(const Condition& condition) {
  static const Next<void, Mutex*, const Condition&> next(
      "_ZN4absl7debian35Mutex5AwaitERKNS0_9ConditionE");
  __tsan_release(this);
  next(this, condition);
  __tsan_acquire(this);
}

bool Mutex::AwaitWithTimeout(const Condition& condition, Duration timeout) {
  static const Next<bool, Mutex*, const Condition&, Duration> next(
      "_ZN4absl7debian35Mutex16AwaitWithTimeoutERKNS0_9ConditionENS0_8DurationE");
  __tsan_release(this);
  const bool holds = next(this, condition, timeout);
  __tsan_acquire(this);
  return holds;
}

bool Mutex::AwaitWithDeadline(const Condition& condition, Time deadline) {
  static const Next<bool, Mutex*, const Condition&, Time> next(
      "_ZN4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE");
  __tsan_release(this);
  const bool holds = next(this, condition, deadline);
  __tsan_acquire(this);
  return holds;
}

void CondVar::Wait(Mutex* mutex) {
  static const Next<void, CondVar*, Mutex*> next("_ZN4absl7debian37CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mutex);
  next(this, mutex);
  __tsan_acquire(mutex);
}

bool CondVar::WaitWithTimeout(Mutex* mutex, Duration timeout) {
  static const Next<bool, CondVar*, Mutex*, Duration> next(
      "_ZN4absl7debian37CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mutex);
  const bool timed_out = next(this, mutex, timeout);
  __tsan_acquire(mutex);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mutex, Time deadline) {
  static const Next<bool, CondVar*, Mutex*, Time> next(
      "_ZN4absl7debian37CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mutex);
  const bool timed_out = next(this, mutex, deadline);
  __tsan_acquire(mutex);
  return timed_out;
}

void Notification::Notify() {
  static const Next<void, Notification*> next("_ZN4absl7debian312Notification6NotifyEv");
  __tsan_release(this);
  next(this);
}

void Notification::WaitForNotification() const {
  static const Next<void, const Notification*> next(
      "_ZNK4absl7debian312Notification19WaitForNotificationEv");
  next(this);
  __tsan_acquire(const_cast<Notification*>(this));
}

bool Notification::WaitForNotificationWithTimeout(Duration timeout) const {
  static const Next<bool, const Notification*, Duration> next(
      "_ZNK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE");
  const bool notified = next(this, timeout);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

bool Notification::WaitForNotificationWithDeadline(Time deadline) const {
  static const Next<bool, const Notification*, Time> next(
      "_ZNK4absl7debian312Notification31WaitForNotificationWithDeadlineENS0_4TimeE");
  const bool notified = next(this, deadline);
  if (notified) __tsan_acquire(const_cast<Notification*>(this));
  return notified;
}

ABSL_NAMESPACE_END
}  // namespace absl
