/* SwiGLU as a plug-in, on a CPU, in C: forward and backward.
 *
 *   gate_up(R, 2 F): value a, then gate b  ->  (R, F) = round(a * round(SiLU(b)))
 *
 * Backward of g: da = round(g * s), s the rounded SiLU; ds = round(g * a);
 * db = round(ds * SiLU'(b)). Every row is computed by itself, so the kernel is repeatable and
 * row-invariant. */
#include <math.h>

#include "plumbline_plugin.h"

#define ROWS_AT_A_TIME 8

static float sigmoid(float x) { return 1.0f / (1.0f + expf(-x)); }

static float round_through(float x) { return plumbline_widen(plumbline_round(x)); }

static void forward_rows(void* arg, int64_t first, int64_t last) {
  const plumbline_node_call* node = (const plumbline_node_call*)arg;
  const plumbline_tensor* gate_up = &node->inputs[0];
  const int64_t width = node->output.width;
  int64_t i, column;
  for (i = first; i < last; ++i) {
    const int64_t item = i / gate_up->rows, row = i % gate_up->rows;
    const uint16_t* a = plumbline_row_bf16(gate_up, row, item);
    const uint16_t* b = a + width;
    uint16_t* out = plumbline_row_bf16(&node->output, row, item);
    for (column = 0; column < width; ++column) {
      const float gate = plumbline_widen(b[column]);
      out[column] =
          plumbline_round(plumbline_widen(a[column]) * round_through(gate * sigmoid(gate)));
    }
  }
}

static void backward_rows(void* arg, int64_t first, int64_t last) {
  const plumbline_node_call* node = (const plumbline_node_call*)arg;
  const plumbline_tensor* gate_up = &node->inputs[0];
  const int64_t width = node->output.width;
  int64_t i, column;
  for (i = first; i < last; ++i) {
    const int64_t item = i / gate_up->rows, row = i % gate_up->rows;
    const uint16_t* a = plumbline_row_bf16(gate_up, row, item);
    const uint16_t* b = a + width;
    const uint16_t* g = plumbline_row_bf16(node->grad_output, row, item);
    uint16_t* da = plumbline_row_bf16(&node->grad_inputs[0], row, item);
    uint16_t* db = da + width;
    for (column = 0; column < width; ++column) {
      const float grad = plumbline_widen(g[column]);
      const float gate = plumbline_widen(b[column]);
      const float s = sigmoid(gate);
      const float ds = round_through(grad * plumbline_widen(a[column]));
      da[column] = plumbline_round(grad * round_through(gate * s));
      db[column] = plumbline_round(ds * (s * (1.0f + gate * (1.0f - s))));
    }
  }
}

static plumbline_status forward(const plumbline_call* call) {
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  call->parallel_for(call->threads, x->batch * x->rows, ROWS_AT_A_TIME, forward_rows,
                     (void*)&call->nodes[0]);
  return plumbline_ok();
}

static plumbline_status backward(const plumbline_call* call) {
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  if (call->nodes[0].grad_inputs[0].data == NULL) return plumbline_ok();
  call->parallel_for(call->threads, x->batch * x->rows, ROWS_AT_A_TIME, backward_rows,
                     (void*)&call->nodes[0]);
  return plumbline_ok();
}

static const char* const kNodes[] = {"swiglu"};

static const plumbline_kernel kKernels[] = {{
    sizeof(plumbline_kernel),
    1,
    kNodes,
    PLUMBLINE_CPU,
    0,
    PLUMBLINE_BF16,
    PLUMBLINE_BOUND,
    PLUMBLINE_REPEATABLE | PLUMBLINE_ROW_INVARIANT,
    0,
    {0, 0, 0, 0, 0, 0},
    NULL,
    NULL,
    NULL,
    forward,
    backward,
}};

static const plumbline_plugin kPlugin = {
    PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    "example_swiglu",
    "Plumbline examples",
    "example_swiglu 1",
    1,
    0,
    kKernels,
};

const plumbline_plugin* plumbline_plugin_get(void) { return &kPlugin; }
