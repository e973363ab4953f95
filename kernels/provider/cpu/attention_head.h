// One head of one batch item, as the attention files read and write it.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_ATTENTION_HEAD_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_ATTENTION_HEAD_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/ops.h"

namespace plumbline::provider {

// What every attention supports.
absl::Status CheckAttention(const ForwardCall& call);

struct Head {
  int64_t item = 0;
  int64_t first_channel = 0;
  int64_t width = 0;
  // Where the head's values begin in an array with one value for each (item, head, row).
  int64_t first_row_value = 0;
};

inline float SoftmaxScale(int64_t head_width) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_width)));
}

// Rows [first, first + count) of a head, widened to (count, width).
inline void LoadHead(const Tensor& tensor, const Head& head, int64_t first, int64_t count,
                     float* to) {
  for (int64_t i = 0; i < count; ++i) {
    const bfloat16* const row = tensor.Row<bfloat16>(first + i, head.item) + head.first_channel;
    WidenBf16({row, static_cast<size_t>(head.width)}, to + i * head.width);
  }
}

// The inverse, rounded.
inline void StoreHead(const float* from, const Head& head, int64_t first, int64_t count,
                      const Tensor& tensor) {
  for (int64_t i = 0; i < count; ++i) {
    bfloat16* const row = tensor.Row<bfloat16>(first + i, head.item) + head.first_channel;
    RoundToBf16({from + i * head.width, static_cast<size_t>(head.width)}, row);
  }
}

// Calls body(head, first, count, slot) for every run of at most `tile` rows of every head of `like`
// (batch, rows, heads * head_width), from several threads.
template <typename Body>
void ForEachHeadTile(const ExecutionContext& context, const Tensor& like, int64_t head_width,
                     int64_t tile, Body body) {
  const int64_t heads = like.width / head_width;
  const int64_t tiles = (like.rows + tile - 1) / tile;
  const auto run = [&](int64_t task, int64_t, int slot) {
    const int64_t number = task / tiles;  // item * heads + head
    const int64_t first = task % tiles * tile;
    const Head head = {number / heads, number % heads * head_width, head_width, number * like.rows};
    body(head, first, std::min(tile, like.rows - first), slot);
  };
  context.threads->ParallelForWithSlot(0, like.batch * heads * tiles, 1, run);
}

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_ATTENTION_HEAD_H_
