// The decoders' operations of every implementation on a CPU.
#include "kernels/decoders/operation_cases.h"

namespace plumbline {
namespace {

std::shared_ptr<Device> Cpu() { return MakeCpuDevice(2, int64_t{1} << 28).value(); }

INSTANTIATE_TEST_SUITE_P(
    Cpu, DecoderOperationsTest,
    testing::Values(DecoderOperationsSubject{"golden", Cpu, "", 2e-7, true},
                    // OpenBLAS picks its kernels by the shape.
                    DecoderOperationsSubject{"provider/default", Cpu, "", 4e-6, false},
                    DecoderOperationsSubject{"candidate", Cpu, "", 4e-6, true}));

}  // namespace
}  // namespace plumbline
