#include <algorithm>
#include <array>

#include "absl/types/span.h"
#include "common/status.h"
#include "kernels/candidate/cuda/bf16_product.h"
#include "kernels/candidate/cuda/sm90_product.cuh"
#include "kernels/candidate/cuda/sm90_product.h"
#include "kernels/cuda/cuda_status.h"
#include "kernels/cuda/sm90.h"
#include "kernels/cuda/tensor_map.h"

namespace plumbline::candidate_cuda {
namespace {

using cuda::Operand;
using cuda::SummedAxis;
using cuda::ptx::Major;
using sm90::Cluster;
using sm90::ProductProblem;
using sm90::ProductTiles;

constexpr char kName[] = "candidate product";

// A shape of tiles that the kernel is compiled for.
struct TileShape {
  int rows;
  Cluster cluster;
};

int64_t DivideUp(int64_t a, int64_t b) { return (a + b - 1) / b; }

// What is multiplied: C(m, n), k in runs.
struct Extents {
  int64_t m;
  int64_t n;
  int64_t runs;
  int64_t run_steps;

  Extents(const Operand& left, const Operand& right)
      : m(left.Extent()),
        n(right.Extent()),
        runs(ProductRuns(left)),
        run_steps(DivideUp(runs > 1 ? kProductRun : left.SummedExtent(), sm90::kProductStep)) {}
};

// Tiles of a cluster along m and along n.
int64_t RowTiles(const TileShape& shape, int64_t m) {
  return DivideUp(m, shape.rows * (shape.cluster == Cluster::kSameColumns ? 2 : 1));
}
int64_t ColumnTiles(const TileShape& shape, int64_t n) {
  return DivideUp(n, 128 * (shape.cluster == Cluster::kSameRows ? 2 : 1));
}

// Clocks that the product is expected to take in tiles of a shape, by what a multiprocessor
// multiplies and what it reads; fitted to times on an H200 (kernels/bench/NOTES.md). Only speed
// depends on it.
double ExpectedClocks(const TileShape& shape, const Extents& extents, int multiprocessors) {
  constexpr double kBytesPerClock = 46;  // from the second-level cache, all multiprocessors busy
  constexpr double kProductsPerClock = 0.85 * 2048;
  constexpr double kClocksPerStep = 40;    // beside what is multiplied
  constexpr double kClocksPerTile = 5000;  // to fill the ring and to write the results
  const bool alone = shape.cluster == Cluster::kNone;
  const int64_t tiles = RowTiles(shape, extents.m) * ColumnTiles(shape, extents.n) * extents.runs;
  const int64_t tiles_at_once = multiprocessors / (alone ? 1 : 2);
  const double waves = static_cast<double>(DivideUp(tiles, tiles_at_once));
  const double busy = static_cast<double>(tiles) / (waves * static_cast<double>(tiles_at_once));
  const double multiplied = shape.rows * 128 * 64 / kProductsPerClock + kClocksPerStep;
  const double read_rows = shape.cluster == Cluster::kSameRows ? shape.rows / 2 : shape.rows;
  const double read_columns = shape.cluster == Cluster::kSameColumns ? 64 : 128;
  const double read = (read_rows + read_columns) * 128 / kBytesPerClock * busy;
  const double steps = static_cast<double>(extents.run_steps);
  return waves * (steps * std::max(multiplied, read) + kClocksPerTile);
}

// C = round(the sum of the runs' sums, in order, + bias). A thread has a value.
template <typename T>
__global__ void __launch_bounds__(256)
    AddProductRunsKernel(int64_t values, int64_t columns, int runs, const float* sums,
                         const cuda::bf16* bias, int64_t output_stride, T* output) {
  const int64_t number = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (number >= values) return;
  float sum = sums[number];
  for (int run = 1; run < runs; ++run) sum += sums[run * values + number];
  const int64_t column = number % columns;
  if (bias != nullptr) sum += cuda::Widen(bias[column]);
  output[number / columns * output_stride + column] = cuda::RoundTo<T>(cuda::RoundThroughBf16(sum));
}

absl::Status AddProductRuns(cudaStream_t stream, const ProductProblem& problem,
                            const cuda::bf16* bias, const Tensor& output) {
  const int64_t values = int64_t{problem.rows} * problem.columns;
  const unsigned blocks = static_cast<unsigned>(DivideUp(values, 256));
  if (output.dtype == DType::kBF16) {
    AddProductRunsKernel<<<blocks, 256, 0, stream>>>(values, problem.columns, problem.runs,
                                                     problem.output, bias, output.row_stride,
                                                     static_cast<cuda::bf16*>(output.data));
  } else {
    AddProductRunsKernel<<<blocks, 256, 0, stream>>>(values, problem.columns, problem.runs,
                                                     problem.output, bias, output.row_stride,
                                                     static_cast<float*>(output.data));
  }
  return LaunchStatus(kName);
}

template <typename Tiles>
absl::Status Launch(cudaStream_t stream, const Operand& left, const Operand& right,
                    const Tensor& bias, const Tensor& output, float* run_sums) {
  const TileShape shape = {Tiles::kRows, Tiles::kShares};
  const Extents extents(left, right);
  CUtensorMap left_map, right_map, output_map = {};
  PLUMBLINE_RETURN_IF_ERROR(cuda::MapMatrix(left.tensor, Tiles::kLeftBoxRows, &left_map));
  PLUMBLINE_RETURN_IF_ERROR(cuda::MapMatrix(right.tensor, Tiles::kRightBoxRows, &right_map));
  const bool has_runs = extents.runs > 1;
  const bool is_mapped = output.dtype == DType::kBF16 && !has_runs;
  if (is_mapped) {
    PLUMBLINE_RETURN_IF_ERROR(cuda::MapMatrix(output, Tiles::kStoredRows, &output_map));
  }
  ProductProblem problem = {};
  problem.rows = static_cast<int>(extents.m);
  problem.columns = static_cast<int>(extents.n);
  problem.steps = static_cast<int>(DivideUp(left.SummedExtent(), Tiles::kStep));
  problem.run_steps = static_cast<int>(extents.run_steps);
  problem.runs = static_cast<int>(extents.runs);
  problem.row_tiles = static_cast<int>(RowTiles(shape, extents.m));
  problem.column_tiles = static_cast<int>(ColumnTiles(shape, extents.n));
  problem.right_is_weight = left.summed == SummedAxis::kWidth;
  problem.group = Tiles::kShares == Cluster::kSameColumns ? 4 : 8;
  const cuda::bf16* const added = static_cast<const cuda::bf16*>(bias.data);
  problem.bias = has_runs ? nullptr : added;
  if (!is_mapped) problem.output = has_runs ? run_sums : static_cast<float*>(output.data);
  problem.output_stride = has_runs ? problem.columns : output.row_stride;

  const auto kernel = sm90::ProductKernel<Tiles>;
  PLUMBLINE_RETURN_IF_ERROR(
      CudaStatus(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      Tiles::kSharedBytes),
                 kName));
  const int works = problem.row_tiles * problem.column_tiles * problem.runs;
  const int clusters = std::min(works, cuda::MultiprocessorCount() / Tiles::kCluster);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(clusters * Tiles::kCluster));
  config.blockDim = dim3(Tiles::kThreads);
  config.dynamicSmemBytes = Tiles::kSharedBytes;
  config.stream = stream;
  cudaLaunchAttribute attributes[2] = {};
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = Tiles::kCluster;
  attributes[0].val.clusterDim.y = 1;
  attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.attrs = attributes;
  config.numAttrs = 2;
  PLUMBLINE_RETURN_IF_ERROR(CudaStatus(
      cudaLaunchKernelEx(&config, kernel, right_map, left_map, output_map, problem), kName));
  return has_runs ? AddProductRuns(stream, problem, added, output) : absl::OkStatus();
}

using LaunchFunction = absl::Status (*)(cudaStream_t, const Operand&, const Operand&, const Tensor&,
                                        const Tensor&, float*);
struct Choice {
  TileShape shape;
  LaunchFunction launch;
};

template <Major kRight, Major kLeft, int kRows, Cluster kCluster>
constexpr Choice MakeChoice() {
  return {{kRows, kCluster}, Launch<ProductTiles<kRows, kCluster, kRight, kLeft>>};
}

// Shapes for rows whose values of k lie beside one another.
template <Major kRight>
constexpr std::array kRowShapes = {
    MakeChoice<kRight, Major::kK, 256, Cluster::kNone>(),
    MakeChoice<kRight, Major::kK, 256, Cluster::kSameRows>(),
    MakeChoice<kRight, Major::kK, 192, Cluster::kSameRows>(),
    MakeChoice<kRight, Major::kK, 160, Cluster::kSameRows>(),
    MakeChoice<kRight, Major::kK, 160, Cluster::kSameColumns>(),
    MakeChoice<kRight, Major::kK, 144, Cluster::kSameColumns>(),
    MakeChoice<kRight, Major::kK, 128, Cluster::kSameRows>(),
    MakeChoice<kRight, Major::kK, 96, Cluster::kSameRows>(),
    MakeChoice<kRight, Major::kK, 96, Cluster::kSameColumns>(),
    MakeChoice<kRight, Major::kK, 64, Cluster::kNone>(),
    MakeChoice<kRight, Major::kK, 32, Cluster::kNone>(),
    MakeChoice<kRight, Major::kK, 16, Cluster::kNone>(),
};
// And for sums over rows.
constexpr std::array kSummedRowShapes = {
    MakeChoice<Major::kMn, Major::kMn, 256, Cluster::kNone>(),
    MakeChoice<Major::kMn, Major::kMn, 256, Cluster::kSameColumns>(),
    MakeChoice<Major::kMn, Major::kMn, 128, Cluster::kSameRows>(),
    MakeChoice<Major::kMn, Major::kMn, 128, Cluster::kNone>(),
};

absl::Span<const Choice> ChoicesFor(const Operand& left, const Operand& right) {
  if (left.summed == SummedAxis::kRows) return kSummedRowShapes;
  return right.summed == SummedAxis::kRows ? kRowShapes<Major::kMn> : kRowShapes<Major::kK>;
}

}  // namespace

bool TakesSm90Product(const Operand& left, const Operand& right, const Tensor& output) {
  return left.SummedExtent() > 0 && cuda::IsMappable(left.tensor) &&
         cuda::IsMappable(right.tensor) &&
         (output.dtype == DType::kF32 || cuda::IsMappable(output)) && cuda::RunsSm90Code();
}

absl::Status Sm90Multiply(cudaStream_t stream, const Operand& left, const Operand& right,
                          const Tensor& bias, const Tensor& output, float* run_sums) {
  const Extents extents(left, right);
  const absl::Span<const Choice> choices = ChoicesFor(left, right);
  const int multiprocessors = cuda::MultiprocessorCount();
  const auto is_faster = [&](const Choice& a, const Choice& b) {
    return ExpectedClocks(a.shape, extents, multiprocessors) <
           ExpectedClocks(b.shape, extents, multiprocessors);
  };
  return std::min_element(choices.begin(), choices.end(), is_faster)
      ->launch(stream, left, right, bias, output, run_sums);
}

int Sm90ShapeCount(const Operand& left, const Operand& right) {
  return static_cast<int>(ChoicesFor(left, right).size());
}

absl::Status Sm90MultiplyInShape(int shape, cudaStream_t stream, const Operand& left,
                                 const Operand& right, const Tensor& bias, const Tensor& output,
                                 float* run_sums) {
  return ChoicesFor(left, right)[static_cast<size_t>(shape)].launch(stream, left, right, bias,
                                                                    output, run_sums);
}

}  // namespace plumbline::candidate_cuda
