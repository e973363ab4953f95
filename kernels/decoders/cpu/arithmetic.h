// What the decoders' operations are written over, so that each exists once for the golden, the
// provider and the candidate. An implementation gives an Arithmetic:
//
//   struct Arithmetic {
//     using Real = double;                          // or float: what everything between the loads
//                                                   // and the one rounding of a value is
//     static constexpr char kName[] = "golden";     // begins every error
//     static constexpr Precision kPrecision = ...;  // of the operations, whose values are float32
//     static size_t ProductBytes();                 // workspace of one product, a multiple of 64
//     // product(row, column, count, values) takes each element of a(m, k) b(n, k)^T once, summed
//     in
//     // the implementation's own order, on the calling thread. Both are float32 or Real, the rows
//     of
//     // `a` and either the rows or the columns of `b` without gaps.
//     static void Multiply(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
//                          GemmEpilogue<Real> product, absl::Span<uint8_t> workspace,
//                          ThreadPool& threads);
//   };
#ifndef PLUMBLINE_KERNELS_DECODERS_CPU_ARITHMETIC_H_
#define PLUMBLINE_KERNELS_DECODERS_CPU_ARITHMETIC_H_

#include <cstdint>

#include "kernels/cpu/gemm.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/thread_pool.h"
#include "kernels/decoders/checks.h"
#include "kernels/numerics/elementary.h"
#include "kernels/ops.h"

namespace plumbline::decoders {

// Rows that one thread takes at a time where a row is all that a result needs.
inline constexpr int64_t kRowGrain = 16;

// The operand type of an array of Real.
template <typename Real>
constexpr DType RealType() {
  return sizeof(Real) == sizeof(double) ? DType::kF64 : DType::kF32;
}

// exp as loops over many values have it: see kernels/numerics/elementary.h.
inline double ExpOf(double x) { return Exp(x); }
inline float ExpOf(float x) { return ExpF32(x); }

// Calls body(item, row) once for each row of each batch item, in any order.
template <typename Body>
void ForEachRow(const ExecutionContext& context, const Tensor& tensor, const Body& body) {
  context.threads->ParallelFor(0, tensor.batch * tensor.rows, kRowGrain,
                               [&](int64_t first, int64_t last) {
                                 for (int64_t i = first; i < last; ++i)
                                   body(i / tensor.rows, i % tensor.rows);
                               });
}

// What all operations of one implementation share.
template <typename Arithmetic, OpKind kOp>
class DecoderOperation : public Operation {
 public:
  Precision precision() const final { return Arithmetic::kPrecision; }
  absl::Status Check(const ForwardCall& call) const final {
    return CheckCall(Arithmetic::kName, kOp, call);
  }
};

}  // namespace plumbline::decoders

#endif  // PLUMBLINE_KERNELS_DECODERS_CPU_ARITHMETIC_H_
