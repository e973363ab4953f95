#include "kernels/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

namespace plumbline {
namespace {

TEST(ThreadPool, RunsEveryIndexOnceInChunksThatTheGrainFixes) {
  for (const int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (const int64_t size : {0, 1, 2, 7, 100, 1001}) {
      for (const int64_t grain : {1, 3, 64, 5000}) {
        std::vector<std::atomic<int>> runs(static_cast<size_t>(size));
        pool.ParallelFor(10, 10 + size, grain, [&](int64_t first, int64_t last) {
          EXPECT_EQ((first - 10) % grain, 0);
          EXPECT_EQ(last, std::min(first + grain, 10 + size));
          for (int64_t i = first; i < last; ++i) ++runs[static_cast<size_t>(i - 10)];
        });
        for (const std::atomic<int>& count : runs) ASSERT_EQ(count, 1);
      }
    }
  }
}

TEST(ThreadPool, WorkersRunChunksAtOnce) {
  ThreadPool pool(4);
  absl::Mutex mutex;
  int arrived = 0;
  // Each chunk waits for the three others: fewer than four threads cannot finish this.
  pool.ParallelFor(0, 4, 1, [&](int64_t, int64_t) {
    absl::MutexLock lock(&mutex);
    ++arrived;
    mutex.Await(absl::Condition(
        +[](int* count) { return *count == 4; }, &arrived));
  });
  EXPECT_EQ(arrived, 4);
}

TEST(ThreadPool, SlotsAreNotSharedByChunksThatRunAtOnce) {
  ThreadPool pool(5);
  std::vector<std::atomic<int>> users(5);
  std::atomic<bool> shared{false};
  pool.ParallelForWithSlot(0, 20000, 1, [&](int64_t, int64_t, int slot) {
    if (users[static_cast<size_t>(slot)].fetch_add(1) != 0) shared = true;
    users[static_cast<size_t>(slot)].fetch_sub(1);
  });
  EXPECT_FALSE(shared);
}

TEST(ThreadPool, NestedLoopsRunInline) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  pool.ParallelFor(0, 50, 1, [&](int64_t outer, int64_t) {
    const std::thread::id thread = std::this_thread::get_id();
    pool.ParallelFor(0, 40, 7, [&](int64_t first, int64_t last) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      for (int64_t inner = first; inner < last; ++inner) sum += outer * inner;
    });
  });
  EXPECT_EQ(sum, (49 * 50 / 2) * (39 * 40 / 2));
}

TEST(ThreadPool, ALoopInsideALoopOfOneChunkHasOneSlot) {
  ThreadPool pool(4);
  std::atomic<int> highest{0};
  pool.ParallelFor(0, 1, 1, [&](int64_t, int64_t) {
    pool.ParallelForWithSlot(0, 1000, 1, [&](int64_t, int64_t, int slot) {
      if (slot > highest) highest = slot;
    });
  });
  EXPECT_EQ(highest, 0);
}

TEST(ThreadPool, SeveralThreadsMayLoopAtOnce) {
  ThreadPool pool(4);
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(6);
  for (size_t caller = 0; caller < sums.size(); ++caller) {
    callers.emplace_back([&pool, &sums, caller] {
      for (int repeat = 0; repeat < 200; ++repeat) {
        std::vector<int64_t> values(97);
        pool.ParallelFor(0, 97, 5, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) values[static_cast<size_t>(i)] = i;
        });
        for (const int64_t value : values) sums[caller] += value;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const int64_t sum : sums) EXPECT_EQ(sum, 200 * (96 * 97 / 2));
}

}  // namespace
}  // namespace plumbline
