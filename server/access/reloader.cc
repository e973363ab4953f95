#include "server/access/reloader.h"

#include <utility>

#include "common/clock.h"
#include "common/logging.h"

namespace plumbline::server {

Reloader::Reloader(std::map<std::string, std::function<absl::Status()>> reloads,
                   absl::Duration interval)
    : reloads_(std::move(reloads)), interval_(interval), thread_([this] { Run(); }) {}

Reloader::~Reloader() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void Reloader::Run() {
  std::map<std::string, std::string> errors;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      Clock* const clock = SteadyClock();
      if (clock->AwaitUntil(&mutex_, absl::Condition(&ending_), clock->Now() + interval_)) return;
    }
    for (const auto& [what, reload] : reloads_) {
      const absl::Status status = reload();
      const std::string error = status.ok() ? "" : std::string(status.message());
      if (std::exchange(errors[what], error) == error || status.ok()) continue;
      Log(LogLevel::kWarning, "files cannot be reloaded; those read before stay in use",
          {{"files", what}, {"error", error}});
    }
  }
}

}  // namespace plumbline::server
