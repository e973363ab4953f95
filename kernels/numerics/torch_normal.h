// Where a draw of PyTorch's CUDA generator finds its random words.
#ifndef PLUMBLINE_KERNELS_NUMERICS_TORCH_NORMAL_H_
#define PLUMBLINE_KERNELS_NUMERICS_TORCH_NORMAL_H_

#include <algorithm>
#include <cstdint>

namespace plumbline {

// One torch.randn of float32 values on a GPU (ATen's DistributionTemplates.h). Every thread of its
// launch draws four Philox words an iteration: those at `offset` plus four times the iteration, of
// the stream that the seed and the thread's number give.
struct TorchNormalDraw {
  static constexpr uint64_t kWords = 4;

  uint64_t seed = 0;
  uint64_t offset = 0;             // words that every thread has used before; a multiple of 4
  uint64_t multiprocessors = 132;  // of the GPU that is imitated

  // Blocks of 256 threads, as many as 2048 threads a multiprocessor.
  uint64_t Threads(uint64_t size) const {
    constexpr uint64_t kThreadsPerBlock = 256;
    constexpr uint64_t kBlocksPerMultiprocessor = 8;
    return kThreadsPerBlock *
           std::min(multiprocessors * kBlocksPerMultiprocessor, CeilDivide(size, kThreadsPerBlock));
  }
  uint64_t Iterations(uint64_t size) const { return CeilDivide(size, Threads(size) * kWords); }

 private:
  static uint64_t CeilDivide(uint64_t a, uint64_t b) { return (a + b - 1) / b; }
};

}  // namespace plumbline

#endif  // PLUMBLINE_KERNELS_NUMERICS_TORCH_NORMAL_H_
