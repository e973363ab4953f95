#include "kernels/cpu/call_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline {
namespace {

std::string Dimension(int64_t value) {
  return value == CallCheck::kAny ? "any" : absl::StrCat(value);
}

bool Fits(int64_t value, int64_t wanted) {
  return value >= 0 && (wanted == CallCheck::kAny || value == wanted);
}

}  // namespace

CallCheck::CallCheck(absl::string_view implementation, OpKind op, const ForwardCall& call,
                     size_t inputs, size_t parameters, size_t optional_parameters)
    : implementation_(implementation), op_(op) {
  That(call.inputs.size() == inputs,
       absl::StrCat("has ", call.inputs.size(), " inputs; it takes ", inputs));
  That(call.parameters.size() >= parameters &&
           call.parameters.size() <= parameters + optional_parameters,
       absl::StrCat("has ", call.parameters.size(), " parameters; it takes ", parameters,
                    optional_parameters > 0 ? absl::StrCat(" to ", parameters + optional_parameters)
                                            : std::string()));
}

CallCheck& CallCheck::Type(absl::string_view name, const Tensor& tensor,
                           std::initializer_list<DType> accepted) {
  if (std::find(accepted.begin(), accepted.end(), tensor.dtype) == accepted.end()) {
    Fail(absl::StrCat(name, " is ", DTypeName(tensor.dtype), "; accepted: ",
                      absl::StrJoin(accepted, ", ", [](std::string* out, DType type) {
                        absl::StrAppend(out, DTypeName(type));
                      })));
  }
  return *this;
}

CallCheck& CallCheck::Shape(absl::string_view name, const Tensor& tensor, int64_t batch,
                            int64_t rows, int64_t width) {
  if (!Fits(tensor.batch, batch) || !Fits(tensor.rows, rows) || !Fits(tensor.width, width)) {
    Fail(absl::StrCat(name, " is (", tensor.batch, ", ", tensor.rows, ", ", tensor.width,
                      "); it must be (", Dimension(batch), ", ", Dimension(rows), ", ",
                      Dimension(width), ")"));
  }
  return *this;
}

CallCheck& CallCheck::That(bool condition, absl::string_view requirement) {
  if (!condition) Fail(requirement);
  return *this;
}

void CallCheck::Fail(absl::string_view message) {
  if (status_.ok()) {
    status_ =
        absl::InvalidArgumentError(absl::StrCat(implementation_, " ", OpName(op_), ": ", message));
  }
}

}  // namespace plumbline
