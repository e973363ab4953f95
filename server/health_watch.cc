#include "server/health_watch.h"

#include <utility>

#include "absl/time/time.h"

namespace plumbline::server {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(1);

}  // namespace

HealthWatch::HealthWatch(std::function<bool()> ready, std::function<void(bool)> tell)
    : ready_(std::move(ready)), tell_(std::move(tell)), thread_([this] { Run(); }) {}

HealthWatch::~HealthWatch() {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
  }
  thread_.join();
}

void HealthWatch::Run() {
  bool told = ready_();
  tell_(told);
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&ending_), kInterval)) return;
    }
    const bool is_ready = ready_();
    if (std::exchange(told, is_ready) != is_ready) tell_(is_ready);
  }
}

}  // namespace plumbline::server
