// What attention's forward and backward share: the shape of the problem, and one head's rows as
// float32 operands of TileProduct.
#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_ATTENTION_TILES_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_ATTENTION_TILES_H_

#include <cstdint>

#include "kernels/candidate/cpu/float_tile.h"
#include "kernels/numerics/bfloat16.h"
#include "kernels/ops.h"

namespace plumbline::candidate {

// Query rows, in the backward also key rows, that one thread takes at a time.
constexpr int64_t kBlockRows = 48;
// Heads are processed in groups whose packed operands stay below this, so that long sequences do
// not multiply their workspace by the number of heads. At least one head is a group.
constexpr int64_t kGroupBytes = int64_t{16} << 20;

struct AttentionShape {
  explicit AttentionShape(const Tensor& q, const Attributes& attributes);

  // The heads of all batch items, item after item.
  int64_t AllHeads() const { return batch * heads; }
  int64_t Blocks() const { return (rows + kBlockRows - 1) / kBlockRows; }
  // How many heads of `head_bytes` packed bytes each make a group.
  int64_t GroupHeads(int64_t head_bytes) const;

  int64_t batch;
  int64_t heads;
  int64_t rows;
  int64_t width;        // D
  int64_t padded_rows;  // multiples of the strip width
  int64_t padded_width;
  float scale;  // 1 / sqrt(D)
};

// The rows of one head of one batch item.
struct HeadRows {
  HeadRows(const Tensor& tensor, const AttentionShape& shape, int64_t head_of_all);

  bfloat16* Row(int64_t row) const { return data + row * row_stride; }

  bfloat16* data;
  int64_t row_stride;
};

// Rows [begin, end) widened, as a dense (end - begin, D) array.
void WidenHeadRows(const HeadRows& head, const AttentionShape& shape, int64_t begin, int64_t end,
                   float* to);

// Packs rows [begin, end), begin a multiple of the strip width and end too or the last row, into
// the strips of all rows:
//   PackAsColumns: of the transpose (D, rows); strip r / 16 is D x 16, 16 D apart.
//   PackAsRows: of (rows, D padded); strip d / 16 is padded_rows x 16, 16 padded_rows apart.
// Padding is zero.
void PackAsColumns(const HeadRows& head, const AttentionShape& shape, int64_t begin, int64_t end,
                   float* strips);
void PackAsRows(const HeadRows& head, const AttentionShape& shape, int64_t begin, int64_t end,
                float* strips);

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_ATTENTION_TILES_H_
