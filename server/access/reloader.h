#ifndef PLUMBLINE_SERVER_ACCESS_RELOADER_H_
#define PLUMBLINE_SERVER_ACCESS_RELOADER_H_

#include <functional>
#include <map>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace plumbline::server {

// A thread that calls functions again and again, to read files that may have been replaced, and
// logs an error once. By the machine's steady clock: so does whoever replaces files.
class Reloader {
 public:
  // By what each reads, for the log.
  Reloader(std::map<std::string, std::function<absl::Status()>> reloads, absl::Duration interval);
  ~Reloader();  // Ends it.
  Reloader(const Reloader&) = delete;
  Reloader& operator=(const Reloader&) = delete;

 private:
  void Run();

  const std::map<std::string, std::function<absl::Status()>> reloads_;
  const absl::Duration interval_;
  absl::Mutex mutex_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_ACCESS_RELOADER_H_
