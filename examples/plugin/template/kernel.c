/* A plug-in to begin from: one kernel, for the node "swiglu". Put your own in forward(); what comes
 * in and must go out for every node says plumbline_plugin.h. */
#include <math.h>

#include "plumbline_plugin.h"

/* Rows [first, last) of all batch items. */
static void rows(void* arg, int64_t first, int64_t last) {
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
      const float silu = plumbline_widen(plumbline_round(gate / (1.0f + expf(-gate))));
      out[column] = plumbline_round(plumbline_widen(a[column]) * silu);
    }
  }
}

static plumbline_status forward(const plumbline_call* call) {
  const plumbline_node_call* node = &call->nodes[0];
  const plumbline_tensor* x = &node->inputs[0];
  call->parallel_for(call->threads, x->batch * x->rows, 8, rows, (void*)node);
  return plumbline_ok();
}

static const char* const kNodes[] = {"swiglu"};

static const plumbline_kernel kKernels[] = {{
    sizeof(plumbline_kernel),
    1,
    kNodes,          /* the node, or consecutive nodes */
    PLUMBLINE_CPU,   /* or PLUMBLINE_CUDA */
    0,               /* or its compute capability * 10 */
    PLUMBLINE_BF16,  /* or PLUMBLINE_F32 */
    PLUMBLINE_BOUND, /* or PLUMBLINE_INTERIM, a stand-in */
    PLUMBLINE_REPEATABLE | PLUMBLINE_ROW_INVARIANT,
    0,
    {0, 0, 0, 0, 0, 0}, /* constraints: none */
    NULL,               /* check */
    NULL,               /* saved_bytes */
    NULL,               /* workspace_bytes */
    forward,
    NULL, /* backward: not yet */
}};

static const plumbline_plugin kPlugin = {
    PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    "mine",     /* --composition=candidate+plugin/mine:swiglu */
    "my team",  /* who answers for it */
    "mine 0.1", /* which build this is */
    1,
    0,
    kKernels,
};

const plumbline_plugin* plumbline_plugin_get(void) { return &kPlugin; }
