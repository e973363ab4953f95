// The decoders' operations of the golden: float64 between the loads and the one rounding of a
// value.
#include "kernels/decoders/cpu/operations.h"
#include "kernels/golden/cpu/operations.h"

namespace plumbline::golden {
namespace {

struct Arithmetic {
  using Real = double;
  static constexpr char kName[] = "golden";
  static constexpr Precision kPrecision = Precision::kFloat32;
  static size_t ProductBytes() { return GemmWorkspaceBytes<double>(1); }
  // In the order of kernels/cpu/gemm.h.
  static void Multiply(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
                       GemmEpilogue<double> product, absl::Span<uint8_t> workspace,
                       ThreadPool& threads) {
    Gemm<double>(shape, a, b.Transposed(), product, workspace, threads);
  }
};

}  // namespace

std::map<OpKind, std::shared_ptr<const Operation>> MakeDecoderOperations() {
  auto operations = decoders::MakeOperations<Arithmetic>();
  operations[OpKind::kDecoderLinear] = MakeLinear();
  return operations;
}

}  // namespace plumbline::golden
