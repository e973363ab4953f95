#ifndef PLUMBLINE_KERNELS_CPU_THREAD_POOL_H_
#define PLUMBLINE_KERNELS_CPU_THREAD_POOL_H_

#include <cstdint>
#include <deque>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

namespace plumbline {

// A fixed set of threads that share loops. Any thread may call ParallelFor, several at once too; a
// call from inside a loop runs on its own thread alone. Destroy it only when no call is running.
//
// How a loop is cut depends on its bounds and grain, never on the number of threads: chunk i is
// [begin + i * grain, begin + (i + 1) * grain), cut at the end. Which thread runs a chunk and in
// which order is open. So a loop whose chunks write different values, or whose chunks' partial
// results are later joined in chunk order, gives the same bytes for every number of threads.
class ThreadPool {
 public:
  // `threads` includes the caller of ParallelFor: 1 (and anything below) starts none.
  explicit ThreadPool(int threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls chunk(first, last) once for each chunk and returns when all are done. `grain` >= 1.
  void ParallelFor(int64_t begin, int64_t end, int64_t grain,
                   absl::FunctionRef<void(int64_t first, int64_t last)> chunk);

  // As above, with a number in [0, num_threads()) that no two chunks of this loop running at once
  // share: which part of a loop's scratch memory is free to use.
  void ParallelForWithSlot(int64_t begin, int64_t end, int64_t grain,
                           absl::FunctionRef<void(int64_t first, int64_t last, int slot)> chunk);

 private:
  struct Loop;

  void Work(int slot);

  absl::Mutex mutex_;
  absl::CondVar loop_added_;
  absl::CondVar helper_left_;
  // Loops that may still have chunks to start, oldest first; each lives on its caller's stack.
  std::deque<Loop*> loops_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> workers_;  // unchanged after construction
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CPU_THREAD_POOL_H_
