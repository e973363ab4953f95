#ifndef PLUMBLINE_KERNELS_CANDIDATE_CPU_DECODERS_H_
#define PLUMBLINE_KERNELS_CANDIDATE_CPU_DECODERS_H_

#include <map>
#include <memory>

#include "kernels/ops.h"

namespace plumbline::candidate {

// The decoders' operations, in float32.
std::map<OpKind, std::shared_ptr<const Operation>> MakeDecoderOperations();

}  // namespace plumbline::candidate

#endif  // PLUMBLINE_KERNELS_CANDIDATE_CPU_DECODERS_H_
