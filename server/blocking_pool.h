#ifndef PLUMBLINE_SERVER_BLOCKING_POOL_H_
#define PLUMBLINE_SERVER_BLOCKING_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace plumbline::server {

// The threads on which work waits for the disk, so that gRPC's few never do. Any thread may call.
class BlockingPool {
 public:
  explicit BlockingPool(int threads);
  ~BlockingPool();  // Does what was posted, then ends.
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Runs `work` once, first come first served.
  void Post(std::function<void()> work);

 private:
  void Run();

  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace plumbline::server

#endif  // PLUMBLINE_SERVER_BLOCKING_POOL_H_
