/* The modulated norm as a plug-in, on a CPU, in C: by itself as norm1, and fused with the residual
 * before it as residual_attn + norm2, forward only.
 *
 *   norm1          x(R, H), scale, shift (3T, H), index(R, 1), weight(1, H)
 *   residual_attn  x(R, H), branch(R, H), gate(3T, H), index(R, 1): round(x + round(gate branch))
 *   norm2          of that sum
 *
 * The sum is an intermediate output: it is written where it is asked for, and the norm reads the
 * same rounded values either way.
 *
 * Norms must have the provider's bytes, so statistics are summed in its order: 32 lanes, lane j
 * taking elements j, j + 32, ... by one fused multiply-add each; then lane j += lane j + 16, + 8,
 * + 4, + 2, + 1. Compile with -ffp-contract=off: the only contractions are those written here. */
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

/* A row of a modulated norm; `node` has the tables and the weight. */
static void norm_row(const plumbline_node_call* node, const uint16_t* x, int64_t row,
                     int64_t item) {
  const int64_t width = node->output.width;
  const int64_t table_row = plumbline_index(&node->inputs[3], row);
  const uint16_t* scale = plumbline_row_bf16(&node->inputs[1], table_row, 0);
  const uint16_t* shift = plumbline_row_bf16(&node->inputs[2], table_row, 0);
  const uint16_t* weight = plumbline_row_bf16(&node->parameters[0], 0, 0);
  uint16_t* out = plumbline_row_bf16(&node->output, row, item);
  const float r = 1.0f / sqrtf(sum_of_squares(x, width) / (float)width + node->attributes.epsilon);
  int64_t i;
  for (i = 0; i < width; ++i) {
    const float n =
        plumbline_widen(plumbline_round(plumbline_widen(x[i]) * r * plumbline_widen(weight[i])));
    const float factor = plumbline_widen(plumbline_round(1.0f + plumbline_widen(scale[i])));
    const float product = plumbline_widen(plumbline_round(n * factor));
    out[i] = plumbline_round(product + plumbline_widen(shift[i]));
  }
}

static void norm_rows(void* arg, int64_t first, int64_t last) {
  const plumbline_node_call* node = (const plumbline_node_call*)arg;
  const plumbline_tensor* x = &node->inputs[0];
  int64_t i;
  for (i = first; i < last; ++i) {
    norm_row(node, plumbline_row_bf16(x, i % x->rows, i / x->rows), i % x->rows, i / x->rows);
  }
}

static plumbline_status norm_forward(const plumbline_call* call) {
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  call->parallel_for(call->threads, x->batch * x->rows, ROWS_AT_A_TIME, norm_rows,
                     (void*)&call->nodes[0]);
  return plumbline_ok();
}

/* Rows of both nodes. Where the residual is not asked for, its row is made in the workspace, which
 * has a row for each row of the output. */
static void fused_rows(void* arg, int64_t first, int64_t last) {
  const plumbline_call* call = (const plumbline_call*)arg;
  const plumbline_node_call* residual = &call->nodes[0];
  const plumbline_node_call* norm = &call->nodes[1];
  const plumbline_tensor* x = &residual->inputs[0];
  int64_t i, column;
  for (i = first; i < last; ++i) {
    const int64_t item = i / x->rows, row = i % x->rows;
    const uint16_t* from = plumbline_row_bf16(x, row, item);
    const uint16_t* branch = plumbline_row_bf16(&residual->inputs[1], row, item);
    const uint16_t* gate =
        plumbline_row_bf16(&residual->inputs[2], plumbline_index(&residual->inputs[3], row), 0);
    uint16_t* sum = residual->output.data == NULL
                        ? (uint16_t*)call->workspace + i * x->width
                        : plumbline_row_bf16(&residual->output, row, item);
    for (column = 0; column < x->width; ++column) {
      const float product = plumbline_widen(
          plumbline_round(plumbline_widen(gate[column]) * plumbline_widen(branch[column])));
      sum[column] = plumbline_round(plumbline_widen(from[column]) + product);
    }
    norm_row(norm, sum, row, item);
  }
}

static size_t fused_workspace(const plumbline_call* call, int32_t backward) {
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  (void)backward;
  return (size_t)(x->batch * x->rows * x->width) * sizeof(uint16_t);
}

static plumbline_status fused_forward(const plumbline_call* call) {
  const plumbline_tensor* x = &call->nodes[0].inputs[0];
  call->parallel_for(call->threads, x->batch * x->rows, ROWS_AT_A_TIME, fused_rows, (void*)call);
  return plumbline_ok();
}

static const char* const kNorm[] = {"norm1"};
static const char* const kResidualNorm[] = {"residual_attn", "norm2"};

static const plumbline_kernel kKernels[] = {
    {
        sizeof(plumbline_kernel),
        1,
        kNorm,
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
        norm_forward,
        NULL,
    },
    {
        sizeof(plumbline_kernel),
        2,
        kResidualNorm,
        PLUMBLINE_CPU,
        0,
        PLUMBLINE_BF16,
        PLUMBLINE_BOUND,
        PLUMBLINE_REPEATABLE | PLUMBLINE_ROW_INVARIANT,
        0,
        {0, 0, 0, 0, 0, 0},
        NULL,
        NULL,
        fused_workspace,
        fused_forward,
        NULL,
    },
};

static const plumbline_plugin kPlugin = {
    PLUMBLINE_PLUGIN_ABI_VERSION,
    sizeof(plumbline_plugin),
    "example_norm",
    "Plumbline examples",
    "example_norm 1",
    2,
    0,
    kKernels,
};

const plumbline_plugin* plumbline_plugin_get(void) { return &kPlugin; }
