#include <algorithm>
#include <limits>

#include "kernels/candidate/cpu/attention.h"
#include "kernels/candidate/cpu/attention_tiles.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/row_reductions.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::candidate {
namespace {

// Scratch of one forward: packed operands of a group of heads, and each worker's block.
struct ForwardLayout {
  ForwardLayout(const AttentionShape& shape, int64_t workers, uint8_t* workspace)
      : key_floats(shape.padded_rows * shape.width),
        value_floats(shape.padded_rows * shape.padded_width),
        query_floats(kBlockRows * shape.width),
        score_floats(kBlockRows * shape.padded_rows),
        output_floats(kBlockRows * shape.padded_width),
        group(shape.GroupHeads((key_floats + value_floats) * int64_t{sizeof(float)})) {
    WorkspaceLayout layout(workspace);
    keys = layout.Floats(group * key_floats);
    values = layout.Floats(group * value_floats);
    queries = layout.Floats(workers * query_floats);
    scores = layout.Floats(workers * score_floats);
    outputs = layout.Floats(workers * output_floats);
    bytes = layout.bytes();
  }

  const int64_t key_floats, value_floats, query_floats, score_floats, output_floats;
  const int64_t group;
  float *keys, *values;               // of each head of the group
  float *queries, *scores, *outputs;  // of each worker
  size_t bytes;
};

// The largest of `count` values; NaNs are passed over.
float RowMaximum(const float* values, int64_t count) {
  float lanes[kReductionLanes];
  std::fill_n(lanes, kReductionLanes, -std::numeric_limits<float>::infinity());
  int64_t i = 0;
  for (; i + kReductionLanes <= count; i += kReductionLanes) {
    for (int64_t j = 0; j < kReductionLanes; ++j) {
      lanes[j] = values[i + j] > lanes[j] ? values[i + j] : lanes[j];
    }
  }
  for (int64_t j = 0; i + j < count; ++j) lanes[j] = std::max(lanes[j], values[i + j]);
  return *std::max_element(lanes, lanes + kReductionLanes);
}

// p = exp(s scale - m) in place, zeros in the padding; `maximum` and `sum` receive m and l.
void Softmax(float* scores, const AttentionShape& shape, float* maximum, float* sum) {
  const float m = RowMaximum(scores, shape.rows) * shape.scale;
  for (int64_t key = 0; key < shape.rows; ++key) {
    scores[key] = ExpF32(scores[key] * shape.scale - m);
  }
  std::fill(scores + shape.rows, scores + shape.padded_rows, 0.0f);
  *maximum = m;
  *sum = RowSum(scores, shape.rows);
}

}  // namespace

size_t AttentionForwardBytes(const ForwardCall& call, const ExecutionContext& context) {
  const AttentionShape shape(call.inputs[0], call.attributes);
  return ForwardLayout(shape, context.threads->num_threads(), nullptr).bytes;
}

void AttentionForward(const ExecutionContext& context, const ForwardCall& call) {
  const AttentionShape shape(call.inputs[0], call.attributes);
  const ForwardLayout layout(shape, context.threads->num_threads(), context.workspace.data());
  float* saved_maxima = static_cast<float*>(call.saved);
  float* saved_sums = saved_maxima + shape.AllHeads() * shape.rows;

  for (int64_t first = 0; first < shape.AllHeads(); first += layout.group) {
    const int64_t heads = std::min(layout.group, shape.AllHeads() - first);
    const int64_t units = heads * shape.Blocks();
    context.threads->ParallelFor(0, units, 1, [&](int64_t unit, int64_t) {
      const int64_t head = unit / shape.Blocks();
      const int64_t begin = unit % shape.Blocks() * kBlockRows;
      const int64_t end = std::min(begin + kBlockRows, shape.rows);
      PackAsColumns(HeadRows(call.inputs[1], shape, first + head), shape, begin, end,
                    layout.keys + head * layout.key_floats);
      PackAsRows(HeadRows(call.inputs[2], shape, first + head), shape, begin, end,
                 layout.values + head * layout.value_floats);
    });
    context.threads->ParallelForWithSlot(0, units, 1, [&](int64_t unit, int64_t, int worker) {
      const int64_t head = unit / shape.Blocks();
      const int64_t begin = unit % shape.Blocks() * kBlockRows;
      const int64_t rows = std::min(kBlockRows, shape.rows - begin);
      float* query = layout.queries + worker * layout.query_floats;
      float* scores = layout.scores + worker * layout.score_floats;
      float* output = layout.outputs + worker * layout.output_floats;
      WidenHeadRows(HeadRows(call.inputs[0], shape, first + head), shape, begin, begin + rows,
                    query);
      TileProduct(rows, shape.padded_rows, shape.width, {query, shape.width, 1},
                  {layout.keys + head * layout.key_floats, shape.width * kStripWidth}, scores,
                  shape.padded_rows, TileWrite::kOverwrite);
      float maxima[kBlockRows], sums[kBlockRows];
      for (int64_t i = 0; i < rows; ++i) {
        Softmax(scores + i * shape.padded_rows, shape, &maxima[i], &sums[i]);
      }
      TileProduct(rows, shape.padded_width, shape.rows, {scores, shape.padded_rows, 1},
                  {layout.values + head * layout.value_floats, shape.padded_rows * kStripWidth},
                  output, shape.padded_width, TileWrite::kOverwrite);
      const HeadRows to(call.output, shape, first + head);
      for (int64_t i = 0; i < rows; ++i) {
        bfloat16* to_row = to.Row(begin + i);
        const float* from_row = output + i * shape.padded_width;
        for (int64_t d = 0; d < shape.width; ++d) to_row[d] = RoundToBf16(from_row[d] / sums[i]);
      }
      if (call.saved != nullptr) {
        const int64_t offset = (first + head) * shape.rows + begin;
        std::copy_n(maxima, rows, saved_maxima + offset);
        std::copy_n(sums, rows, saved_sums + offset);
      }
    });
  }
}

}  // namespace plumbline::candidate
