// The decoders' operations of the provider on a CPU, where PyTorch has no autocast: float32, and
// the products are OpenBLAS's.
#include "kernels/decoders/cpu/operations.h"
#include "kernels/provider/cpu/blas.h"
#include "kernels/provider/cpu/operations.h"

namespace plumbline::provider {
namespace {

struct Arithmetic {
  using Real = float;
  static constexpr char kName[] = "provider";
  static constexpr Precision kPrecision = Precision::kMixed;
  // Results that one call of OpenBLAS makes, and keeps until they are taken.
  static constexpr int64_t kTileRows = 64;
  static constexpr int64_t kTileColumns = 128;

  static size_t ProductBytes() { return Scratch::Bytes<float>(kTileRows * kTileColumns); }

  // In the order of OpenBLAS's sgemm for a tile of at most kTileRows x kTileColumns results and the
  // whole of k.
  static void Multiply(const GemmShape& shape, const GemmOperand& a, const GemmOperand& b,
                       GemmEpilogue<float> product, absl::Span<uint8_t> workspace, ThreadPool&) {
    float* const tile = Scratch(workspace).Take<float>(kTileRows * kTileColumns);
    const auto* const left = static_cast<const float*>(a.data);
    const auto* const right = static_cast<const float*>(b.data);
    const bool rows_are_dense = b.column_stride == 1;
    for (int64_t row = 0; row < shape.m; row += kTileRows) {
      const int64_t rows = std::min(kTileRows, shape.m - row);
      for (int64_t column = 0; column < shape.n; column += kTileColumns) {
        const int64_t columns = std::min(kTileColumns, shape.n - column);
        Sgemm(rows, columns, shape.k, {left + row * a.row_stride, a.row_stride, false},
              {right + column * b.row_stride, rows_are_dense ? b.row_stride : b.column_stride,
               rows_are_dense},
              /*accumulate=*/false, tile, kTileColumns);
        for (int64_t i = 0; i < rows; ++i)
          product(row + i, column, columns, tile + i * kTileColumns);
      }
    }
  }
};

}  // namespace

std::map<OpKind, std::shared_ptr<const Operation>> MakeDecoderOperations() {
  auto operations = decoders::MakeOperations<Arithmetic>();
  operations[OpKind::kDecoderLinear] = MakeLinear(GemmPath::kWholeSum);
  return operations;
}

}  // namespace plumbline::provider
