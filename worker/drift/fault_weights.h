#ifndef PLUMBLINE_WORKER_DRIFT_FAULT_WEIGHTS_H_
#define PLUMBLINE_WORKER_DRIFT_FAULT_WEIGHTS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "worker/h3/weight_source.h"

namespace plumbline::drift {

// `base` with the query and key weights of one block permuted by whole heads: each head gets the
// next one's rows. INVALID_ARGUMENT where there is one head only.
absl::StatusOr<std::unique_ptr<h3::WeightSource>> MakePermutedHeads(const h3::WeightSource& base,
                                                                    int64_t block);

// `base` with the query, key and value weights of one block as a loader makes them that cuts the
// native layout's fused weight, [head 0: q, k, v; head 1: ...], into thirds. INVALID_ARGUMENT where
// there is one head only.
absl::StatusOr<std::unique_ptr<h3::WeightSource>> MakeInterleavedQkv(const h3::WeightSource& base,
                                                                     int64_t block);

// `base` must outlive either.

}  // namespace plumbline::drift

#endif  // PLUMBLINE_WORKER_DRIFT_FAULT_WEIGHTS_H_
