// What every operation's Check() needs: shapes and types of a call against what is supported.
#ifndef PLUMBLINE_KERNELS_CPU_CALL_CHECK_H_
#define PLUMBLINE_KERNELS_CPU_CALL_CHECK_H_

#include <cstdint>
#include <initializer_list>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "kernels/ops.h"

namespace plumbline {

// Collects the first thing that is wrong with one call; later tests are then skipped. After the
// constructor has found a wrong number of tensors nothing may be read from the call, so an
// operation begins with
//   CallCheck check("golden", OpKind::kRope, call, 2, 0);
//   if (!check.ok()) return check.status();
class CallCheck {
 public:
  // `implementation` begins every message; it and `call` must outlive the check. Any number of
  // parameters from `parameters` to `parameters + optional_parameters` is right.
  CallCheck(absl::string_view implementation, OpKind op, const ForwardCall& call, size_t inputs,
            size_t parameters, size_t optional_parameters = 0);

  // A dimension that may be anything.
  static constexpr int64_t kAny = -1;

  CallCheck& Type(absl::string_view name, const Tensor& tensor,
                  std::initializer_list<DType> accepted);
  CallCheck& Shape(absl::string_view name, const Tensor& tensor, int64_t batch, int64_t rows,
                   int64_t width);
  // `condition` must hold; `requirement` says it as a sentence's end ("... must be even").
  CallCheck& That(bool condition, absl::string_view requirement);

  bool ok() const { return status_.ok(); }
  const absl::Status& status() const { return status_; }

 private:
  void Fail(absl::string_view message);

  const absl::string_view implementation_;
  const OpKind op_;
  absl::Status status_;
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_CPU_CALL_CHECK_H_
