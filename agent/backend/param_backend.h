/* The boundary between a worker and a backend: a C ABI, the only header a backend needs. C99.
 *
 * A backend is a loadable object that exports one symbol, param_backend_entry_v1(). It hands out
 * tables by name: "device", "comm", "native"; a backend offers one or more.
 *
 * Rules. No function throws, exits, or keeps a caller's pointer after it returns unless said so.
 * Functions return 0 for success or the value of an absl::StatusCode with a message in `err`
 * (UNIMPLEMENTED = 12 means "cannot do this here": the case is SKIPPED with the message). A table
 * starts with its size as the backend was compiled: the host reads no further and takes what lies
 * beyond as NULL. A NULL entry means UNIMPLEMENTED. Handles belong to the backend; whoever created
 * one destroys it. One thread at a time calls into a context unless said otherwise.
 */
#ifndef PARAM_BACKEND_H_
#define PARAM_BACKEND_H_
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
/* NOLINTBEGIN(modernize-use-using): the header is C */

#define PARAM_BACKEND_ABI_MAJOR 1u /* a change breaks old backends */
#define PARAM_BACKEND_ABI_MINOR 0u /* functions were appended to a table */

/* ---- common ------------------------------------------------------------------------------- */

typedef struct param_error {
  int32_t code; /* value of absl::StatusCode; 0 is success */
  char message[1020];
} param_error;

/* Element types. Values never change. */
typedef enum param_dtype {
  PARAM_DTYPE_F64 = 1,
  PARAM_DTYPE_F32 = 2,
  PARAM_DTYPE_TF32 = 3, /* f32 in memory, multiplied in tf32 */
  PARAM_DTYPE_F16 = 4,
  PARAM_DTYPE_BF16 = 5,
  PARAM_DTYPE_F8E4M3 = 6,
  PARAM_DTYPE_F8E5M2 = 7,
  PARAM_DTYPE_I8 = 8,
  PARAM_DTYPE_U8 = 9,
  PARAM_DTYPE_I32 = 10,
  PARAM_DTYPE_I64 = 11
} param_dtype;

/* What the worker offers to a backend. Outlives every context. */
typedef struct param_host {
  uint32_t struct_size;
  void* user;
  /* level: 0 debug, 1 info, 2 warn, 3 error. May be called from any thread. */
  void (*log)(void* user, int32_t level, const char* text);
  /* 1 once the job is cancelled or another rank failed: long loops poll it. Any thread. */
  int32_t (*cancelled)(void* user);
  int32_t rank, size;             /* of this process in the attempt */
  int32_t local_rank, local_size; /* on this node */
  /* Every rank gives `bytes` bytes and gets size * bytes bytes in `all`, by rank. Blocks. */
  int32_t (*exchange)(void* user, const void* mine, size_t bytes, void* all, param_error* err);
  /* Tells the service where a long bring-up stands: "bootstrap", "connect". */
  void (*progress)(void* user, const char* phase);
  const char* script; /* the fake backend's script (text), else "" */
  int32_t threads;    /* threads a CPU backend may use */
  /* Where the rank stands: "spawn", "comm_init", "verify", "warmup", "timed", "teardown"; "" when
   * unknown. Any thread. NULL where the worker does not say. */
  const char* (*phase)(void* user);
} param_host;

/* ---- prepared operations ------------------------------------------------------------------ */

typedef enum param_attr_kind {
  PARAM_ATTR_NONE = 0,
  PARAM_ATTR_INT = 1,
  PARAM_ATTR_FLOAT = 2,
  PARAM_ATTR_BOOL = 3,
  PARAM_ATTR_STRING = 4,
  PARAM_ATTR_INT_LIST = 5,
  PARAM_ATTR_FLOAT_LIST = 6,
  PARAM_ATTR_BOOL_LIST = 7,
  PARAM_ATTR_STRING_LIST = 8
} param_attr_kind;

typedef struct param_attr {
  const char* name;
  param_attr_kind kind;
  size_t count; /* of a list; 1 otherwise */
  union {
    int64_t i; /* BOOL too */
    double f;
    const char* s;
    const int64_t* ints; /* BOOL_LIST too */
    const double* floats;
    const char* const* strings;
  } value;
} param_attr;

#define PARAM_MAX_DIMS 8

typedef struct param_tensor {
  const char* name; /* "a", "b", "c"; operands are bound by position */
  param_dtype dtype;
  int32_t rank;
  int64_t dims[PARAM_MAX_DIMS];
  int64_t strides[PARAM_MAX_DIMS]; /* in elements */
} param_tensor;

/* What an operation is. Rich enough to say any schema call, so that a new operation is no change of
 * this header. The backend copies what it needs in create.
 *
 * "gemm": C = alpha * op(A) * op(B) + beta * C, batched. Attributes: trans_a, trans_b (bool),
 * alpha, beta (float), library (string; "auto" or a name the backend knows). Tensors, row-major as
 * stored: a [batch, m, k] or [batch, k, m] when trans_a, b [batch, k, n] or [batch, n, k],
 * c [batch, m, n]. c's dtype: i32 for i8, bf16 for f8, else that of a.
 *
 * "copy": dst = src. Tensors src, dst of equal shape and type. */

/* clang-format off */
/* Collectives are created with the comm table, by every rank of the communicator in the same order.
 * W = its ranks, r = the own rank. Tensors are flat. Attributes: redop (string: sum, prod, min, max,
 * avg), root (int), in_place (bool, default false).
 *   all_reduce        src[N] dst[N]                                redop in_place
 *   reduce            src[N] dst[N], written on the root only      redop root in_place
 *   broadcast         data[N]                                      root
 *   all_gather        src[n] dst[W*n]                              in_place
 *   reduce_scatter    src[W*n] dst[n]                              redop in_place
 *   all_to_all        src[W*n] dst[W*n]                            in_place
 *   gather            src[n] dst[W*n], written on the root only    root in_place
 *   scatter           src[W*n], read on the root only, dst[n]      root in_place
 *   all_gather_v      src[counts[r]] dst[sum of counts]            counts (ints, W) in_place
 *   reduce_scatter_v  src[sum of counts] dst[counts[r]]            counts redop in_place
 *   all_to_allv       src[sum of send_counts] dst[sum of recv_counts], blocks packed by rank
 *                                                   send_counts recv_counts (ints, W) in_place
 *   incast            src[N], read on the sources, dst[P*N], written on the root: block i is that of
 *                     the i-th source                root sources (ints, P of them, root is none)
 *   multicast         data[N], from the root to each destination   root destinations (ints)
 *   barrier           no tensors
 *   send, recv        data[N]                                      peer tag (ints)
 * In place the operands overlap: all_reduce, reduce, all_to_all(v): dst = src; all_gather(_v) and
 * gather: src is the own slot of dst; reduce_scatter(_v) and scatter: dst is the own slot of src.
 * gather and scatter are in place on the root only. */
/* clang-format on */
typedef struct param_op_desc {
  const char* name;
  size_t attr_count;
  const param_attr* attrs;
  size_t tensor_count;
  const param_tensor* tensors;
} param_op_desc;

typedef struct param_ctx param_ctx;       /* a backend's own state, one per device */
typedef struct param_buffer param_buffer; /* memory */
typedef struct param_stream param_stream; /* an ordered queue of work */
typedef struct param_event param_event;   /* a point in a stream, with its time */
typedef struct param_graph param_graph;   /* a captured sequence */
typedef struct param_op param_op;         /* a prepared operation */
typedef struct param_comm param_comm;     /* a communicator */
typedef struct param_request param_request;

/* A place in a buffer. */
typedef struct param_operand {
  param_buffer* buffer;
  size_t offset; /* bytes */
} param_operand;

/* ---- table "device" ------------------------------------------------------------------------ */

typedef enum param_memory_kind {
  PARAM_MEMORY_HOST = 1,
  PARAM_MEMORY_PINNED = 2,
  PARAM_MEMORY_DEVICE = 3,
  PARAM_MEMORY_SYMMETRIC = 4
} param_memory_kind;

typedef struct param_device_v1 {
  uint32_t struct_size;
  const char* kind; /* "cpu", "cuda", "fake" */
  /* Devices found (>= 0), or -1 and why. Called in a throw-away process. */
  int32_t (*probe)(param_error* why);
  /* JSON about the machine's devices and libraries, for the inventory; at most `capacity` bytes
   * with the NUL: {"devices": [{"index", "name", "memory_bytes", "uuid", ...}], "libraries":
   * {...}}. */
  int32_t (*describe)(char* json, size_t capacity, param_error* err);

  int32_t (*open)(const param_host* host, int32_t device, param_ctx** out, param_error* err);
  void (*close)(param_ctx* ctx);

  int32_t (*buffer_create)(param_ctx*, param_memory_kind, size_t bytes, param_buffer** out,
                           param_error* err);
  void (*buffer_destroy)(param_ctx*, param_buffer*);
  /* Host copies, blocking, ordered after all work of the context. */
  int32_t (*buffer_write)(param_ctx*, param_buffer*, size_t offset, const void* from, size_t bytes,
                          param_error* err);
  int32_t (*buffer_read)(param_ctx*, param_buffer*, size_t offset, void* to, size_t bytes,
                         param_error* err);
  void* (*buffer_native)(param_ctx*, param_buffer*); /* NULL where there is none */

  int32_t (*stream_create)(param_ctx*, param_stream** out, param_error* err);
  void (*stream_destroy)(param_ctx*, param_stream*);
  int32_t (*stream_synchronize)(param_ctx*, param_stream*, param_error* err);
  void* (*stream_native)(param_ctx*, param_stream*);

  int32_t (*event_create)(param_ctx*, param_event** out, param_error* err);
  void (*event_destroy)(param_ctx*, param_event*);
  int32_t (*event_record)(param_ctx*, param_event*, param_stream*, param_error* err);
  int32_t (*event_synchronize)(param_ctx*, param_event*, param_error* err);
  int32_t (*stream_wait_event)(param_ctx*, param_stream*, param_event*, param_error* err);
  /* Nanoseconds from `begin` to `end`, both complete. */
  int32_t (*event_elapsed_ns)(param_ctx*, param_event* begin, param_event* end, double* out,
                              param_error* err);

  int32_t (*graph_begin)(param_ctx*, param_stream*, param_error* err);
  int32_t (*graph_end)(param_ctx*, param_stream*, param_graph** out, param_error* err);
  int32_t (*graph_launch)(param_ctx*, param_graph*, param_stream*, param_error* err);
  void (*graph_destroy)(param_ctx*, param_graph*);

  /* Evicts caches, in stream order; `bytes_out` says how much was written. */
  int32_t (*cache_flush)(param_ctx*, param_stream*, uint64_t* bytes_out, param_error* err);
  /* Holds work queued after it until release, so that launch cost stays out of the time between
   * events. NULL where work runs at once. The backend gives up after a second by itself. */
  int32_t (*stream_hold)(param_ctx*, param_stream*, param_error* err);
  int32_t (*stream_release)(param_ctx*, param_stream*, param_error* err);
  /* JSON: {"sm_hz": ..., "memory_hz": ..., "throttle": "..."}; what is unknown is left out. */
  int32_t (*clocks)(param_ctx*, char* json, size_t capacity, param_error* err);
  /* Peak rate for a type as measured or derived here, FLOP/s; `how` says which, for the record. */
  int32_t (*peak_flops)(param_ctx*, param_dtype, double* out, char* how, size_t capacity,
                        param_error* err);

  int32_t (*op_create)(param_ctx*, const param_op_desc*, param_op** out, param_error* err);
  void (*op_destroy)(param_ctx*, param_op*);
  size_t (*op_workspace_bytes)(param_ctx*, param_op*);
  /* `operands` by position of the descriptor's tensors; `workspace` may be NULL when 0 bytes. The
   * hot path: must not allocate. */
  int32_t (*op_enqueue)(param_ctx*, param_op*, param_stream*, const param_operand* operands,
                        size_t operand_count, param_buffer* workspace, param_error* err);
  /* JSON of text values: {"library": "oneDNN 2.6.0", "implementation": "sgemm"}: what really runs.
   */
  int32_t (*op_info)(param_ctx*, param_op*, char* json, size_t capacity, param_error* err);
} param_device_v1;

/* ---- table "comm" --------------------------------------------------------------------------- */

#define PARAM_COMM_ID_BYTES 256

typedef struct param_comm_v1 {
  uint32_t struct_size;
  const char* kind; /* "mpi", "nccl", "gloo", "fake" */
  int32_t (*probe)(param_error* why);
  int32_t (*open)(const param_host* host, const param_device_v1* device, param_ctx* device_ctx,
                  param_ctx** out, param_error* err);
  void (*close)(param_ctx* ctx);
  /* Made on rank 0 and carried to the others by the service. */
  int32_t (*unique_id)(param_ctx*, uint8_t id[PARAM_COMM_ID_BYTES], param_error* err);
  /* Collective over `size` ranks. DEADLINE_EXCEEDED after `deadline_ns` from now. */
  int32_t (*comm_create)(param_ctx*, const uint8_t id[PARAM_COMM_ID_BYTES], int32_t rank,
                         int32_t size, int64_t deadline_ns, param_comm** out, param_error* err);
  int32_t (*comm_split)(param_ctx*, param_comm*, int32_t color, int32_t key, param_comm** out,
                        param_error* err);
  /* The good path, collective, may wait. */
  int32_t (*comm_destroy)(param_ctx*, param_comm*, param_error* err);
  /* From any thread, never waits for a peer; what is in flight ends with an error. */
  void (*comm_abort)(param_ctx*, param_comm*);
  int32_t (*comm_async_error)(param_ctx*, param_comm*, param_error* err);
  int32_t (*buffer_register)(param_ctx*, param_comm*, param_buffer*, param_error* err);
  /* What is enqueued between the two waits for nobody; group_end completes all of it as one, in
   * stream order (blocking where there are no streams). */
  int32_t (*group_begin)(param_ctx*, param_error* err);
  int32_t (*group_end)(param_ctx*, param_error* err);
  int32_t (*op_create)(param_ctx*, param_comm*, const param_op_desc*, param_op** out,
                       param_error* err);
  void (*op_destroy)(param_ctx*, param_op*);
  size_t (*op_workspace_bytes)(param_ctx*, param_op*);
  /* `request` NULL: complete in stream order (blocking where there are no streams). Else the
   * operation runs on while the caller goes on, with its operands left alone, until request_wait;
   * UNIMPLEMENTED where a library cannot do that. */
  int32_t (*op_enqueue)(param_ctx*, param_op*, param_stream*, const param_operand* operands,
                        size_t operand_count, param_buffer* workspace, param_request** request,
                        param_error* err);
  int32_t (*request_test)(param_ctx*, param_request*, int32_t* done, param_error* err);
  int32_t (*request_wait)(param_ctx*, param_request*, param_error* err); /* frees it */
  int32_t (*op_info)(param_ctx*, param_op*, char* json, size_t capacity, param_error* err);
} param_comm_v1;

/* ---- table "native" -------------------------------------------------------------------------- */

/* Called by a native run for each sample; `metric` and `unit` as in the descriptor. */
typedef void (*param_sample_fn)(void* user, const char* metric, const char* unit, double value);

typedef struct param_native_v1 {
  uint32_t struct_size;
  const char* kind;
  int32_t (*probe)(param_error* why);
  /* 0: can run this benchmark with these parameters (JSON object); else the reason. */
  int32_t (*supports)(const char* benchmark, const char* params_json, param_error* why);
  int32_t (*run)(const param_host* host, const char* benchmark, const char* params_json,
                 param_sample_fn sample, void* user, param_error* err);
} param_native_v1;

/* ---- entry ----------------------------------------------------------------------------------- */

typedef struct param_backend_v1 {
  uint32_t struct_size;
  uint32_t abi_major, abi_minor;
  const char* name;    /* equals the manifest's */
  const char* version; /* of the backend; library versions are in describe() */
  /* "device", "comm" or "native"; NULL when it has no such table. */
  const void* (*table)(const char* name);
} param_backend_v1;

/* The one exported symbol. */
__attribute__((visibility("default"))) const param_backend_v1* param_backend_entry_v1(void);

/* NOLINTEND(modernize-use-using) */
#ifdef __cplusplus
}
#endif
#endif
