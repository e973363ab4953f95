// Loops over the rows of a tensor, shared among a pool's threads.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_PARALLEL_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_PARALLEL_H_

#include <cstdint>

#include "kernels/cpu/thread_pool.h"

namespace plumbline::candidate {

// Rows that one thread takes at a time.
constexpr int64_t kRowGrain = 16;

// Calls body(item, row) once for each row of each batch item, in any order.
template <typename Body>
void ParallelRows(ThreadPool& threads, int64_t batch, int64_t rows, const Body& body) {
  threads.ParallelFor(0, batch * rows, kRowGrain, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) body(i / rows, i % rows);
  });
}

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_PARALLEL_H_
