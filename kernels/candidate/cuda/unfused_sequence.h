#ifndef PLUMBLINE_KERNELS_CANDIDATE_CUDA_UNFUSED_SEQUENCE_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CUDA_UNFUSED_SEQUENCE_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "kernels/ops.h"

namespace plumbline::candidate_cuda {

// The nodes of a fused call by their own operations, one after another. An output that a call
// leaves null is written where its reader's is, which has its shape, and the reader works in place:
// every thread of such an operation reads the values of a row that it writes before it writes them.
class UnfusedSequence {
 public:
  // `reads[i]` is the node whose output is node i's first input, or -1. `name` begins the message
  // where a call has another number of nodes; it must outlive this.
  UnfusedSequence(absl::string_view name, std::vector<std::shared_ptr<const Operation>> operations,
                  std::vector<int> reads);

  absl::Status Check(absl::Span<const ForwardCall> calls) const;
  size_t WorkspaceBytes(absl::Span<const ForwardCall> calls, const ExecutionContext& context) const;
  absl::Status Forward(const ExecutionContext& context, absl::Span<const ForwardCall> calls) const;

 private:
  const absl::string_view name_;
  const std::vector<std::shared_ptr<const Operation>> operations_;
  const std::vector<int> reads_;
};

}  // namespace plumbline::candidate_cuda

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CUDA_UNFUSED_SEQUENCE_H_
