#ifndef PLUMBLINE_WORKER_DRIFT_ROW_NAMES_H_
#define PLUMBLINE_WORKER_DRIFT_ROW_NAMES_H_

#include "worker/drift/compare.h"
#include "worker/h3/packed_layout.h"

namespace plumbline::drift {

// Names the rows of tensors whose rows are those of a packed sequence. `layout` must outlive it.
RowNamer PackedRowNamer(const h3::PackedLayout& layout);

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_ROW_NAMES_H_
