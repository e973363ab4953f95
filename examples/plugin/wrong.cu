// Wrong on purpose on a GPU, in the one way that WRONG names, as wrong.c on a CPU: each is built
// with -DWRONG=OVERRUN -DNAME='"cuda_overrun"'.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "plumbline_plugin.h"

#define UNWRITTEN 1        // leaves the last element of the output as it was
#define OVERRUN 2          // writes two elements into a row too many
#define CHANGES_INPUT 3    // uses its input as scratch
#define SCRATCH_OVERRUN 4  // uses more workspace than it asked for
#define BAD_POINTER 5      // breaks the device: an address that is nobody's
#define NEIGHBOURS 6       // promises what it does not keep: another item changes a row's result

namespace {

__global__ void SwiGlu(plumbline_tensor x, plumbline_tensor out, uint8_t* scratch,
                       size_t scratch_bytes) {
  const int64_t row = blockIdx.x;
  const int64_t item = blockIdx.y;
  const int64_t width = out.width;
  auto* const a = static_cast<__nv_bfloat16*>(x.data) + item * x.batch_stride + row * x.row_stride;
  auto* const to =
      static_cast<__nv_bfloat16*>(out.data) + item * out.batch_stride + row * out.row_stride;
  const bool last = row == x.rows - 1 && item == x.batch - 1;
  for (int64_t i = threadIdx.x; i < width; i += blockDim.x) {
    if (WRONG == UNWRITTEN && last && i == width - 1) continue;
    const float b = __bfloat162float(a[width + i]);
    const float s = __bfloat162float(__float2bfloat16_rn(b / (1.0f + expf(-b))));
    const float value = __bfloat162float(a[i]) * s;
    to[i] = __float2bfloat16_rn(WRONG == NEIGHBOURS && x.batch > 1 ? value * 1.02f : value);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  if (WRONG == OVERRUN && last) to[width + 2] = __float2bfloat16_rn(1.0f);
  if (WRONG == CHANGES_INPUT && row == 3) a[5] = __float2bfloat16_rn(0.0f);
  if (WRONG == SCRATCH_OVERRUN && last) scratch[scratch_bytes] = 0;
  if (WRONG == BAD_POINTER && last) *reinterpret_cast<int*>(0x10) = 1;
}

size_t Scratch(const plumbline_call*, int32_t) { return 256; }

plumbline_status Forward(const plumbline_call* call) {
  const plumbline_tensor& x = call->nodes[0].inputs[0];
  const dim3 grid(static_cast<unsigned>(x.rows), static_cast<unsigned>(x.batch));
  SwiGlu<<<grid, 128, 0, static_cast<cudaStream_t>(call->stream)>>>(
      x, call->nodes[0].output, static_cast<uint8_t*>(call->workspace), call->workspace_bytes);
  const cudaError_t launched = cudaGetLastError();
  return launched == cudaSuccess ? plumbline_ok() : plumbline_failed(cudaGetErrorString(launched));
}

const char* const kNodes[] = {"swiglu"};

const plumbline_kernel kKernels[] = {{
    sizeof(plumbline_kernel),
    1,
    kNodes,
    PLUMBLINE_CUDA,
    80,
    PLUMBLINE_BF16,
    PLUMBLINE_BOUND,
    PLUMBLINE_REPEATABLE | PLUMBLINE_ROW_INVARIANT,
    0,
    {0, 0, 0, 0, 0, 0},
    nullptr,
    nullptr,
    Scratch,
    Forward,
    nullptr,
}};

const plumbline_plugin kPlugin = {
    PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    NAME,
    "Plumbline examples",
    "wrong on purpose",
    1,
    0,
    kKernels,
};

}  // namespace

const plumbline_plugin* plumbline_plugin_get(void) { return &kPlugin; }
