#ifndef PLUMBLINE_WORKER_DRIFT_ROW_SELECTION_H_
#define PLUMBLINE_WORKER_DRIFT_ROW_SELECTION_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/tensor.h"
#include "worker/h3/execution.h"
#include "worker/h3/graph.h"

namespace plumbline::drift {

// Rows first, first + step, ... of a sequence, `count` of them; a negative step runs backwards. It
// copies nothing: a selected tensor is a view with other strides.
struct RowSelection {
  int64_t first = 0;
  int64_t step = 1;
  int64_t count = 0;

  Tensor Of(const Tensor& tensor) const;
  // The row of the whole that is row `index` of the selection.
  int64_t Row(int64_t index) const { return first + index * step; }

  // Every row, last to first: a permutation that is its own inverse.
  static RowSelection Reversed(int64_t rows) { return {rows - 1, -1, rows}; }
};

// Another source's tensors with only the selected packed rows. Tensors whose rows are not those of
// the packed sequence are handed through. Both must outlive it.
class SelectedRows : public h3::TensorSource {
 public:
  SelectedRows(const h3::Graph& graph, const h3::TensorSource& whole, RowSelection selection)
      : graph_(graph), whole_(whole), selection_(selection) {}

  // `name` is a value of the graph or "VALUE.grad".
  absl::StatusOr<Tensor> Find(absl::string_view name) const override;

 private:
  const h3::Graph& graph_;
  const h3::TensorSource& whole_;
  const RowSelection selection_;
};

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_ROW_SELECTION_H_
