/* Wrong on purpose, in the one way that WRONG names: a SwiGLU (or what a kernel of two nodes needs)
 * that the guards, the gates or the probe must catch. The tests build it once for each. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plumbline_plugin.h"

#define UNWRITTEN 1       /* leaves the last element of the output as it was */
#define OVERRUN 2         /* writes a row too many */
#define UNDERRUN 3        /* writes before the beginning */
#define CHANGES_INPUT 4   /* uses its input as scratch */
#define SCRATCH_OVERRUN 5 /* uses more workspace than it asked for */
#define NEIGHBOURS 6      /* a row depends on the row before it, though it promises otherwise */
#define UNREPEATABLE 7    /* another answer with every call, though it promises otherwise */
#define FAILS 8           /* says that it failed */
#define CRASHES 9         /* at the first call */
#define CRASHES_WHEN_LOADED 10
#define HANGS_WHEN_LOADED 11
#define OTHER_ABI 12
#define UNKNOWN_NODE 13
#define TAPPED 14        /* two nodes: another answer where the first one's output is asked for */
#define HALVES 15        /* the two halves are swapped: no guard can know, the gates do */
#define EXITS 16         /* ends the process at the first call */
#define BETWEEN_ROWS 17  /* norm1: writes between the rows of a table */
#define BAD_BACKWARD 18  /* does not write a gradient */
#define HANGS 19         /* at the first call */
#define EXITS_AT_ONCE 20 /* the same as EXITS, and runs no handler */
#define KILLS 21         /* the process, by a signal that nobody handles */
#define PRINTS 22 /* to standard output, when it is loaded and in a call; computes as it should */

static int calls;

static float silu(float x) { return x / (1.0f + expf(-x)); }

static void swiglu_row(const uint16_t* a, const uint16_t* b, int64_t width, uint16_t* out) {
  int64_t i;
  for (i = 0; i < width; ++i) {
    out[i] = plumbline_round(plumbline_widen(a[i]) *
                             plumbline_widen(plumbline_round(silu(plumbline_widen(b[i])))));
  }
}

static plumbline_status forward(const plumbline_call* call) {
  const plumbline_node_call* node = &call->nodes[0];
  const plumbline_tensor* x = &node->inputs[0];
  const int64_t width = node->output.width;
  int64_t item, row;
  ++calls;
#if WRONG == CRASHES
  *(volatile int*)0 = 1;
#elif WRONG == EXITS
  exit(0);
#elif WRONG == EXITS_AT_ONCE
  _exit(0);
#elif WRONG == KILLS
  kill(getpid(), SIGKILL);
#elif WRONG == HANGS
  if (write(2, "hangs\n", 6) == 6) {
    for (;;) sleep(1);
  }
#elif WRONG == PRINTS
  printf("{ printed in a call\n");
#elif WRONG == FAILS
  return plumbline_failed("no tile configuration for this shape");
#endif
  for (item = 0; item < x->batch; ++item) {
    for (row = 0; row < x->rows; ++row) {
      uint16_t* a = plumbline_row_bf16(x, row, item);
      uint16_t* b = a + width;
      uint16_t* out = plumbline_row_bf16(&node->output, row, item);
#if WRONG == HALVES
      swiglu_row(b, a, width, out);
#elif WRONG == UNWRITTEN
      swiglu_row(a, b, row == x->rows - 1 ? width - 1 : width, out);
#else
      swiglu_row(a, b, width, out);
#endif
#if WRONG == NEIGHBOURS
      if (row > 0) out[0] = plumbline_row_bf16(&node->output, row - 1, item)[0];
#elif WRONG == UNREPEATABLE
      out[0] = plumbline_round((float)calls);
#elif WRONG == CHANGES_INPUT
      if (row == 3) a[5] = 0;
#elif WRONG == OVERRUN
      if (row == x->rows - 1 && item == x->batch - 1) out[width + 2] = 0;
#elif WRONG == UNDERRUN
      if (row == 0 && item == 0) out[-1] = 0;
#endif
    }
  }
#if WRONG == SCRATCH_OVERRUN
  ((uint8_t*)call->workspace)[call->workspace_bytes] = 0;
#endif
  return plumbline_ok();
}

#if WRONG == BAD_BACKWARD
static plumbline_status backward(const plumbline_call* call) {
  (void)call;
  return plumbline_ok();
}
#else
#define backward NULL
#endif

#if WRONG == SCRATCH_OVERRUN
static size_t scratch(const plumbline_call* call, int32_t is_backward) {
  (void)call;
  (void)is_backward;
  return 100;
}
#else
#define scratch NULL
#endif

#if WRONG == TAPPED || WRONG == BETWEEN_ROWS
/* Not what the nodes are: they are caught before anybody looks at the values. */
static plumbline_status copies(const plumbline_call* call) {
  const int32_t last = call->num_nodes - 1;
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  const plumbline_tensor* out = &call->nodes[last].output;
  int64_t item, row;
  for (item = 0; item < x->batch; ++item) {
    for (row = 0; row < x->rows; ++row) {
      const size_t bytes = (size_t)x->width * sizeof(uint16_t);
      memcpy(plumbline_row_bf16(out, row, item), plumbline_row_bf16(x, row, item), bytes);
      if (last == 0 || call->nodes[0].output.data == NULL) continue;
      memcpy(plumbline_row_bf16(&call->nodes[0].output, row, item),
             plumbline_row_bf16(x, row, item), bytes);
      plumbline_row_bf16(out, row, item)[7] ^= 1;
    }
  }
#if WRONG == BETWEEN_ROWS
  plumbline_row_bf16(&call->nodes[0].inputs[1], 0, 0)[x->width] = 0;
#endif
  return plumbline_ok();
}
#endif

#if WRONG == TAPPED
static const char* const kNodes[] = {"residual_attn", "norm2"};
#define KERNEL_FORWARD copies
#define KERNEL_NODES 2
#elif WRONG == BETWEEN_ROWS
static const char* const kNodes[] = {"norm1"};
#define KERNEL_FORWARD copies
#define KERNEL_NODES 1
#elif WRONG == UNKNOWN_NODE
static const char* const kNodes[] = {"swigloo"};
#define KERNEL_FORWARD forward
#define KERNEL_NODES 1
#else
static const char* const kNodes[] = {"swiglu"};
#define KERNEL_FORWARD forward
#define KERNEL_NODES 1
#endif

static const plumbline_kernel kKernels[] = {{
    sizeof(plumbline_kernel),
    KERNEL_NODES,
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
    scratch,
    KERNEL_FORWARD,
    backward,
}};

static const plumbline_plugin kPlugin = {
    WRONG == OTHER_ABI ? 99 : PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    NAME,
    "Plumbline examples",
    "wrong on purpose",
    1,
    0,
    kKernels,
};

const plumbline_plugin* plumbline_plugin_get(void) {
#if WRONG == CRASHES_WHEN_LOADED
  raise(SIGSEGV);
#elif WRONG == HANGS_WHEN_LOADED
  for (;;) sleep(1);
#elif WRONG == PRINTS
  printf("{ printed when loaded\n");
#endif
  /* Keep every build's functions used. */
  (void)forward;
  return &kPlugin;
}
