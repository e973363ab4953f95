// Guards around a plug-in's call. The kernel never sees the graph's own memory: it gets copies that
// lie in the workspace, each between canaries, outputs poisoned, and what it wrote is copied out
// only after everything was found right. So a kernel that writes where it should not is named and
// harms nobody.
#ifndef PLUMBLINE_KERNELS_PLUGIN_GUARDS_H_
#define PLUMBLINE_KERNELS_PLUGIN_GUARDS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/device.h"
#include "kernels/plugin/call.h"
#include "kernels/plugin/guard_memory.h"

namespace plumbline::plugin {

class Guards {
 public:
  // Places copies in `context.workspace`, or without one only counts what they take.
  Guards(const Library& library, const GuardMemory& memory, const ExecutionContext& context);

  // Puts copies in the place of the nodes' tensors and saved state, filled with what they are to
  // hold, and hands out `workspace_bytes` of scratch in `*call`, the context to call with.
  absl::Status Enter(absl::Span<NodeView> nodes, size_t workspace_bytes, ExecutionContext* call);

  // After the call: FAILED_PRECONDITION with kViolationReason names the tensor, and the coordinate
  // (batch, row, column) of the first element that is wrong, or how far outside was written.
  absl::Status Check();
  // Copies what the kernel wrote to where it belongs.
  absl::Status CopyOut();

  // A second copy of a node's output, poisoned, in the place of the first, for a call that must
  // give the same bytes; and whether it did. `when` says when the bytes differ.
  absl::Status EnterAgain(NodeView* node);
  absl::Status CheckAgain(absl::string_view when);

  // What Enter (and EnterAgain, once) take of a workspace.
  size_t bytes() const { return used_; }

 private:
  enum class Use { kRead, kWritten, kScratch };
  struct Guarded {
    std::string name;
    Use use;
    Tensor original;
    Tensor copy;
    uint8_t* begin;  // of the canary before it
    int64_t canary_bytes;
    int64_t extent_bytes;
    int64_t after_bytes;
  };
  struct Finding {
    Search search;
    size_t guarded;
    enum { kBefore, kAfter, kGap, kChanged, kUnwritten } what;
    int64_t item;
  };

  bool counts() const { return memory_begin_ == nullptr; }
  uint8_t* Take(size_t bytes, size_t offset_in_line);
  // The copy of `tensor`, which it replaces.
  absl::Status Guard(std::string name, Use use, Tensor* tensor);
  absl::Status GuardBytes(std::string name, Use use, size_t bytes, void** data);
  absl::Status GuardGradients(const std::string& node, NodeView* view);
  void AddSearches(size_t index, std::vector<Finding>* findings) const;
  absl::Status Violation(const Finding& finding, int64_t found) const;
  absl::StatusOr<std::vector<int64_t>> Find(absl::Span<const Search> searches) const;

  const Library& library_;
  const GuardMemory& memory_;
  const ExecutionContext& context_;
  uint8_t* const memory_begin_;
  size_t used_ = 0;
  uint8_t* scratch_ = nullptr;
  std::vector<Guarded> guarded_;
};

}  // namespace plumbline::plugin

#endif  // PLUMBLINE_KERNELS_PLUGIN_GUARDS_H_
