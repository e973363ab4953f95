#include "kernels/candidate/cpu/attention_tiles.h"

#include <algorithm>
#include <cmath>

namespace plumbline::candidate {

AttentionShape::AttentionShape(const Tensor& q, const Attributes& attributes)
    : batch(q.batch),
      heads(q.width / attributes.head_width),
      rows(q.rows),
      width(attributes.head_width),
      padded_rows(RoundUpToStrip(rows)),
      padded_width(RoundUpToStrip(width)),
      scale(static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)))) {}

int64_t AttentionShape::GroupHeads(int64_t head_bytes) const {
  const int64_t most = std::max<int64_t>(AllHeads(), 1);
  return std::clamp<int64_t>(kGroupBytes / std::max<int64_t>(head_bytes, 1), 1, most);
}

HeadRows::HeadRows(const Tensor& tensor, const AttentionShape& shape, int64_t head_of_all)
    : data(tensor.Row<bfloat16>(0, head_of_all / shape.heads) +
           head_of_all % shape.heads * shape.width),
      row_stride(tensor.row_stride) {}

void WidenHeadRows(const HeadRows& head, const AttentionShape& shape, int64_t begin, int64_t end,
                   float* to) {
  for (int64_t row = begin; row < end; ++row) {
    const bfloat16* from = head.Row(row);
    for (int64_t d = 0; d < shape.width; ++d) to[d] = WidenBf16(from[d]);
    to += shape.width;
  }
}

void PackAsColumns(const HeadRows& head, const AttentionShape& shape, int64_t begin, int64_t end,
                   float* strips) {
  for (int64_t first = begin; first < end; first += kStripWidth) {
    float* strip = strips + first * shape.width;
    const int64_t count = std::min(kStripWidth, end - first);
    if (count < kStripWidth) std::fill_n(strip, shape.width * kStripWidth, 0.0f);
    for (int64_t i = 0; i < count; ++i) {
      const bfloat16* from = head.Row(first + i);
      for (int64_t d = 0; d < shape.width; ++d) strip[d * kStripWidth + i] = WidenBf16(from[d]);
    }
  }
}

void PackAsRows(const HeadRows& head, const AttentionShape& shape, int64_t begin, int64_t end,
                float* strips) {
  const int64_t strip_stride = shape.padded_rows * kStripWidth;
  for (int64_t row = begin; row < end; ++row) {
    const bfloat16* from = head.Row(row);
    float* to = strips + row * kStripWidth;
    for (int64_t first = 0; first < shape.width; first += kStripWidth, to += strip_stride) {
      const int64_t count = std::min(kStripWidth, shape.width - first);
      for (int64_t i = 0; i < count; ++i) to[i] = WidenBf16(from[first + i]);
      for (int64_t i = count; i < kStripWidth; ++i) to[i] = 0.0f;
    }
  }
}

}  // namespace plumbline::candidate
