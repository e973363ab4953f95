#include "kernels/provider/cpu/call_check.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace plumbline::provider {
namespace {

bool Fits(int64_t value, int64_t wanted) { return wanted == CallCheck::kAny || value == wanted; }

std::string Wanted(int64_t dimension) {
  return dimension == CallCheck::kAny ? "any" : absl::StrCat(dimension);
}

}  // namespace

CallCheck::CallCheck(OpKind op, const ForwardCall& call, size_t inputs, size_t least_parameters,
                     size_t most_parameters)
    : op_(op) {
  That(call.inputs.size() == inputs,
       absl::StrCat("there must be ", inputs, " inputs; there are ", call.inputs.size()));
  That(call.parameters.size() >= least_parameters && call.parameters.size() <= most_parameters,
       absl::StrCat("there must be ", least_parameters, " to ", most_parameters,
                    " parameters; there are ", call.parameters.size()));
}

CallCheck& CallCheck::Type(absl::string_view name, const Tensor& tensor,
                           std::initializer_list<DType> accepted) {
  const auto append_name = [](std::string* out, DType type) {
    absl::StrAppend(out, DTypeName(type));
  };
  return That(std::find(accepted.begin(), accepted.end(), tensor.dtype) != accepted.end(),
              absl::StrCat(name, " must be ", absl::StrJoin(accepted, " or ", append_name),
                           "; it is ", DTypeName(tensor.dtype)));
}

CallCheck& CallCheck::Shape(absl::string_view name, const Tensor& tensor, int64_t batch,
                            int64_t rows, int64_t width) {
  return That(
      Fits(tensor.batch, batch) && Fits(tensor.rows, rows) && Fits(tensor.width, width),
      absl::StrCat(name, " must be (", Wanted(batch), ", ", Wanted(rows), ", ", Wanted(width),
                   "); it is (", tensor.batch, ", ", tensor.rows, ", ", tensor.width, ")"));
}

CallCheck& CallCheck::That(bool holds, absl::string_view requirement) {
  if (!holds && status_.ok()) {
    status_ = absl::InvalidArgumentError(absl::StrCat("provider ", OpName(op_), ": ", requirement));
  }
  return *this;
}

}  // namespace plumbline::provider
