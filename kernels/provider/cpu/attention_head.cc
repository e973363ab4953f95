#include "kernels/provider/cpu/attention_head.h"

#include "kernels/cpu/call_check.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline::provider {

absl::Status CheckAttention(const ForwardCall& call) {
  CallCheck check(kFamily, OpKind::kAttention, call, 3, 0);
  if (!check.ok()) return check.status();
  const Tensor& q = call.inputs[0];
  const int64_t head_width = call.attributes.head_width;
  return check.Type("q", q, {DType::kBF16})
      .Type("k", call.inputs[1], {DType::kBF16})
      .Shape("k", call.inputs[1], q.batch, q.rows, q.width)
      .Type("v", call.inputs[2], {DType::kBF16})
      .Shape("v", call.inputs[2], q.batch, q.rows, q.width)
      .Type("output", call.output, {DType::kBF16})
      .Shape("output", call.output, q.batch, q.rows, q.width)
      .That(head_width > 0 && q.width % head_width == 0,
            "the width of q must be a multiple of head_width")
      .status();
}

}  // namespace plumbline::provider
