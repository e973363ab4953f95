#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace plumbline {
namespace {

// Whether this thread is inside a chunk, of whichever pool.
thread_local bool inside_chunk = false;

}  // namespace

struct ThreadPool::Loop {
  const int64_t begin;
  const int64_t end;
  const int64_t grain;
  const int64_t chunks;
  const absl::FunctionRef<void(int64_t, int64_t, int)> chunk;
  std::atomic<int64_t> next{0};
  // Workers inside RunChunks. Guarded by the pool's mutex_, which a nested struct cannot name.
  int helpers = 0;

  // Runs chunks until all are started.
  void RunChunks(int slot) {
    inside_chunk = true;
    for (int64_t i = next.fetch_add(1, std::memory_order_relaxed); i < chunks;
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      const int64_t first = begin + i * grain;
      chunk(first, std::min(end, first + grain), slot);
    }
    inside_chunk = false;
  }
};

ThreadPool::ThreadPool(int threads) {
  for (int slot = 1; slot < threads; ++slot) workers_.emplace_back([this, slot] { Work(slot); });
}

ThreadPool::~ThreadPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    loop_added_.SignalAll();
  }
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::ParallelFor(int64_t begin, int64_t end, int64_t grain,
                             absl::FunctionRef<void(int64_t, int64_t)> chunk) {
  ParallelForWithSlot(begin, end, grain,
                      [chunk](int64_t first, int64_t last, int) { chunk(first, last); });
}

void ThreadPool::ParallelForWithSlot(int64_t begin, int64_t end, int64_t grain,
                                     absl::FunctionRef<void(int64_t, int64_t, int)> chunk) {
  if (begin >= end) return;
  const int64_t chunks = (end - begin + grain - 1) / grain;
  if (inside_chunk || workers_.empty() || chunks == 1) {
    // A loop of one chunk counts as a loop too: what is nested in it must not find other slots.
    const bool was_inside = std::exchange(inside_chunk, true);
    for (int64_t first = begin; first < end; first += grain)
      chunk(first, std::min(end, first + grain), 0);
    inside_chunk = was_inside;
    return;
  }
  Loop loop{begin, end, grain, chunks, chunk};
  {
    absl::MutexLock lock(&mutex_);
    loops_.push_back(&loop);
    // The caller takes one chunk itself.
    if (chunks == 2)
      loop_added_.Signal();
    else
      loop_added_.SignalAll();
  }
  loop.RunChunks(0);
  absl::MutexLock lock(&mutex_);
  // Every chunk is started; those that helpers started may still run.
  const auto position = std::find(loops_.begin(), loops_.end(), &loop);
  if (position != loops_.end()) loops_.erase(position);
  while (loop.helpers > 0) helper_left_.Wait(&mutex_);
}

void ThreadPool::Work(int slot) {
  absl::MutexLock lock(&mutex_);
  while (true) {
    while (loops_.empty() && !stopping_) loop_added_.Wait(&mutex_);
    if (loops_.empty()) return;
    Loop* const loop = loops_.front();
    ++loop->helpers;
    mutex_.Unlock();
    loop->RunChunks(slot);
    mutex_.Lock();
    // Nobody need look at it again.
    const auto position = std::find(loops_.begin(), loops_.end(), loop);
    if (position != loops_.end()) loops_.erase(position);
    if (--loop->helpers == 0) helper_left_.SignalAll();
  }
}

}  // namespace plumbline
