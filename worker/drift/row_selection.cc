#include "worker/drift/row_selection.h"

#include "absl/strings/strip.h"
#include "common/status.h"

namespace plumbline::drift {

Tensor RowSelection::Of(const Tensor& tensor) const {
  Tensor view = tensor;
  if (view.data != nullptr) {
    view.data = static_cast<char*>(view.data) +
                first * tensor.row_stride * static_cast<int64_t>(DTypeSize(tensor.dtype));
  }
  view.rows = count;
  view.row_stride = tensor.row_stride * step;
  return view;
}

absl::StatusOr<Tensor> SelectedRows::Find(absl::string_view name) const {
  PLUMBLINE_ASSIGN_OR_RETURN(const Tensor tensor, whole_.Find(name));
  PLUMBLINE_ASSIGN_OR_RETURN(const h3::ValueId id,
                             graph_.FindValue(absl::StripSuffix(name, ".grad")));
  return graph_.values()[id].rows == h3::RowSpace::kPacked ? selection_.Of(tensor) : tensor;
}

}  // namespace plumbline::drift
