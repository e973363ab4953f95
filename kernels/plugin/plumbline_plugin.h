/* clang-format off: a table. */
/* Bring your own kernel: the C interface between Plumbline and a plug-in.
 *
 * A plug-in is a shared object (.so) that exports one function, plumbline_plugin_get(), which
 * returns a description: a name, and kernels. A kernel computes one node of the model's graph, or
 * several consecutive ones, forward and (if it has one) backward. Compositions name it:
 *
 *     plumbline submit block-replay --checkpoint=synthetic:tiny --plugin=./acme.so \
 *         --composition=candidate+plugin/acme:swiglu
 *
 * This header is all that a plug-in needs: C99 or newer, or C++, from any compiler. docs/plugin.md
 * goes from an empty folder to a verdict.
 *
 * NODES. What each computes, its inputs in order, its parameters, and its output. R rows, H hidden
 * width, D head width, E timestep width, T distinct timesteps; (rows, width); `table` is the
 * output of adaln_projection read as (3 T, 6 H), of which a node gets H columns. Index and
 * position inputs, tables and parameters have batch 1 and are shared by all batch items. "Rounded"
 * means to the nearest even bfloat16; everything else is float32 arithmetic.
 *
 *   adaln_projection
 *       in:  temb(T, E) F32
 *       par: weight(18 H, E), bias(1, 18 H)
 *       out: rounded SiLU(temb), times weight^T, plus bias, rounded
 *   norm1 norm2
 *       in:  x(R, H), scale(3 T, H), shift(3 T, H), index(R, 1) I64
 *       par: weight(1, H)
 *       out: n = rounded((x / sqrt(mean(x^2) + epsilon)) * weight); f = rounded(1 + scale[index]);
 *            rounded(rounded(n * f) + shift[index])
 *   q_proj k_proj v_proj o_proj ffn_gate_up ffn_down
 *       in:  x(R, K)
 *       par: weight(N, K)
 *       out: (R, N) = rounded(x weight^T)
 *   q_norm k_norm
 *       in:  x(R, heads D)
 *       par: weight(1, D)
 *       out: RMSNorm of each head, rounded
 *   rope_q rope_k
 *       in:  x(R, heads D), position_ids(R, 3) F64
 *       out: angle_j of each of 3 axes = float(position) * theta^(-2 j / 2 F), for j < F =
 *            rotary_frequencies; the 3 F angles twice; cos and sin rounded; over the first 6 F
 *            channels of a head x cos + concat(-x2, x1) sin, each product and the sum rounded
 *   attention
 *       in:  q, k, v (R, heads D)
 *       out: softmax(q k^T / sqrt(D)) v, each head and batch item by itself, no mask, rounded
 *   residual_attn residual_mlp
 *       in:  x(R, H), branch(R, H), gate(3 T, H), index(R, 1) I64
 *       out: rounded(x + rounded(gate[index] * branch))
 *   swiglu
 *       in:  gate_up(R, 2 F): a, then b
 *       out: (R, F) = rounded(a * rounded(SiLU(b)))
 *   norm_out, token_refiner, context_embedder, proj_in, audio_proj_in, proj_out, audio_proj_out
 *       as norm1, q_norm (all of the width), and q_proj with bias(1, N)
 *
 * The blocks of the text refiner have nodes of the same names. Where those compute something else
 * they are named apart:
 *
 *   refiner/norm1 refiner/norm2
 *       in:  x(R, H)
 *       par: weight(1, H)
 *       out: RMSNorm, rounded
 *   refiner/residual_attn refiner/residual_mlp
 *       in:  x(R, H), branch(R, H)
 *       out: rounded(x + branch)
 *
 * CALLS come from one thread at a time. On a CPU a call returns when it is done; on a GPU it only
 * enqueues on `stream`, allocates nothing and never synchronises. A call must write every element
 * of every output that is not null, may write nothing else, and must not change its inputs.
 * Plumbline checks that: it poisons outputs before a call and looks for elements that were not
 * written, puts canaries around every buffer, and compares inputs with what they were.
 */
/* clang-format on */
#ifndef PLUMBLINE_PLUGIN_H_
#define PLUMBLINE_PLUGIN_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes whenever anything below does. A plug-in of another version is refused. */
#define PLUMBLINE_PLUGIN_ABI_VERSION 1

/* plumbline_kernel.device */
enum { PLUMBLINE_CPU = 1, PLUMBLINE_CUDA = 2 };

/* Element types of tensors. */
enum { PLUMBLINE_BF16 = 1, PLUMBLINE_F32 = 2, PLUMBLINE_I64 = 3, PLUMBLINE_F64 = 4 };

/* plumbline_kernel.promises: bits. Every kernel is held to both by the gates; what it promised and
 * broke is said so in the verdict. */
enum {
  /* The same call gives the same bytes. */
  PLUMBLINE_REPEATABLE = 1,
  /* A row's bytes do not depend on what else is in the batch, nor, where the node computes row by
   * row, on how many rows there are. */
  PLUMBLINE_ROW_INVARIANT = 2
};

/* plumbline_kernel.status: how finished the kernel is, as reports show it. */
enum { PLUMBLINE_BOUND = 0, PLUMBLINE_INTERIM = 1 };

/* A (batch, rows, width) array in the device's memory. The elements of a row are contiguous; rows
 * and batch items may be apart. Strides are counted in elements. */
typedef struct plumbline_tensor {
  void* data; /* NULL: there is none, and nothing is to be written */
  int32_t type;
  int32_t reserved;
  int64_t batch;
  int64_t rows;
  int64_t width;
  int64_t row_stride;
  int64_t batch_stride;
} plumbline_tensor;

/* What does not come as a tensor. Fields that a node does not read are 0. */
typedef struct plumbline_attributes {
  int64_t head_width;         /* attention, rope_q, rope_k: D */
  int64_t rotary_frequencies; /* rope_q, rope_k: F */
  float rotary_theta;         /* rope_q, rope_k */
  float epsilon;              /* norms */
} plumbline_attributes;

/* One node of a call. */
typedef struct plumbline_node_call {
  const char* node; /* e.g. "swiglu" */
  const plumbline_tensor* inputs;
  const plumbline_tensor* parameters;
  int32_t num_inputs;
  int32_t num_parameters;
  plumbline_attributes attributes;
  /* Of a kernel that covers several nodes: NULL data in a node whose output nobody else wants. The
   * bytes of the other outputs must not depend on that. An input that is the output of an earlier
   * node of the call has that output's view. */
  plumbline_tensor output;
  /* saved_bytes() bytes in the device's memory, 64-byte aligned: written by forward, read by
   * backward. NULL where no backward will follow. */
  void* saved;
  /* Backward only; NULL in forward. `grad_inputs` has one tensor for each input, and
   * `grad_parameters` one for each parameter; their data is NULL where none is wanted. They are
   * overwritten, never added to; rows of a table that no index names get zeros. Gradients of what
   * batch items share are summed over them. */
  const plumbline_tensor* grad_output;
  const plumbline_tensor* grad_inputs;
  const plumbline_tensor* grad_parameters;
} plumbline_node_call;

/* Calls body(arg, first, last) for parts of [0, count) of `grain` (the last one may be shorter), on
 * all threads at once; returns when all are done. How the range is cut depends on `count` and
 * `grain` alone. */
typedef void (*plumbline_parallel_for)(void* threads, int64_t count, int64_t grain,
                                       void (*body)(void* arg, int64_t first, int64_t last),
                                       void* arg);

typedef struct plumbline_call {
  uint32_t struct_bytes;
  int32_t num_nodes;
  const plumbline_node_call* nodes;
  /* workspace_bytes() bytes in the device's memory, 64-byte aligned; contents do not outlive the
   * call. */
  void* workspace;
  size_t workspace_bytes;
  /* CUDA: the cudaStream_t to enqueue on, on the calling thread's current device. CPU: NULL. */
  void* stream;
  /* CPU: threads to share the work among. CUDA: NULL. */
  plumbline_parallel_for parallel_for;
  void* threads;
  /* For the text of a failure that is made at run time. */
  char* message;
  size_t message_bytes;
} plumbline_call;

/* What a call came to. `code` 0: it is done. Otherwise the job fails with `message`, which must
 * live until the plug-in is called again. */
typedef struct plumbline_status {
  int32_t code;
  int32_t reserved;
  const char* message;
} plumbline_status;

/* What a kernel can do; 0 everywhere: anything. A job that needs something else is refused before
 * it runs. */
typedef struct plumbline_constraints {
  int64_t rows_multiple_of; /* of every input and output but tables and parameters */
  int64_t max_rows;
  int64_t width_multiple_of; /* of every input and output of the kernel's type */
  int64_t max_width;
  int64_t head_width;      /* attention, rope: the only one */
  int64_t alignment_bytes; /* of every row's first element; a power of two, at most 64 */
} plumbline_constraints;

typedef struct plumbline_kernel {
  uint32_t struct_bytes; /* sizeof(plumbline_kernel) */
  /* The node, or the consecutive nodes in execution order, that it covers. A kernel of several
   * nodes runs where the composition gives it all of them. */
  int32_t num_nodes;
  const char* const* nodes;
  int32_t device;
  /* CUDA: the least compute capability, times ten, e.g. 90. CPU: 0. */
  int32_t compute_capability;
  /* BF16: activations and gradients are bfloat16 (but temb, and what is around the float32
   * boundaries). F32: all are float32; Plumbline casts around the node. Parameters have the type
   * that they are stored in, and their gradients in a BF16 kernel too. */
  int32_t type;
  int32_t status;
  uint32_t promises;
  uint32_t reserved;
  plumbline_constraints constraints;
  /* Each may be NULL. Tensors of the call have shapes and no data. `check` refuses what the
   * constraints cannot say. Sizes are bytes of one node's saved state, and of scratch. */
  plumbline_status (*check)(const plumbline_call* call);
  size_t (*saved_bytes)(const plumbline_call* call);
  size_t (*workspace_bytes)(const plumbline_call* call, int32_t backward);
  /* Required. */
  plumbline_status (*forward)(const plumbline_call* call);
  /* NULL: it has none, and jobs with a backward are refused. Kernels of several nodes have none. */
  plumbline_status (*backward)(const plumbline_call* call);
} plumbline_kernel;

typedef struct plumbline_plugin {
  uint32_t abi_version;  /* PLUMBLINE_PLUGIN_ABI_VERSION */
  uint32_t struct_bytes; /* sizeof(plumbline_plugin) */
  /* What compositions call it, without "plugin/": 1 to 63 characters of [A-Za-z0-9._-]. */
  const char* name;
  /* Who answers for it, as reports show. */
  const char* owner;
  /* Version, commit, compiler: whatever identifies the build. Together with the file's SHA-256 it
   * is part of the numerical identity of every run. */
  const char* identity;
  int32_t num_kernels;
  int32_t reserved;
  const plumbline_kernel* kernels;
} plumbline_plugin;

/* The one function to export. What it returns lives as long as the object is loaded. */
#define PLUMBLINE_PLUGIN_ENTRY "plumbline_plugin_get"
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const plumbline_plugin*
plumbline_plugin_get(void);

static inline plumbline_status plumbline_ok(void) {
  plumbline_status status = {0, 0, NULL};
  return status;
}

static inline plumbline_status plumbline_failed(const char* message) {
  plumbline_status status = {1, 0, NULL};
  status.message = message;
  return status;
}

/* The first element of row `row` of batch item `item`, of a BF16 and of an F32 tensor. */
static inline uint16_t* plumbline_row_bf16(const plumbline_tensor* t, int64_t row, int64_t item) {
  return (uint16_t*)t->data + item * t->batch_stride + row * t->row_stride;
}
static inline float* plumbline_row_f32(const plumbline_tensor* t, int64_t row, int64_t item) {
  return (float*)t->data + item * t->batch_stride + row * t->row_stride;
}
static inline int64_t plumbline_index(const plumbline_tensor* t, int64_t row) {
  return ((const int64_t*)t->data)[row * t->row_stride];
}

/* bfloat16 as float, exactly; and float rounded to the nearest bfloat16, ties to even. */
static inline float plumbline_widen(uint16_t value) {
  uint32_t bits = (uint32_t)value << 16;
  float result;
  memcpy(&result, &bits, sizeof(result));
  return result;
}
static inline uint16_t plumbline_round(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x40u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#ifdef __cplusplus
}
#endif

#endif /* PLUMBLINE_PLUGIN_H_ */
