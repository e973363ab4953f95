#ifndef PLUMBLINE_WORKER_H3_STORED_TENSORS_H_
#define PLUMBLINE_WORKER_H3_STORED_TENSORS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/dtype.h"
#include "worker/h3/checkpoint_files.h"
#include "worker/h3/config.h"
#include "worker/h3/parameters.h"

// What a checkpoint's files hold, tensor by tensor, and where its rows belong. The native layout
// differs from the released one in names, in one fused attn.qkv_proj.weight whose rows go [head 0:
// q, k, v; head 1: q, k, v; ...], in mlp.fc1.weight, whose halves are (gate; value) where
// ff.net.0.proj.weight has (value; gate), and in a rope.inv_freq that no parameter is made of.
// Nothing is transposed, and types are the same.

namespace plumbline::h3 {

// Consecutive rows of a stored tensor that are consecutive rows of one parameter.
struct RowRun {
  size_t parameter;  // Index into TransformerParameters.
  int64_t to_row;    // Where the run begins in the parameter.
  int64_t rows;
};

struct StoredTensor {
  std::string name;
  DType dtype = DType::kBF16;
  std::vector<int64_t> shape;
  // All of its rows, in the order in which they are stored; a vector is one row. Empty: no
  // parameter is made of it, and the tensor may be missing.
  std::vector<RowRun> runs;
};

// `parameters` are TransformerParameters(config). Every parameter's rows are in exactly one tensor.
std::vector<StoredTensor> StoredTensors(CheckpointLayout layout, const TransformerConfig& config,
                                        const std::vector<ParameterSpec>& parameters);

// Which layout these tensor names are of, by the names that only one of the two has; the released
// one where neither speaks.
CheckpointLayout LayoutOfNames(const std::vector<std::string>& names);

// A parameter's name in the native layout. Those of fused tensors share one.
std::string NativeName(absl::string_view parameter);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_STORED_TENSORS_H_
