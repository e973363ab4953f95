// The golden's operations: the true value of the model as nearly as float32 storage can hold it.
//
// All are kFloat32. Activations and gradients are float32, those of parameters too; parameters are
// bfloat16 or float32 and widened. Everything between the loads and the one rounding of a stored
// value is float64, but for the timestep and rotary angles, whose float32 evaluation is part of the
// model. Every sum has a fixed order that does not depend on the number of threads.
#ifndef PLUMBLINE_KERNELS_GOLDEN_CPU_OPERATIONS_H_
#define PLUMBLINE_KERNELS_GOLDEN_CPU_OPERATIONS_H_

#include <map>
#include <memory>

#include "kernels/ops.h"

namespace plumbline::golden {

inline constexpr char kImplementation[] = "golden";

std::shared_ptr<const Operation> MakeTimeProjection();    // time_projection.cc
std::shared_ptr<const Operation> MakeTimeEmbedder();      // time_embedder.cc
std::shared_ptr<const Operation> MakeLinear();            // linear.cc
std::shared_ptr<const Operation> MakeAdalnProjection();   // adaln_projection.cc
std::shared_ptr<const Operation> MakeRmsNorm();           // rms_norm.cc
std::shared_ptr<const Operation> MakeModulatedRmsNorm();  // modulated_rms_norm.cc
std::shared_ptr<const Operation> MakeRope();              // rope.cc
std::shared_ptr<const Operation> MakeAttention();         // attention.cc
std::shared_ptr<const Operation> MakeGatedResidual();     // gated_residual.cc
std::shared_ptr<const Operation> MakeResidual();          // elementwise_sum.cc
std::shared_ptr<const Operation> MakeGradSum();           // elementwise_sum.cc
std::shared_ptr<const Operation> MakeSwiGlu();            // swiglu.cc
std::shared_ptr<const Operation> MakeScatterRows();       // row_moves.cc
std::shared_ptr<const Operation> MakeGatherRows();        // row_moves.cc
std::shared_ptr<const Operation> MakeCast();              // row_moves.cc

// Those of the decoders. decoders.cc
std::map<OpKind, std::shared_ptr<const Operation>> MakeDecoderOperations();

}  // namespace plumbline::golden

#endif  // PLUMBLINE_KERNELS_GOLDEN_CPU_OPERATIONS_H_
