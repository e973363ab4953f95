#ifndef PLUMBLINE_WORKER_H3_SYNTHETIC_WEIGHTS_H_
#define PLUMBLINE_WORKER_H3_SYNTHETIC_WEIGHTS_H_

#include <cstdint>
#include <memory>

#include "worker/h3/config.h"
#include "worker/h3/weight_source.h"

namespace plumbline::h3 {

// Weights that are computed from their names (kernels/numerics/synthetic.h), for a valid `config`.
// The same numbers everywhere, and any size without a file.
std::shared_ptr<const WeightSource> MakeSyntheticWeights(const TransformerConfig& config,
                                                         uint64_t seed);

}  // namespace plumbline::h3

#endif  // PLUMBLINE_WORKER_H3_SYNTHETIC_WEIGHTS_H_
