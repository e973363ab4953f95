// What every operation's Check() needs: the tensors of a call against what is supported.
#ifndef PLUMBLINE_KERNELS_PROVIDER_CPU_CALL_CHECK_H_
#define PLUMBLINE_KERNELS_PROVIDER_CPU_CALL_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops.h"

namespace plumbline::provider {

// Keeps the first thing that is wrong with a call; later tests are then skipped. When the
// constructor has found a wrong number of tensors, none of them may be read.
class CallCheck {
 public:
  CallCheck(OpKind op, const ForwardCall& call, size_t inputs, size_t least_parameters,
            size_t most_parameters);

  // A dimension that may be anything.
  static constexpr int64_t kAny = -1;

  CallCheck& Type(absl::string_view name, const Tensor& tensor,
                  std::initializer_list<DType> accepted);
  CallCheck& Shape(absl::string_view name, const Tensor& tensor, int64_t batch, int64_t rows,
                   int64_t width);
  // `requirement` is what must hold, e.g. "the width must be even".
  CallCheck& That(bool holds, absl::string_view requirement);

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

 private:
  const OpKind op_;
  absl::Status status_;
};

}  // namespace plumbline::provider

#endif  // PLUMBLINE_KERNELS_PROVIDER_CPU_CALL_CHECK_H_
