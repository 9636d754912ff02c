/* Matrix products of every supported type by one packed kernel, whose inner
 * parts are emitted by the JIT's emitters when Tessera is built (jit/session/builtin.h). Thread-safe, re-entrant.
 *
 * Meaning: out[b,i,j] = the sum over k = 0..K-1 in the order of tensor/contract_order.h (f16 and bf16 in f32,
 * rounded once at the end; integers wrap). The bits depend on nothing else: not on
 * blocking, threads, strides or the batch. A machine that has no FMA (x86 before
 * AVX2) multiplies, then adds. */
#ifndef TS_KERNEL_GEMM_H
#define TS_KERNEL_GEMM_H

#include "base/parallel.h"
#include "base/status.h"
#include "jit/jit.h"
#include "kernel/epilogue.h"
#include "tensor/dtype.h"
#include "tensor/pool.h"
#include "tensor/prepared.h"

#include <stdatomic.h>
#include <stdbool.h>

/* Strides in elements, any sign or order. `out` is dense in j; out_row is its row stride and
 * out_batch its batch stride. */
typedef struct ts_gemm_shape {
  int64_t batch, m, n, k;
  int64_t lhs_batch, lhs_row, lhs_col; /* of lhs[b,i,k] */
  int64_t rhs_batch, rhs_row, rhs_col; /* of rhs[b,k,j] */
  int64_t out_batch, out_row;
} ts_gemm_shape;

/* The types of a product. The operands' are `out`, or narrower: the elements are converted while they are read
 * (ts_dtype_widens_to). Products of s8 and u8 multiply four numbers at once where the CPU has AMX or AVX512_VNNI; there
 * others of s8, u8 and s16, and all elsewhere, multiply pairs of 16 bits. */
typedef struct ts_gemm_types {
  ts_dtype lhs, rhs, out;
} ts_gemm_types;
bool ts_gemm_has_types(const ts_gemm_types *types);

/* The compiled kernels for one element type: the kernels for `shape`, or all when it is NULL. Of complex types as of
 * ts_gemm_prepare_complex. Owned by the caller. */
typedef struct ts_gemm ts_gemm;
ts_status ts_gemm_get(ts_dtype dtype, const ts_gemm_shape *shape, ts_gemm **out);
void ts_gemm_release(ts_gemm *gemm);

/* The same in two steps, so that a program can request all of its kernels together. `out_source` is the one kernel for
 * `shape` (its text and description live as long as the gemm), and ts_gemm_adopt gives the gemm a reference to it. */
ts_status ts_gemm_prepare(const ts_gemm_types *types, const ts_gemm_shape *shape, ts_gemm **out,
                          ts_kernel_source *out_source);
/* The same for a product that ts_gemm_call.scale scales. */
ts_status ts_gemm_prepare_scaled(const ts_gemm_types *types, const ts_gemm_shape *shape, ts_gemm **out,
                                 ts_kernel_source *out_source);
/* The same for a product of type f32, f16 or bf16 whose rhs is ts_gemm_call.quantized. The shape's strides of rhs are
 * 0. */
ts_status ts_gemm_prepare_quantized(ts_dtype dtype, const ts_gemm_shape *shape, ts_gemm **out,
                                    ts_kernel_source *out_source);
void ts_gemm_adopt(ts_gemm *gemm, ts_kernel *kernel);

/* The same for complex numbers with parts of type `part`, f32 or f64. Runs take the shape of the parts, and so does
 * `shape`; without it the gemm is for any shape. */
ts_status ts_gemm_prepare_complex(ts_dtype part, const ts_gemm_shape *shape, ts_gemm **out,
                                  ts_kernel_source *out_source);
/* The product of real numbers that a product of complex numbers is: an element is a part. */
ts_gemm_shape ts_gemm_shape_of_parts(const ts_gemm_shape *numbers);

/* A left side whose rows lie anywhere: they are found as they are packed. */
enum { TS_GEMM_MAX_ROWS = 64 };
typedef struct ts_gemm_rows {
  const void *context;
  /* Notes rows [row, row + count) of a batch in `state`, of TS_GEMM_ROW_STATE bytes; count <= TS_GEMM_MAX_ROWS. */
  void (*start)(const void *context, int64_t batch, int64_t row, int64_t count, void *state);
  /* The addresses of element k of each of them. Returns how many elements, at least 1, are behind one another from
   * there on in all of them. */
  int64_t (*find)(const void *context, const void *state, int64_t k, const char **out);
} ts_gemm_rows;
#define TS_GEMM_ROW_STATE 4096

/* Scales of an operand. Its elements are converted to the type of `out`, f16, bf16 or f32, multiplied by the scale of
 * their row of lhs (operand 0) or column of rhs (operand 1), and rounded to the type. The scales also have that
 * type. */
typedef struct ts_gemm_scale {
  const void *at;
  int operand;
  int64_t batch, unit; /* strides in elements: from a batch, row or column to the next; 0: they share it */
} ts_gemm_scale;

struct ts_quantized;

/* One product. `out` must not overlap the operands. */
typedef struct ts_gemm_call {
  const void *lhs;          /* not used with `rows` */
  const ts_gemm_rows *rows; /* for ts_gemm_run_rows */
  const void *rhs;
  const void *packed;  /* rhs, packed by ts_gemm_pack_weights for such a product; NULL: the run packs it */
  const void *left;    /* lhs as ts_gemm_pack_left has packed it; NULL: the run packs it */
  const void *columns; /* for ts_gemm_run_some: rhs by ts_gemm_pack_columns; NULL: the run packs it where it has to */
  void *out;
  const ts_gemm_scale *scale;           /* for ts_gemm_prepare_scaled; else NULL */
  const struct ts_quantized *quantized; /* for ts_gemm_prepare_quantized; `rhs` is any address */
  /* All k are one chain: of linear algebra, whose sums go on from one product to the next. */
  bool one_chain;
  bool adds; /* with one_chain: it begins with the elements of `out`, whose type is the computing type */
  const ts_epilogue *epilogue; /* may be NULL */
  const ts_parallel *parallel;
  ts_pool *pool;              /* for packed operands */
  const _Atomic bool *cancel; /* when it becomes true, the product stops early with TS_CANCELLED; may be NULL */
} ts_gemm_call;

/* TS_FAILED_PRECONDITION for a shape whose kernels `gemm` was not created with. */
ts_status ts_gemm_run(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call);

/* The packing of rhs for all products with a few rows: it is the same for any number of rows, so that rhs can be packed
 * once for many runs; `*out_bytes` is the size of the packed operand. False where that gains less than a tenth, or the
 * packed copy exceeds rhs, about: rhs is read unpacked, or there are many rows, or it is widened. */
bool ts_gemm_packs_weights(const ts_gemm *gemm, const ts_gemm_shape *shape, ts_prepared_key *out, int64_t *out_bytes);
ts_status ts_gemm_pack_weights(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call, void *out);

/* The left side of f32, f64 or parts of complex numbers that several products on one thread share, packed once: up to
 * TS_GEMM_LEFT_STEPS steps of k, in tiles (`adds`, or a shape whose kernel is TILE). */
enum { TS_GEMM_LEFT_STEPS = 64 };
int64_t ts_gemm_left_elements(const ts_gemm *gemm, int64_t m, int64_t k);
void ts_gemm_pack_left(const ts_gemm *gemm, const ts_gemm_shape *shape, const void *lhs, void *out);

/* ts_gemm_prepare, and a run, of a product whose left side is `rows`: the shape's strides of lhs are 0. */
ts_status ts_gemm_prepare_rows(ts_dtype dtype, ts_gemm **out, ts_kernel_source *out_source);
ts_status ts_gemm_run_rows(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call);

/* Products of some rows at a time, by callers that compute the rows of a result in several calls, each on one thread:
 * rhs is packed once for all of them. Only of floats that are computed in f32 or f64, with up to TS_CONTRACT_BLOCK
 * steps. */
bool ts_gemm_has_some(const ts_gemm_types *types, const ts_gemm_shape *shape);
ts_status ts_gemm_prepare_some(const ts_gemm_types *types, ts_gemm **out, ts_kernel_source *out_source);
/* The shape is that of some rows of one batch with `columns`; of some batches without. */
ts_status ts_gemm_run_some(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call);
int ts_gemm_some_rows(const ts_gemm *gemm); /* rows of a tile: a multiple of it wastes nothing */
/* True if a run without `columns` packs rhs. */
bool ts_gemm_some_packs(const ts_gemm *gemm, const ts_gemm_shape *shape);
/* Packs the rhs of a batch. */
int64_t ts_gemm_columns_bytes(const ts_gemm *gemm, const ts_gemm_shape *shape);
void ts_gemm_pack_columns(const ts_gemm *gemm, const ts_gemm_shape *shape, const void *rhs, void *out);

/* True when the product is worth more than one thread. */
bool ts_gemm_is_large(const ts_gemm *gemm, const ts_gemm_shape *shape);
/* The same for a row times a matrix of these types whose columns have scales. False if scaled_row.h does not compute
 * that product. */
bool ts_gemm_scaled_row_is_large(const ts_gemm_types *types, const ts_gemm_shape *shape);

/* Estimated time on one thread, in nanoseconds, of a product of that type. */
int64_t ts_gemm_cost(ts_dtype dtype, const ts_gemm_shape *shape);

#endif
