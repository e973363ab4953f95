// The decoders' operations of every implementation on a GPU.
#include "kernels/cuda/cuda_case.h"
#include "kernels/decoders/operation_cases.h"

namespace plumbline {
namespace {

constexpr char kNone[] = "no CUDA device";

// Lives as long as the program.
std::shared_ptr<Device> Gpu() {
  return std::shared_ptr<Device>(CudaDeviceForTest(), [](Device*) {});
}

INSTANTIATE_TEST_SUITE_P(
    Cuda, DecoderOperationsTest,
    testing::Values(DecoderOperationsSubject{"golden", Gpu, kNone, 4e-6, true},
                    // float16 has 11 bits.
                    DecoderOperationsSubject{"provider/default", Gpu, kNone, 4e-3, true},
                    DecoderOperationsSubject{"candidate", Gpu, kNone, 4e-6, true}));

}  // namespace
}  // namespace plumbline
