// Every operation of the decoders over one Arithmetic (arithmetic.h), but kDecoderLinear, which is
// the implementation's own linear.
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_OPERATIONS_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_OPERATIONS_H_

#include <map>
#include <memory>

#include "kernels/decoders/cpu/attention.h"
#include "kernels/decoders/cpu/convolution.h"
#include "kernels/decoders/cpu/elementwise.h"
#include "kernels/decoders/cpu/norms.h"
#include "kernels/decoders/cpu/rope.h"
#include "kernels/decoders/cpu/snake_beta.h"
#include "kernels/ops.h"

namespace plumbline::decoders {

template <typename Arithmetic>
std::map<OpKind, std::shared_ptr<const Operation>> MakeOperations() {
  return {
      {OpKind::kDecoderRmsNorm, std::make_shared<RmsNorm<Arithmetic>>()},
      {OpKind::kDecoderHeadNorm, std::make_shared<HeadNorm<Arithmetic>>()},
      {OpKind::kDecoderLayerNorm, std::make_shared<LayerNorm<Arithmetic>>()},
      {OpKind::kDecoderRope, std::make_shared<Rope<Arithmetic>>()},
      {OpKind::kDecoderAttention, std::make_shared<Attention<Arithmetic>>()},
      {OpKind::kDecoderSwiGlu, std::make_shared<SwiGlu<Arithmetic>>()},
      {OpKind::kDecoderResidual, std::make_shared<Residual<Arithmetic>>()},
      {OpKind::kAppendTokens, std::make_shared<AppendTokens<Arithmetic>>()},
      {OpKind::kConv1d, std::make_shared<Conv1d<Arithmetic>>()},
      {OpKind::kConvTranspose1d, std::make_shared<ConvTranspose1d<Arithmetic>>()},
      {OpKind::kSnakeBeta, std::make_shared<SnakeBeta<Arithmetic>>()},
      {OpKind::kMean, std::make_shared<Mean<Arithmetic>>()},
  };
}

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_OPERATIONS_H_
