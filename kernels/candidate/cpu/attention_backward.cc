#include <algorithm>

#include "kernels/candidate/cpu/attention.h"
#include "kernels/candidate/cpu/attention_tiles.h"
#include "kernels/candidate/cpu/workspace_layout.h"
#include "kernels/cpu/row_reductions.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/numerics/elementary.h"

namespace plumbline::candidate {
namespace {

// Keys whose p and ds are kept at once, for all queries. One run of TileProduct, so that dq's sums
// are the same as over all keys in one call.
constexpr int64_t kPanelKeys = 256;

// Scratch of one backward.
struct BackwardLayout {
  BackwardLayout(const AttentionShape& shape, int64_t workers, uint8_t* workspace)
      : column_floats(shape.padded_rows * shape.width),
        row_floats(shape.padded_rows * shape.padded_width),
        panel_keys(std::min(kPanelKeys, shape.padded_rows)),
        panel_floats(shape.rows * panel_keys),
        query_gradient_floats(shape.rows * shape.padded_width),
        block_floats(kBlockRows * shape.padded_width),
        group(shape.GroupHeads((2 * column_floats + 3 * row_floats + 2 * panel_floats +
                                query_gradient_floats + shape.rows) *
                               int64_t{sizeof(float)})) {
    WorkspaceLayout layout(workspace);
    key_columns = layout.Floats(group * column_floats);
    value_columns = layout.Floats(group * column_floats);
    key_rows = layout.Floats(group * row_floats);
    query_rows = layout.Floats(group * row_floats);
    grad_rows = layout.Floats(group * row_floats);
    p = layout.Floats(group * panel_floats);
    ds = layout.Floats(group * panel_floats);
    query_gradients = layout.Floats(group * query_gradient_floats);
    deltas = layout.Floats(group * shape.rows);
    blocks = layout.Floats(workers * 2 * block_floats);
    bytes = layout.bytes();
  }

  const int64_t column_floats, row_floats, panel_keys, panel_floats, query_gradient_floats;
  const int64_t block_floats;
  const int64_t group;
  // Of each head of the group: packed operands, one panel of p and ds (queries, panel_keys), dq
  // before its rounding, and delta.
  float *key_columns, *value_columns, *key_rows, *query_rows, *grad_rows;
  float *p, *ds, *query_gradients, *deltas;
  float* blocks;  // two blocks of rows of each worker
  size_t bytes;
};

// The backward of one group of heads, as steps between which the threads meet.
class GroupBackward {
 public:
  GroupBackward(const ExecutionContext& context, const BackwardCall& call,
                const AttentionShape& shape, const BackwardLayout& layout, int64_t first_head)
      : threads_(*context.threads),
        call_(call),
        shape_(shape),
        layout_(layout),
        first_head_(first_head),
        heads_(std::min(layout.group, shape.AllHeads() - first_head)),
        maxima_(static_cast<const float*>(call.saved)),
        sums_(maxima_ + shape.AllHeads() * shape.rows) {}

  void Run() {
    ForEachBlock(shape_.rows, [this](int64_t head, int64_t begin, int64_t end, int worker) {
      Prepare(head, begin, end, worker);
    });
    for (int64_t panel = 0; panel < shape_.rows; panel += kPanelKeys) {
      ForEachBlock(shape_.rows, [&](int64_t head, int64_t begin, int64_t end, int worker) {
        ScoreGradients(head, begin, end, panel, worker);
      });
      ForEachBlock(PanelCount(panel), [&](int64_t head, int64_t begin, int64_t end, int worker) {
        KeyAndValueGradients(head, begin, end, panel, worker);
      });
    }
  }

 private:
  int64_t PanelCount(int64_t panel) const { return std::min(kPanelKeys, shape_.rows - panel); }

  // Calls body(head of the group, begin, end, worker) for each block of `rows` rows of each head.
  template <typename Body>
  void ForEachBlock(int64_t rows, const Body& body) {
    const int64_t blocks = (rows + kBlockRows - 1) / kBlockRows;
    threads_.ParallelForWithSlot(0, heads_ * blocks, 1, [&](int64_t unit, int64_t, int worker) {
      const int64_t begin = unit % blocks * kBlockRows;
      body(unit / blocks, begin, std::min(begin + kBlockRows, rows), worker);
    });
  }

  HeadRows Rows(const Tensor& tensor, int64_t head) const {
    return HeadRows(tensor, shape_, first_head_ + head);
  }
  float* Block(int worker, int number) const {
    return layout_.blocks + (2 * worker + number) * layout_.block_floats;
  }

  // Packs the operands of rows [begin, end) and computes their delta.
  void Prepare(int64_t head, int64_t begin, int64_t end, int worker) {
    const HeadRows q = Rows(call_.inputs[0], head);
    const HeadRows k = Rows(call_.inputs[1], head);
    const HeadRows v = Rows(call_.inputs[2], head);
    const HeadRows g = Rows(call_.grad_output, head);
    PackAsColumns(k, shape_, begin, end, layout_.key_columns + head * layout_.column_floats);
    PackAsColumns(v, shape_, begin, end, layout_.value_columns + head * layout_.column_floats);
    PackAsRows(k, shape_, begin, end, layout_.key_rows + head * layout_.row_floats);
    PackAsRows(q, shape_, begin, end, layout_.query_rows + head * layout_.row_floats);
    PackAsRows(g, shape_, begin, end, layout_.grad_rows + head * layout_.row_floats);
    float* grad = Block(worker, 0);
    float* output = Block(worker, 1);
    WidenHeadRows(g, shape_, begin, end, grad);
    WidenHeadRows(Rows(call_.output, head), shape_, begin, end, output);
    for (int64_t row = begin; row < end; ++row) {
      layout_.deltas[head * shape_.rows + row] = RowDot(
          grad + (row - begin) * shape_.width, output + (row - begin) * shape_.width, shape_.width);
    }
  }

  // p and ds of queries [begin, end) and the panel's keys, and the keys' part of dq.
  void ScoreGradients(int64_t head, int64_t begin, int64_t end, int64_t panel, int worker) {
    const int64_t rows = end - begin;
    const int64_t keys = PanelCount(panel);
    const int64_t padded_keys = RoundUpToStrip(keys);
    float* query = Block(worker, 0);
    float* grad = Block(worker, 1);
    WidenHeadRows(Rows(call_.inputs[0], head), shape_, begin, end, query);
    WidenHeadRows(Rows(call_.grad_output, head), shape_, begin, end, grad);
    float* p = layout_.p + head * layout_.panel_floats + begin * layout_.panel_keys;
    float* ds = layout_.ds + head * layout_.panel_floats + begin * layout_.panel_keys;
    const int64_t columns = head * layout_.column_floats + panel * shape_.width;
    const int64_t strip_stride = shape_.width * kStripWidth;
    TileProduct(rows, padded_keys, shape_.width, {query, shape_.width, 1},
                {layout_.key_columns + columns, strip_stride}, p, layout_.panel_keys,
                TileWrite::kOverwrite);
    TileProduct(rows, padded_keys, shape_.width, {grad, shape_.width, 1},
                {layout_.value_columns + columns, strip_stride}, ds, layout_.panel_keys,
                TileWrite::kOverwrite);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t saved = (first_head_ + head) * shape_.rows + begin + i;
      SoftmaxGradient(maxima_[saved], 1.0f / sums_[saved],
                      layout_.deltas[head * shape_.rows + begin + i], keys,
                      p + i * layout_.panel_keys, ds + i * layout_.panel_keys);
    }
    if (const Tensor& grad_q = call_.grad_inputs[0]; !grad_q.IsNull()) {
      float* sums = layout_.query_gradients + head * layout_.query_gradient_floats +
                    begin * shape_.padded_width;
      TileProduct(rows, shape_.padded_width, keys, {ds, layout_.panel_keys, 1},
                  {layout_.key_rows + head * layout_.row_floats + panel * kStripWidth,
                   shape_.padded_rows * kStripWidth},
                  sums, shape_.padded_width, panel == 0 ? TileWrite::kOverwrite : TileWrite::kAdd);
      if (panel + keys == shape_.rows) Store(sums, rows, Rows(grad_q, head), begin);
    }
  }

  // One query's row of a panel: s becomes p and dp becomes ds, both in place.
  void SoftmaxGradient(float maximum, float inverse_sum, float delta, int64_t keys, float* p,
                       float* ds) const {
    const float scale = shape_.scale;
    for (int64_t key = 0; key < keys; ++key) {
      p[key] = ExpF32(p[key] * scale - maximum) * inverse_sum;
      ds[key] = p[key] * (ds[key] - delta) * scale;
    }
  }

  // dv and dk of the panel's keys [begin, end), whole: all queries are there.
  void KeyAndValueGradients(int64_t head, int64_t begin, int64_t end, int64_t panel, int worker) {
    const auto product = [&](const float* weights, const float* rows, const Tensor& grad) {
      if (grad.IsNull()) return;
      float* sums = Block(worker, 0);
      TileProduct(end - begin, shape_.padded_width, shape_.rows,
                  {weights + head * layout_.panel_floats + begin, 1, layout_.panel_keys},
                  {rows + head * layout_.row_floats, shape_.padded_rows * kStripWidth}, sums,
                  shape_.padded_width, TileWrite::kOverwrite);
      Store(sums, end - begin, Rows(grad, head), panel + begin);
    };
    product(layout_.p, layout_.grad_rows, call_.grad_inputs[2]);
    product(layout_.ds, layout_.query_rows, call_.grad_inputs[1]);
  }

  // Rounds `rows` rows of (rows, D padded) into the head's rows from `first_row` on.
  void Store(const float* from, int64_t rows, const HeadRows& to, int64_t first_row) const {
    for (int64_t i = 0; i < rows; ++i) {
      RoundToBf16(absl::MakeConstSpan(from + i * shape_.padded_width, shape_.width),
                  to.Row(first_row + i));
    }
  }

  ThreadPool& threads_;
  const BackwardCall& call_;
  const AttentionShape& shape_;
  const BackwardLayout& layout_;
  const int64_t first_head_;  // of all batch items' heads
  const int64_t heads_;
  const float* const maxima_;
  const float* const sums_;
};

}  // namespace

size_t AttentionBackwardBytes(const BackwardCall& call, const ExecutionContext& context) {
  const AttentionShape shape(call.inputs[0], call.attributes);
  return BackwardLayout(shape, context.threads->num_threads(), nullptr).bytes;
}

void AttentionBackward(const ExecutionContext& context, const BackwardCall& call) {
  const AttentionShape shape(call.inputs[0], call.attributes);
  const BackwardLayout layout(shape, context.threads->num_threads(), context.workspace.data());
  for (int64_t head = 0; head < shape.AllHeads(); head += layout.group) {
    GroupBackward(context, call, shape, layout, head).Run();
  }
}

}  // namespace plumbline::candidate
