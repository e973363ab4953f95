/* The norms of queries and of keys as a plug-in of two kernels, each of one node, on a CPU, in C,
 * forward only. A composition takes both, or one and leaves the other as it was:
 *
 *   --composition=candidate+plugin/example_heads:q_norm,k_norm
 *   --composition=candidate+plugin/example_heads:q_norm
 *
 *   q_norm, k_norm  x(R, heads D), weight(1, D)  ->  round((x / sqrt(mean(x^2) + epsilon)) weight),
 *                   each head by itself
 *
 * Norms must have the provider's bytes: see fused_norm.c for the order of the sum, and compile with
 * -ffp-contract=off. */
#include <math.h>

#include "plumbline_plugin.h"

#define LANES 32
#define ROWS_AT_A_TIME 8

static float sum_of_squares(const uint16_t* x, int64_t width) {
  float lanes[LANES] = {0};
  int64_t i;
  int half, j;
  for (i = 0; i < width; ++i) {
    const float value = plumbline_widen(x[i]);
    lanes[i % LANES] = fmaf(value, value, lanes[i % LANES]);
  }
  for (half = LANES / 2; half > 0; half /= 2) {
    for (j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

static void head_norm(const uint16_t* x, const uint16_t* weight, int64_t width, float epsilon,
                      uint16_t* out) {
  const float r = 1.0f / sqrtf(sum_of_squares(x, width) / (float)width + epsilon);
  int64_t i;
  for (i = 0; i < width; ++i) {
    out[i] = plumbline_round(plumbline_widen(x[i]) * r * plumbline_widen(weight[i]));
  }
}

static void norm_rows(void* arg, int64_t first, int64_t last) {
  const plumbline_node_call* node = (const plumbline_node_call*)arg;
  const plumbline_tensor* x = &node->inputs[0];
  const uint16_t* weight = plumbline_row_bf16(&node->parameters[0], 0, 0);
  const int64_t head_width = node->parameters[0].width;
  int64_t i, head;
  for (i = first; i < last; ++i) {
    const uint16_t* from = plumbline_row_bf16(x, i % x->rows, i / x->rows);
    uint16_t* out = plumbline_row_bf16(&node->output, i % x->rows, i / x->rows);
    for (head = 0; head < x->width; head += head_width) {
      head_norm(from + head, weight, head_width, node->attributes.epsilon, out + head);
    }
  }
}

static plumbline_status forward(const plumbline_call* call) {
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  call->parallel_for(call->threads, x->batch * x->rows, ROWS_AT_A_TIME, norm_rows,
                     (void*)&call->nodes[0]);
  return plumbline_ok();
}

static const char* const kQuery[] = {"q_norm"};
static const char* const kKey[] = {"k_norm"};

#define KERNEL_OF(nodes)                                                                         \
  {                                                                                              \
    sizeof(plumbline_kernel), 1, nodes, PLUMBLINE_CPU, 0, PLUMBLINE_BF16, PLUMBLINE_BOUND,       \
        PLUMBLINE_REPEATABLE | PLUMBLINE_ROW_INVARIANT, 0, {0, 0, 0, 0, 0, 0}, NULL, NULL, NULL, \
        forward, NULL,                                                                           \
  }

static const plumbline_kernel kKernels[] = {KERNEL_OF(kQuery), KERNEL_OF(kKey)};

static const plumbline_plugin kPlugin = {
    PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    "example_heads",
    "Plumbline examples",
    "example_heads 1",
    2,
    0,
    kKernels,
};

const plumbline_plugin* plumbline_plugin_get(void) { return &kPlugin; }
