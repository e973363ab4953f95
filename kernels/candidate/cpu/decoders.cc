// The decoders' operations of the candidate: float32, and no sum depends on the batch, on other
// rows or on the threads.
#include "kernels/candidate/cpu/decoders.h"

#include "kernels/candidate/cpu/linear.h"
#include "kernels/decoders/cpu/operations.h"

namespace plumbline::candidate {
namespace {

struct Arithmetic {
  using Real = float;
  static constexpr char kName[] = "candidate";
  static constexpr Precision kPrecision = Precision::kMixed;
  static size_t ProductBytes() { return GemmWorkspaceBytes<float>(1); }
  // In the order of kernels/cpu/gemm.h.
  static void Multiply(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
                       GemmEpilogue<float> product, absl::Span<uint8_t> workspace,
                       ThreadPool& threads) {
    Gemm<float>(shape, a, b.Transposed(), product, workspace, threads);
  }
};

}  // namespace

std::map<OpKind, std::shared_ptr<const Operation>> MakeDecoderOperations() {
  auto operations = decoders::MakeOperations<Arithmetic>();
  operations[OpKind::kDecoderLinear] = MakeLinear();
  return operations;
}

}  // namespace plumbline::candidate
