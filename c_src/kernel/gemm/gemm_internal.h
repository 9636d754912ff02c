/* Internal to the files of the matrix product. Thread-safe: functions use only their arguments. */
#ifndef TS_KERNEL_GEMM_INTERNAL_H
#define TS_KERNEL_GEMM_INTERNAL_H

#include "base/cancel.h"
#include "jit/emit/gemm_emit.h"
#include "kernel/gemm/gemm.h"
#include "tensor/contract_order.h"

/* The numbers that gemm_amx.c, gemm_bf16_chain.c and gemm_quads.c multiply: bf16, or integers of 8 bits, signed or not,
 * of lhs and of rhs. GEMM_AMX_NONE: emitted kernels compute all tiles. */
typedef enum gemm_amx_product {
  GEMM_AMX_NONE,
  GEMM_CHAIN_BF16, /* by AVX512_BF16; pairs of steps, also of operands that are narrower or scaled */
  GEMM_AMX_BF16,   /* the same by AMX */
  GEMM_AMX_SS,
  GEMM_AMX_SU,
  GEMM_AMX_US,
  GEMM_AMX_UU,
  GEMM_AMX_PRODUCTS
} gemm_amx_product;

struct ts_gemm {
  ts_gemm_types types;
  bool native;                  /* results are computed in their own type; else in 32 bits */
  bool complex;                 /* of complex numbers, whose parts have the types */
  bool scaled;                  /* an operand is scaled or unpacked while it is packed: tiles only */
  gemm_amx_product own;         /* tiles have 32 rows and columns, and no emitted kernel computes them */
  int lhs_size, rhs_size, size; /* bytes of an element of the operands and of out */
  int depth;                    /* steps of k in one element of a packed operand: 2 for pairs, 4 for quads, else 1 */
  ts_gemm_compute compute;      /* of AXPY and DOT; the type of tiles is in the geometry */
  ts_gemm_geometry geometry;
  ts_kernel *kernels[TS_GEMM_KERNEL_COUNT];
  ts_gemm_request request; /* of ts_gemm_prepare */
};

/* True if elements of packed operands are pairs of bf16 (gemm_bf16.h). */
static inline bool ts_gemm_has_bf16_pairs(const ts_gemm *gemm) {
  return gemm->own == GEMM_CHAIN_BF16 || gemm->own == GEMM_AMX_BF16;
}
/* True if elements of packed operands are quads of 8 bits (gemm_quads.h). */
static inline bool ts_gemm_has_quads(const ts_gemm *gemm) { return gemm->own > GEMM_AMX_BF16; }

/* A chain without an end. */
#define TS_GEMM_ONE_CHAIN (INT64_MAX / 2)

/* The arguments of one run. */
typedef struct gemm_run {
  const ts_gemm *gemm;
  ts_gemm_shape shape;
  const char *lhs, *rhs;
  const ts_gemm_rows *rows; /* replaces lhs; NULL: lhs is strided */
  const char *packed;       /* replaces rhs; NULL: rhs is strided */
  const char *left;         /* replaces lhs, by ts_gemm_pack_left; NULL without it */
  const char *columns;      /* replaces rhs, by ts_gemm_pack_columns; NULL without it */
  char *out;
  const ts_gemm_scale *scale;           /* NULL: none */
  const struct ts_quantized *quantized; /* replaces rhs; NULL: rhs is strided */
  bool adds;
  bool has_tiny; /* of pairs of bf16: the packed rhs has tiny elements (gemm_bf16.h) */
  bool native;   /* `out` has the type that is computed: the gemm's, or parts that ts_gemm_run_long adds */
  int size;      /* bytes of an element of `out` */
  ts_gemm_kernel kernel;
  int64_t chain;   /* steps of k, of pairs with AMX, in one chain: ts_contract_order_of, or TS_GEMM_ONE_CHAIN */
  int64_t first_k; /* of `rows` and `quantized`: where the run's k begin */
  int64_t batch_k; /* of `rows`: batches are that many steps of k of the same rows; 0: they are other rows */
  const ts_epilogue *epilogue;
  const ts_parallel *parallel;
  ts_pool *pool;
  const _Atomic bool *cancel;
} gemm_run;

static inline bool gemm_cancelled(const gemm_run *run) { return ts_cancelled(run->cancel); }

/* Runs the epilogue on a part of `out` with final values. */
static inline void gemm_show(const gemm_run *run, ts_epilogue_part part, int worker) {
  run->epilogue->run(run->epilogue->context, &part, worker);
}

static inline int64_t gemm_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t gemm_round_up(int64_t value, int64_t unit) { return gemm_ceil_div(value, unit) * unit; }
static inline int64_t gemm_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t gemm_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* True if the sums of a part of k continue the sums of the part before; else they are added to them. */
static inline bool ts_gemm_goes_on(const gemm_run *run) { return run->chain == TS_GEMM_ONE_CHAIN; }

/* Bytes of results to finish together: enough to amortize the calls, few enough for L1. */
#define TS_GEMM_FINISH_BYTES (24 << 10)
/* Tasks of tiles for each worker. */
#define TS_GEMM_TILE_TASKS 4
/* Bytes between the memory of two workers. A CPU fetches what follows the rows that a thread reads, some tens of
 * kilobytes away: without a gap that is what another thread is writing. */
#define TS_GEMM_WORKER_GAP (64 << 10)

/* Rows of tiles, cut into tasks that become smaller toward the end: so threads end together, although tiles do not
 * divide among them, or one of them begins later. */
typedef struct gemm_cut {
  int64_t rows;
  int64_t most, least; /* rows in one task */
  int64_t threads;
} gemm_cut;

static inline int64_t gemm_cut_next(const gemm_cut *c, int64_t row) {
  const int64_t left = c->rows - row, part = (left + 2 * c->threads - 1) / (2 * c->threads);
  const int64_t most = part < c->most ? part : c->most, size = most > c->least ? most : c->least;
  return row + (size < left ? size : left);
}

static inline int64_t gemm_cut_tasks(const gemm_cut *c) {
  int64_t tasks = 0;
  for (int64_t row = 0; row < c->rows; row = gemm_cut_next(c, row)) tasks++;
  return tasks;
}

/* The first row of a task. */
static inline int64_t gemm_cut_first(const gemm_cut *c, int64_t task) {
  int64_t row = 0;
  while (task-- > 0) row = gemm_cut_next(c, row);
  return row;
}

/* ---- gemm_tiles.c ---- */

static inline bool gemm_is_empty(const ts_gemm_shape *s) { return s->batch <= 0 || s->m <= 0 || s->n <= 0; }
/* The run of a call, without a kernel. */
gemm_run ts_gemm_run_of(const ts_gemm *gemm, const ts_gemm_shape *shape, const ts_gemm_call *call);
/* A product by tiles: of at most TS_CONTRACT_BLOCK steps unless it is one chain. */
ts_status ts_gemm_run_passes(const gemm_run *run);

/* Runs an epilogue that takes whole rows on all batches, when the tasks had only parts of rows. */
void ts_gemm_show_rows(const gemm_run *run, int64_t first_batch, int64_t batches, const ts_parallel *parallel);

/* A rhs is packed once for many runs (ts_gemm_packs_weights) where lhs has at most TS_GEMM_WEIGHT_ROWS: with more,
 * packing is less than a hundredth of the product. And where it has at least TS_GEMM_WEIGHT_ELEMENTS: to find a packed
 * rhs costs as much as to pack fewer elements. Else a rhs is packed where lhs has more than TS_GEMM_SHARED_ROWS. */
enum { TS_GEMM_WEIGHT_ROWS = 2048, TS_GEMM_SHARED_ROWS = 256, TS_GEMM_WEIGHT_ELEMENTS = 4096 };

/* ---- gemm_plan.c ---- */

/* True for products whose tiles are computed by several threads. */
bool ts_gemm_tiles_are_large(const ts_gemm *gemm, const ts_gemm_shape *shape);

/* ---- gemm_small.c ---- */

/* True where rows of rhs are whole pages apart: so many of a column's elements are in the same lines of L1 that they do
 * not stay there, from one tile of lhs to the next. Only low tiles then gain from a packed rhs. */
static inline bool gemm_shares_lines(const ts_gemm_geometry *g, const ts_gemm_shape *s) {
  enum { PAGE = 4096, STEPS = 8, TILES = 2, LOW_TILE = 8 };
  const bool reads_again = g->small <= LOW_TILE && s->m > (int64_t)TILES * g->small && s->k >= STEPS;
  return reads_again && s->rhs_row != 0 && s->rhs_row * g->element_size % PAGE == 0;
}

/* Up to this number of vectors AXPY is as fast as tiles. */
enum { TS_GEMM_FEW_ITEMS = 4 };
/* True where tiles read both operands as they lie, or rhs is packed by each task. */
bool ts_gemm_is_small(const ts_gemm *gemm, const ts_gemm_shape *shape);
ts_status ts_gemm_run_small(const gemm_run *run);

/* ---- gemm_long.c ---- */

/* A product of more than TS_CONTRACT_BLOCK steps: of blocks, whose results are added in pairs. */
ts_status ts_gemm_run_long(const gemm_run *run);

/* ---- gemm_pack.c ---- */

/* Whether the elements are parts of complex numbers, of lhs or of rhs, that are taken apart (gemm_pack_complex.c). */
typedef enum gemm_numbers { GEMM_REAL, GEMM_LEFT, GEMM_RIGHT } gemm_numbers;

/* One operand, cut into panels of `step` units (rows of lhs or columns of rhs). A panel holds, for each k, `width` >=
 * step elements of the compute type; those past the last unit are undefined. TS_GEMM_PAIRS: for each two k; the last
 * one of an odd k is joined by 0. */
typedef struct gemm_pack {
  ts_dtype dtype;
  ts_gemm_compute compute;
  int64_t unit_stride, k_stride; /* elements */
  int step, width;
  gemm_numbers numbers;
  const char *scale; /* of the first unit; NULL: the operand is not scaled */
  int64_t scale_unit;
  ts_dtype scale_type; /* f16, bf16 or f32: scaled elements are rounded to it */
} gemm_pack;
enum { TS_GEMM_MAX_UNITS = 64 }; /* in a panel, including the padding of its last vector */

/* Packs `units` units and `k` steps from `source` on. Panels are `panel_bytes` apart. */
void ts_gemm_pack(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels,
                  int64_t panel_bytes);

/* ---- gemm_pack_native.c ---- */

/* ts_gemm_pack of elements that are neither converted to floats nor parts of complex numbers. */
void ts_gemm_pack_native(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels,
                         int64_t panel_bytes);

/* Packs `k` neighbouring elements of `units` rows into one panel. `rows` has room for 3 more pointers, which this
 * function fills. */
void ts_gemm_pack_rows(const gemm_pack *pack, const char **rows, int64_t units, int64_t k, char *panel);

/* ---- gemm_widen.c ---- */

/* Rounds or truncates a row of 32-bit results to `dtype`. */
void ts_gemm_narrow(ts_dtype dtype, const void *source, int64_t count, void *out);

/* ts_gemm_pack of elements that are converted to f32 or f64, and perhaps scaled. */
void ts_gemm_pack_widened(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels,
                          int64_t panel_bytes);

/* ---- gemm_pack_complex.c ---- */

/* ts_gemm_pack of numbers that are not GEMM_REAL. `units` of rhs and `k` count parts: they are even. */
void ts_gemm_pack_complex(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels,
                          int64_t panel_bytes);

/* ---- gemm_prepare.c ---- */

/* The kernel of a product of these types (ts_gemm_has_types). */
ts_gemm_kernel ts_gemm_kernel_of(const ts_gemm_types *types, const ts_gemm_shape *shape);

/* A gemm with the kernel TS_GEMM_STRIDED only, whose caller makes the tiles; for ts_gemm_adopt, as ts_gemm_prepare. */
ts_status ts_gemm_prepare_strided(ts_dtype dtype, ts_gemm **out, ts_kernel_source *out_source);

/* ---- gemm_items.c ---- */

/* Copies `count` results of each of at most TS_GEMM_MAX_ITEMS vectors, which lie TS_GEMM_ITEM_BYTES apart and have
 * `size` bytes, to rows of `items` neighbours, `row` bytes apart. */
void ts_gemm_join_items(int size, const char *from, int64_t items, int64_t count, char *out, int64_t row);
/* The same of results of 32 bits, which are rounded or truncated to `type`. */
void ts_gemm_narrow_items(ts_dtype type, const char *from, int64_t items, int64_t count, char *out, int64_t row);

/* ---- gemm_vector.c ---- */

/* Chooses the kernel for the product: AXPY and DOT are for a matrix times a few vectors, on either side. */
ts_gemm_kernel ts_gemm_pick_kernel(const ts_gemm *gemm, const ts_gemm_shape *shape);
/* The type of the matrix that AXPY and DOT read. */
ts_dtype ts_gemm_matrix_type(const ts_gemm *gemm, const ts_gemm_shape *shape);
/* Runs a product by AXPY or DOT. */
ts_status ts_gemm_run_vector(const gemm_run *run);
bool ts_gemm_vector_is_large(const ts_gemm *gemm, const ts_gemm_shape *shape);

#endif
