// Attention as a plug-in, on a GPU, naive: one warp for each row and head, keys one after another.
//
//   q, k, v (R, heads D) bfloat16  ->  (R, heads D) = round(softmax(q k^T / sqrt(D)) v)
//
// Forward only. Statistics, products and sums in float32, keys in their order with a running
// maximum; one rounding at the end. A row's order of sums depends on the number of keys alone, so
// the kernel is repeatable and does not see what else is in the batch.
//
//   nvcc -O3 -shared -Xcompiler -fPIC -gencode arch=compute_80,code=compute_80
//       -gencode arch=compute_90,code=sm_90 -I DIR_OF_THE_HEADER -o attention.so attention.cu
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "plumbline_plugin.h"

namespace {

constexpr int kWarp = 32;
constexpr int kMostHeadWidth = 256;
constexpr int kPerLane = kMostHeadWidth / kWarp;

__device__ const __nv_bfloat16* RowOf(const plumbline_tensor& t, int64_t item, int64_t row,
                                      int64_t column) {
  return static_cast<const __nv_bfloat16*>(t.data) + item * t.batch_stride + row * t.row_stride +
         column;
}

__device__ float SumOverWarp(float value) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(0xFFFFFFFFu, value, offset);
  }
  return value;
}

__global__ void Attention(plumbline_tensor q, plumbline_tensor k, plumbline_tensor v,
                          plumbline_tensor out, int head_width, float scale) {
  const int64_t row = blockIdx.x;
  const int64_t column = static_cast<int64_t>(blockIdx.y) * head_width;
  const int64_t item = blockIdx.z;
  const int lane = threadIdx.x;
  float query[kPerLane], sum[kPerLane];
  const __nv_bfloat16* const from = RowOf(q, item, row, column);
  for (int i = 0; i < kPerLane; ++i) {
    const int channel = lane + i * kWarp;
    query[i] = channel < head_width ? __bfloat162float(from[channel]) : 0.0f;
    sum[i] = 0.0f;
  }
  float maximum = -INFINITY, weight = 0.0f;
  for (int64_t key = 0; key < k.rows; ++key) {
    const __nv_bfloat16* const keys = RowOf(k, item, key, column);
    const __nv_bfloat16* const values = RowOf(v, item, key, column);
    float score = 0.0f;
    for (int i = 0; i < kPerLane; ++i) {
      const int channel = lane + i * kWarp;
      if (channel < head_width) score += query[i] * __bfloat162float(keys[channel]);
    }
    score = SumOverWarp(score) * scale;
    const float highest = fmaxf(maximum, score);
    const float shrink = expf(maximum - highest);
    const float p = expf(score - highest);
    weight = weight * shrink + p;
    for (int i = 0; i < kPerLane; ++i) {
      const int channel = lane + i * kWarp;
      if (channel < head_width) sum[i] = sum[i] * shrink + p * __bfloat162float(values[channel]);
    }
    maximum = highest;
  }
  __nv_bfloat16* const to = const_cast<__nv_bfloat16*>(RowOf(out, item, row, column));
  for (int i = 0; i < kPerLane; ++i) {
    const int channel = lane + i * kWarp;
    if (channel < head_width) to[channel] = __float2bfloat16_rn(sum[i] / weight);
  }
}

plumbline_status Check(const plumbline_call* call) {
  const int64_t head_width = call->nodes[0].attributes.head_width;
  if (head_width < 1 || head_width > kMostHeadWidth) {
    return plumbline_failed("heads are 1 to 256 channels wide");
  }
  return plumbline_ok();
}

plumbline_status Forward(const plumbline_call* call) {
  const plumbline_node_call& node = call->nodes[0];
  const plumbline_tensor& q = node.inputs[0];
  const int head_width = static_cast<int>(node.attributes.head_width);
  const dim3 grid(static_cast<unsigned>(q.rows), static_cast<unsigned>(q.width / head_width),
                  static_cast<unsigned>(q.batch));
  Attention<<<grid, kWarp, 0, static_cast<cudaStream_t>(call->stream)>>>(
      q, node.inputs[1], node.inputs[2], node.output, head_width,
      1.0f / sqrtf(static_cast<float>(head_width)));
  const cudaError_t launched = cudaGetLastError();
  return launched == cudaSuccess ? plumbline_ok() : plumbline_failed(cudaGetErrorString(launched));
}

const char* const kNodes[] = {"attention"};

const plumbline_kernel kKernels[] = {{
    sizeof(plumbline_kernel),
    1,
    kNodes,
    PLUMBLINE_CUDA,
    80,
    PLUMBLINE_BF16,
    PLUMBLINE_INTERIM,
    PLUMBLINE_REPEATABLE | PLUMBLINE_ROW_INVARIANT,
    0,
    {0, 0, 0, 0, 0, 0},
    Check,
    nullptr,
    nullptr,
    Forward,
    nullptr,
}};

const plumbline_plugin kPlugin = {
    PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    "example_attention",
    "Plumbline examples",
    "example_attention 1",
    1,
    0,
    kKernels,
};

}  // namespace

const plumbline_plugin* plumbline_plugin_get(void) { return &kPlugin; }
