// kSwiGlu of the candidate.
//
// Shapes: gate_up (batch, R, 2 F) bfloat16, value a in the first half, gate b in the second; output
// (batch, R, F).
// Rounding points: s = round(SiLU(b)), SiLU in float32; y = round(a s).
// Backward of g: da = round(g s); ds = round(g a); db = round(ds SiLU'(b)), SiLU' in float32.
// Reductions: none. The bytes are those of the candidate on a CPU.
#include <algorithm>

#include "kernels/candidate/cuda/operations.h"
#include "kernels/candidate/cuda/wide_rows.cuh"
#include "kernels/cuda/device_view.cuh"
#include "kernels/cuda/early_launch.cuh"
#include "kernels/cuda/elementary.cuh"
#include "kernels/cuda/for_each_run.cuh"
#include "kernels/cuda/rounding.cuh"

namespace plumbline::candidate_cuda {
namespace {

using cuda::bf16;
using cuda::RoundThroughBf16;
using cuda::View;

struct ForwardBody {
  View<const bf16> gate_up;
  View<bf16> output;
  int64_t width;  // F

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const bf16* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
#pragma unroll
    for (int i = 0; i < kCount; ++i) a[i] *= RoundThroughBf16(cuda::Silu(b[i]));
    cuda::StoreRun(a, output.Row(row, item) + column);
  }
};

constexpr int kSwiGluThreads = 256;
constexpr int kChunksOfThread = 2;  // so that their loads overlap

// The forward of few rows where everything is aligned to chunks, which are counted over all rows.
__global__ void __launch_bounds__(kSwiGluThreads)
    SwiGluChunksKernel(View<const bf16> gate_up, View<bf16> output, unsigned chunks_of_row,
                       unsigned chunks) {
  cuda::LetNextKernelStart();
  cuda::WaitForKernelsBefore();
  Chunk a[kChunksOfThread], b[kChunksOfThread];
  bf16* to[kChunksOfThread];
  const unsigned rows = static_cast<unsigned>(output.rows);
  const unsigned first = blockIdx.x * kChunksOfThread * kSwiGluThreads + threadIdx.x;
  bool is_plain = true;
#pragma unroll
  for (int i = 0; i < kChunksOfThread; ++i) {
    const unsigned number = first + i * kSwiGluThreads;
    to[i] = nullptr;
    if (number >= chunks) continue;
    const unsigned flat_row = number / chunks_of_row;
    const unsigned column = (number - flat_row * chunks_of_row) * kChunkValues;
    const unsigned item = flat_row / rows;
    const unsigned row = flat_row - item * rows;
    const bf16* const from = gate_up.Row(row, item) + column;
    a[i] = LoadChunk(from);
    b[i] = LoadChunk(from + int64_t{chunks_of_row} * kChunkValues);
    to[i] = output.Row(row, item) + column;
  }
#pragma unroll
  for (int i = 0; i < kChunksOfThread; ++i) {
    if (to[i] == nullptr) continue;
#pragma unroll
    for (int j = 0; j < kChunkValues; ++j) is_plain &= cuda::IsPlain(cuda::Widen(b[i].values[j]));
  }
  const auto multiply = [&](auto silu) {
#pragma unroll
    for (int i = 0; i < kChunksOfThread; ++i) {
      if (to[i] == nullptr) continue;
      float values[kChunkValues];
#pragma unroll
      for (int j = 0; j < kChunkValues; ++j) values[j] = silu(cuda::Widen(b[i].values[j]));
      StoreChunk(MultiplyChunks(a[i], RoundChunk(values)), to[i]);
    }
  };
  if (is_plain) {
    multiply([](float x) { return cuda::PlainSilu(x); });
  } else {
    multiply([](float x) { return cuda::Silu(x); });
  }
}

// s for every gate of 2^-20 to 2^7 and either sign, in shared memory: computed once for a block
// that goes through many rows, it costs a third of the instructions of computing s for each value.
class SiluTable {
 public:
  static constexpr uint32_t kEntries = 2 * 27 * 128;  // signs, exponents, mantissas

  // By all threads of the block, and a barrier after it.
  __device__ static void Fill(bf16* table) {
    for (uint32_t i = threadIdx.x; i < kEntries; i += blockDim.x) {
      const uint32_t bits = i < kOfSign ? i + kLeast : i - kOfSign + kLeast + 0x8000;
      table[i] = cuda::RoundToBf16(cuda::Silu(__uint_as_float(bits << 16)));
    }
  }
  __device__ static bool Has(uint32_t bits) { return (bits & 0x7FFF) - kLeast < kOfSign; }
  __device__ static uint32_t Place(uint32_t bits) {
    return (bits & 0x7FFF) - kLeast + (bits >> 15) * kOfSign;
  }

 private:
  static constexpr uint32_t kOfSign = kEntries / 2;
  static constexpr uint32_t kLeast = (127 - 20) << 7;
};

constexpr int kTableThreads = 1024;
constexpr int kTableRows = 2;    // of a block at once,
constexpr int kTableChunks = 2;  // and chunks of a thread in each: their loads overlap
// Where the table is worth its making.
constexpr int64_t kLeastTableChunks = 1 << 20;

// s of a chunk of gates.
__device__ inline Chunk SiluOfChunk(const bf16* table, const Chunk& gates) {
  const uint32_t* const words = reinterpret_cast<const uint32_t*>(&gates);
  bool has_all = true;
#pragma unroll
  for (int i = 0; i < kChunkValues / 2; ++i) {
    has_all &= SiluTable::Has(words[i]) && SiluTable::Has(words[i] >> 16);
  }
  Chunk result;
  if (has_all) {
#pragma unroll
    for (int i = 0; i < kChunkValues / 2; ++i) {
      result.values[2 * i] = table[SiluTable::Place(words[i] & 0xFFFF)];
      result.values[2 * i + 1] = table[SiluTable::Place(words[i] >> 16)];
    }
  } else {
    float values[kChunkValues];
    WidenChunk(gates, values);
#pragma unroll
    for (int i = 0; i < kChunkValues; ++i) values[i] = cuda::Silu(values[i]);
    result = RoundChunk(values);
  }
  return result;
}

// The same for many rows: one block a multiprocessor, which goes through pairs of rows.
__global__ void __launch_bounds__(kTableThreads, 1)
    SwiGluTableKernel(View<const bf16> gate_up, View<bf16> output, int flat_rows,
                      int chunks_of_row) {
  __shared__ bf16 table[SiluTable::kEntries];
  cuda::LetNextKernelStart();
  SiluTable::Fill(table);
  __syncthreads();
  cuda::WaitForKernelsBefore();
  const int rows = static_cast<int>(output.rows);
  for (int first_row = static_cast<int>(blockIdx.x) * kTableRows; first_row < flat_rows;
       first_row += static_cast<int>(gridDim.x) * kTableRows) {
    for (int first = static_cast<int>(threadIdx.x); first < chunks_of_row;
         first += static_cast<int>(blockDim.x) * kTableChunks) {
      Chunk a[kTableRows][kTableChunks], b[kTableRows][kTableChunks];
      const auto for_each = [&](auto body) {
#pragma unroll
        for (int i = 0; i < kTableRows; ++i) {
          const int flat_row = first_row + i;
          if (flat_row >= flat_rows) break;
          const int item = flat_row / rows;
          const int row = flat_row - item * rows;
#pragma unroll
          for (int j = 0; j < kTableChunks; ++j) {
            const int chunk = first + j * static_cast<int>(blockDim.x);
            if (chunk < chunks_of_row) body(i, j, item, row, chunk * kChunkValues);
          }
        }
      };
      for_each([&](int i, int j, int item, int row, int column) {
        const bf16* const from = gate_up.Row(row, item) + column;
        a[i][j] = LoadChunk(from);
        b[i][j] = LoadChunk(from + chunks_of_row * kChunkValues);
      });
      for_each([&](int i, int j, int item, int row, int column) {
        StoreChunk(MultiplyChunks(a[i][j], SiluOfChunk(table, b[i][j])),
                   output.Row(row, item) + column);
      });
    }
  }
}

absl::Status SwiGluChunks(cudaStream_t stream, const Tensor& gate_up, const Tensor& output) {
  constexpr char kName[] = "candidate SwiGLU";
  const int64_t chunks_of_row = output.width / kChunkValues;
  const int64_t flat_rows = output.batch * output.rows;
  const int64_t chunks = flat_rows * chunks_of_row;
  if (chunks == 0) return absl::OkStatus();
  if (chunks >= kLeastTableChunks) {
    // As many threads as make whole turns of a row.
    const int64_t turns = (chunks_of_row + kTableThreads - 1) / kTableThreads;
    const int64_t threads = (chunks_of_row / turns + 31) / 32 * 32;
    return cuda::LaunchEarly(stream, kName, SwiGluTableKernel, cuda::MultiprocessorCount(),
                             static_cast<unsigned>(std::min<int64_t>(threads, kTableThreads)), 0,
                             View<const bf16>(gate_up), View<bf16>(output),
                             static_cast<int>(flat_rows), static_cast<int>(chunks_of_row));
  }
  constexpr int64_t kChunksOfBlock = kChunksOfThread * kSwiGluThreads;
  return cuda::LaunchEarly(stream, kName, SwiGluChunksKernel,
                           static_cast<unsigned>((chunks + kChunksOfBlock - 1) / kChunksOfBlock),
                           kSwiGluThreads, 0, View<const bf16>(gate_up), View<bf16>(output),
                           static_cast<unsigned>(chunks_of_row), static_cast<unsigned>(chunks));
}

struct BackwardBody {
  View<const bf16> gate_up;
  View<const bf16> grad;
  View<bf16> grad_gate_up;
  int64_t width;

  template <int kCount>
  __device__ void Apply(int64_t item, int64_t row, int64_t column) const {
    const bf16* const from = gate_up.Row(row, item) + column;
    float a[kCount], b[kCount], g[kCount];
    cuda::LoadRun(from, a);
    cuda::LoadRun(from + width, b);
    cuda::LoadRun(grad.Row(row, item) + column, g);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const float ds = RoundThroughBf16(g[i] * a[i]);
      a[i] = g[i] * RoundThroughBf16(cuda::Silu(b[i]));
      b[i] = ds * cuda::SiluDerivative(b[i]);
    }
    bf16* const to = grad_gate_up.Row(row, item) + column;
    cuda::StoreRun(a, to);
    cuda::StoreRun(b, to + width);
  }
};

class SwiGlu final : public CandidateOperation {
 public:
  SwiGlu() : CandidateOperation(OpKind::kSwiGlu) {}

  absl::Status Forward(const ExecutionContext& context, const ForwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& output = call.output;
    if (cuda::AreAligned(kChunkValues, gate_up, output)) {
      return SwiGluChunks(Stream(context), gate_up, output);
    }
    const ForwardBody body = {View<const bf16>(gate_up), View<bf16>(output), output.width};
    return cuda::ForEachRun(Stream(context), output.batch, output.rows, output.width, false, body,
                            "candidate SwiGlu");
  }

  absl::Status Backward(const ExecutionContext& context, const BackwardCall& call) const override {
    const Tensor& gate_up = call.inputs[0];
    const Tensor& grad_gate_up = call.grad_inputs[0];
    const Tensor& grad = call.grad_output;
    if (grad_gate_up.IsNull()) return absl::OkStatus();
    const BackwardBody body = {View<const bf16>(gate_up), View<const bf16>(grad),
                               View<bf16>(grad_gate_up), grad.width};
    return cuda::ForEachRun(Stream(context), grad.batch, grad.rows, grad.width,
                            cuda::AreAligned(cuda::kRun, gate_up, grad, grad_gate_up), body,
                            "candidate SwiGlu backward");
  }
};

}  // namespace

std::shared_ptr<const Operation> MakeSwiGlu() { return std::make_shared<SwiGlu>(); }

}  // namespace plumbline::candidate_cuda
