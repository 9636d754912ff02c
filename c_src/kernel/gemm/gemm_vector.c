/* A matrix times a few vectors. This is bound by memory, so the matrix is read unpacked, once for all vectors, and
 * narrow elements are widened while they are read. Each chain follows the order of k; machine vectors run across
 * results. */
#include "kernel/gemm/bf16/gemm_bf16.h"
#include "kernel/gemm/gemm_internal.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/gemm/thin/thin.h"

#include <string.h>

/* One operand: of lhs the units are rows, of rhs columns. */
typedef struct side {
  const char *at; /* NULL where only a plan is made */
  ts_dtype type;
  int64_t size;           /* bytes of an element */
  int64_t batch, unit, k; /* strides, in elements */
} side;

/* out[i, r] = sum of v[i, k] * x[r, k]: the same form for products with the matrix on either side. */
typedef struct vector_form {
  int64_t items, results, k;
  side x, v;
  int64_t out_item, out_result;
} vector_form;

static vector_form as_vectors(const ts_gemm *gemm, const ts_gemm_shape *s, const void *lhs_at, const void *rhs_at) {
  side lhs = {lhs_at, gemm->types.lhs, gemm->lhs_size, s->lhs_batch, s->lhs_row, s->lhs_col};
  side rhs = {rhs_at, gemm->types.rhs, gemm->rhs_size, s->rhs_batch, s->rhs_col, s->rhs_row};
  if (s->n <= s->m) return (vector_form){s->n, s->m, s->k, lhs, rhs, 1, s->out_row};
  return (vector_form){s->m, s->n, s->k, rhs, lhs, s->out_row, 1};
}

ts_dtype ts_gemm_matrix_type(const ts_gemm *gemm, const ts_gemm_shape *shape) {
  return as_vectors(gemm, shape, NULL, NULL).x.type;
}

/* From this length on, rows are worth a start for each, and enough chains are in the lanes of vectors. */
#define THIN_STEPS (4 * TS_CONTRACT_CHAIN)

/* A few results, for which thin.h has chains in the lanes of vectors. */
static bool is_thin(const ts_gemm *gemm, const vector_form *f) {
  return f->items == 1 && (gemm->compute == TS_GEMM_F32 || gemm->compute == TS_GEMM_F64);
}

/* Rows whose terms are neighbours: fewer than DOT has at once. */
static bool is_few_rows(const ts_gemm *gemm, const vector_form *f) {
  return is_thin(gemm, f) && f->results < gemm->geometry.lanes && f->x.k == 1 && (f->results == 1 || f->x.unit != 1);
}

/* Columns that are neighbours, without others between them. As many as fill a cache line, or as there are chains, are
 * as fast by AXPY; half as many where thin.h converts them first. */
static bool is_few_columns(const ts_gemm *gemm, const vector_form *f) {
  const int64_t size = gemm->geometry.element_size, results = f->x.size < size ? 2 * f->results : f->results;
  return is_thin(gemm, f) && f->x.unit == 1 && f->x.k == f->results && results * size < THIN_LINE_BYTES &&
         results < f->k / TS_CONTRACT_CHAIN;
}

/* AXPY: machine vectors run along results that are contiguous in x: out += v[k] * x[k, :]. */
static bool can_axpy(const ts_gemm *gemm, const vector_form *f) {
  return f->x.unit == 1 || f->results == 1 || (is_few_rows(gemm, f) && f->k >= THIN_STEPS);
}

/* DOT: machine vectors are made from rows of x that are contiguous along k. */
static bool can_dot(const ts_gemm *gemm, const vector_form *f) {
  return f->x.k == 1 && f->results >= gemm->geometry.lanes && f->k * gemm->geometry.element_size >= 16;
}

/* With several vectors it pays where packing x would cost more than the product, unless x is in cache and can be read
 * unpacked. Packing widens narrow elements one by one. */
static bool pays(const ts_gemm *gemm, const vector_form *f) {
  if (f->items == 1) return true;
  if (f->items > TS_GEMM_MAX_ITEMS || f->results < 2 * gemm->geometry.lanes) return false;
  return f->x.size < gemm->geometry.element_size || f->x.k == 1 ||
         f->k * f->results * f->x.size > ts_target_host()->l2_bytes / 2;
}

/* DOT computes whole vectors of results: of those past the last, some once more. */
static bool wastes_rows(const ts_gemm *gemm, const vector_form *f) {
  const bool is_left = f->out_item == 1; /* tiles would pack rhs */
  const bool is_native = f->x.size == gemm->geometry.element_size;
  return is_left && is_native && (gemm_round_up(f->results, gemm->geometry.lanes) - f->results) * 8 > f->results;
}

/* Rows of few elements leave DOT little to do between its starts; of 64 bits it has few lanes for its transpositions.
 * AXPY loads and stores the results of each vector again and again. */
static bool tiles_pay(const ts_gemm *gemm, const vector_form *f) {
  if (f->items == 1) return false;
  if (f->x.k != 1) return f->items > TS_GEMM_FEW_ITEMS;
  return f->k <= 32 || (gemm->geometry.element_size == 8 && f->items >= 4) || wastes_rows(gemm, f);
}

/* By AMX: rows of the matrix are read where they lie. */
static bool pays_by_amx(const vector_form *f) {
  if (f->x.type != TS_BF16) return false;
  return f->x.k == 1 ? f->items <= TS_GEMM_BF16_ITEMS : f->x.unit == 1 && f->items == 1;
}

/* A tile of quads takes about as long with a few vectors as with many. The other kernels compute one after the other,
 * but do not pack the matrix. By AMX even the packing of rows for one vector pays. */
static bool quads_pay(const ts_gemm *gemm, const vector_form *f) {
  if (!ts_gemm_has_quads(gemm)) return false;
  if (!ts_target_host()->amx) return f->items > 2;
  return f->items > 1 || (f->out_item == 1 && f->x.k == 1);
}

ts_gemm_kernel ts_gemm_pick_kernel(const ts_gemm *gemm, const ts_gemm_shape *shape) {
  vector_form f = as_vectors(gemm, shape, NULL, NULL);
  const bool small = ts_gemm_is_small(gemm, shape);
  const ts_gemm_kernel tile = small ? TS_GEMM_SMALL : TS_GEMM_TILE;
  if (gemm->complex || gemm->scaled || ts_dtype_is_small(f.x.type)) return tile;
  if (gemm->own == GEMM_AMX_BF16) return !pays_by_amx(&f) ? tile : f.x.k == 1 ? TS_GEMM_DOT : TS_GEMM_AXPY;
  if (quads_pay(gemm, &f) || !pays(gemm, &f) || (small && tiles_pay(gemm, &f))) return tile;
  if (can_axpy(gemm, &f)) return TS_GEMM_AXPY;
  return can_dot(gemm, &f) ? TS_GEMM_DOT : tile;
}

/* ---- the plan of one run ---- */

/* Bytes of a task's results: few enough to stay in L1 while rows of x stream by. */
#define AXPY_BYTES 8192
#define AXPY_MIN_BYTES 2048 /* two threads read shorter pieces of rows no faster than one reads whole rows */
#define DOT_RESULTS 256
#define THIN_UNIT 8                    /* of thin.h's rows, at least: a vector has as many lanes */
#define THIN_TASK 24                   /* as many share the terms of v */
#define THIN_CACHES 8                  /* bytes of rows, in second caches */
#define TASKS_PER_WORKER 16            /* minimum for DOT: long runs of rows are read slightly faster than short ones */
#define TASK_BYTES (256 << 10)         /* of x, a minimum for large ones */
#define PARALLEL_MIN_BYTES (256 << 10) /* of x; below this, waking another thread costs as much */
#define PACK_STEPS 2048                /* of k, in one task that packs v */
#define CHAIN_BYTES (INT64_C(4) << 20) /* of the results of all chains that are tasks; nor more than x has */
/* DOT reads at least 16 bytes along k, of a few steps at the end of a long k also those before: of x they are in its
 * row, of a packed v in this. */
#define V_MARGIN (TS_GEMM_MAX_ITEMS * 16)

typedef struct vector_plan {
  const gemm_run *run;
  const ts_parallel *parallel; /* serial for small products */
  vector_form f;
  bool dot;
  int items;             /* that the kernel processes: those past the last are zeros */
  int64_t chunk, chunks; /* results of a task (the last one may have nearly twice as many), tasks of a batch */
  int64_t chains;        /* of a batch, where each is a task: else 0 */
  bool thin;             /* by thin.h */
  bool packed;           /* v is copied to [batch, k, items], in the compute type; by AMX in pairs of k */
  int64_t v_batches;
  char *v_space, *workers; /* of each worker, or of each chain: results that cannot be written to `out` directly */
  _Atomic bool *has_tiny;  /* by AMX: the packed v has such elements (gemm_bf16.h) */
  int64_t v_bytes, packed_bytes, results_bytes, worker_bytes; /* results_bytes: of a worker's results of one chain */
  int64_t thin_bytes;                                         /* of worker_bytes, at their end */
} vector_plan;

static bool is_large(const ts_gemm_shape *shape, const vector_form *f) {
  return shape->batch * f->results >= PARALLEL_MIN_BYTES / f->x.size / f->k;
}

static bool is_by_amx(const vector_plan *p) { return p->run->gemm->own == GEMM_AMX_BF16; }

/* Whether the rows may be in the third cache. */
static bool stays_in_caches(const vector_form *f) {
  return f->results <= THIN_CACHES * ts_target_host()->l2_bytes / f->x.size / f->k;
}

/* Rows in memory that DOT would read together, though they crowd sets of the first cache: thin.h reads one behind
 * another, and fetches the next ones early. */
static bool crowds_sets(const vector_form *f) {
  return !stays_in_caches(f) && f->k >= THIN_STEPS && thin_crowds_sets(f->results, f->x.unit * f->x.size);
}

/* One vector, and rows of the type that is computed: by thin.h, whose code needs no memory for them, but fetches
 * nothing early from memory where rows crowd no sets. */
static bool is_thin_dot(const vector_plan *p) {
  const ts_gemm *gemm = p->run->gemm;
  const bool fits = is_thin(gemm, &p->f) && p->f.x.size == gemm->geometry.element_size;
  return p->dot && fits && (stays_in_caches(&p->f) || crowds_sets(&p->f)) && !is_by_amx(p) && !ts_gemm_goes_on(p->run);
}

static int64_t dot_chunk(const vector_plan *p, int64_t batch) {
  const int64_t unit = TS_GEMM_MAX_LANES, row = gemm_min(TASK_BYTES, p->f.k * p->f.x.size);
  int64_t tasks = TASKS_PER_WORKER * (int64_t)p->run->parallel->width,
          share = p->f.results / gemm_max(1, tasks / batch);
  return gemm_min(DOT_RESULTS, gemm_max(unit, gemm_max(TASK_BYTES / row, share) / unit * unit));
}

/* An item has memory for twice as many results, and equal chunks may have nearly as many. */
static int64_t axpy_chunk(const vector_plan *p) {
  int64_t size = p->run->gemm->geometry.element_size, most = (p->f.items > 1 ? AXPY_BYTES / 2 : AXPY_BYTES) / size;
  int64_t column = gemm_min(TASK_BYTES, p->f.k * p->f.x.size);
  int64_t wanted = TASK_BYTES / column / TS_GEMM_MAX_LANES * TS_GEMM_MAX_LANES;
  int64_t chunk = gemm_min(most, gemm_max(AXPY_BYTES / 2 / size, wanted));
  int64_t share = p->f.results * p->run->shape.batch / p->run->parallel->width / TS_GEMM_MAX_LANES * TS_GEMM_MAX_LANES;
  return gemm_min(chunk, gemm_max(AXPY_MIN_BYTES / size, share));
}

/* The rows of a task share the transposed vector. */
static int64_t thin_chunk(const vector_plan *p) {
  const bool divides = is_few_rows(p->run->gemm, &p->f) && is_large(&p->run->shape, &p->f);
  return gemm_ceil_div(p->f.results, divides ? gemm_ceil_div(p->run->parallel->width, p->run->shape.batch) : 1);
}

/* As many tasks for each thread, and several where there is work for them: one of them begins later. */
static int64_t thin_dot_chunk(const vector_plan *p) {
  const int64_t batch = p->run->shape.batch, tasks = gemm_ceil_div(p->run->parallel->width, batch);
  const int64_t share = is_large(&p->run->shape, &p->f) ? gemm_ceil_div(p->f.results, tasks) : p->f.results;
  const int64_t parts = gemm_max(1, share / gemm_max(THIN_TASK, dot_chunk(p, batch)));
  const int64_t chunk = gemm_max(THIN_UNIT, gemm_ceil_div(share, parts)), whole = gemm_round_up(chunk, THIN_UNIT);
  const bool equal = (whole - chunk) * 8 <= chunk; /* else other threads wait for those with larger tasks */
  return equal && gemm_ceil_div(p->f.results, whole) == gemm_ceil_div(p->f.results, chunk) ? whole : chunk;
}

static void plan_chunks(vector_plan *p) {
  p->chunk = gemm_max(1, p->dot ? dot_chunk(p, p->run->shape.batch) : axpy_chunk(p));
  p->chunks = gemm_max(1, p->f.results / p->chunk);
  if (is_thin_dot(p)) {
    p->chunk = thin_dot_chunk(p);
    p->chunks = gemm_max(1, (p->f.results + p->chunk - THIN_UNIT) / p->chunk); /* the last one is not short */
  }
  if (p->dot || is_by_amx(p)) return;
  if (p->thin) {
    p->chunk = thin_chunk(p);
    p->chunks = gemm_ceil_div(p->f.results, p->chunk);
    return;
  }
  p->chunk = gemm_round_up(gemm_ceil_div(p->f.results, p->chunks), TS_GEMM_MAX_LANES); /* equal ones */
  p->chunks = gemm_ceil_div(p->f.results, p->chunk);
}

static int64_t line_bytes(const vector_plan *p, int64_t results) {
  return ts_pool_padded(2 * results * p->run->gemm->geometry.element_size);
}

/* Of a worker, or of a chain that is a task. */
static int64_t bytes_of_results(const vector_plan *p, int64_t results) {
  return p->items > 1 ? p->items * TS_GEMM_ITEM_BYTES : line_bytes(p, results);
}

/* The results of all chains are in memory at once. */
static bool chains_fit(const vector_plan *p, int64_t chains) {
  const vector_form *f = &p->f;
  const int64_t batch = p->run->shape.batch, bytes = bytes_of_results(p, f->results) * chains * batch;
  return bytes <= CHAIN_BYTES && bytes <= (f->x.batch == 0 ? 1 : batch) * f->k * f->results * f->x.size;
}

/* Threads read whole rows, one behind another in memory, where each has a chain of its own. */
static int64_t count_chains(const vector_plan *p) {
  const vector_form *f = &p->f;
  const int64_t chains = gemm_ceil_div(f->k, p->run->chain), width = p->parallel->width;
  const bool fits = !p->thin && f->results > 1 && f->results * p->run->gemm->geometry.element_size <= AXPY_BYTES;
  const bool pays = width > 1 && p->run->shape.batch < width && chains * p->run->shape.batch >= 2 * width;
  return !p->dot && !is_by_amx(p) && fits && pays && chains_fit(p, chains) ? chains : 0;
}

static int64_t bytes_of_thin(const vector_plan *p) {
  const int64_t size = p->run->gemm->geometry.element_size;
  return thin_memory(is_few_rows(p->run->gemm, &p->f) ? 1 : p->f.results, size, p->f.x.size < size);
}

/* Memory for a worker's results: of one chain, of all, of what thin.h keeps, and of the chains side by side of
 * gemm_bf16.h. */
static void plan_results(vector_plan *p) {
  p->results_bytes = bytes_of_results(p, p->chunk);
  p->worker_bytes = p->dot || p->f.k <= p->run->chain ? p->results_bytes : 2 * p->results_bytes;
  p->thin_bytes = p->thin ? bytes_of_thin(p) : 0;
  p->worker_bytes += p->thin_bytes;
  if (is_by_amx(p) && !p->dot) p->worker_bytes = 3 * line_bytes(p, p->chunk) + 64 * (int64_t)sizeof(float);
}

static ts_status plan_space(vector_plan *p) {
  const vector_form *f = &p->f;
  const int64_t size = p->run->gemm->geometry.element_size, steps = gemm_ceil_div(f->k, is_by_amx(p) ? 2 : 1);
  p->packed = is_by_amx(p) || p->items > 1 || f->v.k != 1 || f->v.size < size;
  p->v_batches = f->v.batch == 0 ? 1 : p->run->shape.batch;
  plan_results(p);
  if (!p->packed) return TS_SUCCESS;
  if (!ts_mul_i64(steps, p->items * size, &p->v_bytes) || !ts_add_i64(p->v_bytes, 63, &p->v_bytes) ||
      !ts_mul_i64(p->v_bytes / 64 * 64, p->v_batches, &p->packed_bytes))
    return ts_error(TS_RESOURCE_EXHAUSTED, "matrix product needs too much packing space");
  p->v_bytes = p->v_bytes / 64 * 64;
  return TS_SUCCESS;
}

bool ts_gemm_vector_is_large(const ts_gemm *gemm, const ts_gemm_shape *shape) {
  vector_form f = as_vectors(gemm, shape, NULL, NULL);
  return is_large(shape, &f);
}

/* Rows with other elements between their neighbours are no columns of AXPY, in a short last part of a long k either. */
static bool pick_thin(const vector_plan *p) {
  const ts_gemm *gemm = p->run->gemm;
  if (p->dot || is_by_amx(p) || ts_gemm_goes_on(p->run)) return false;
  if (p->f.k < THIN_STEPS) return is_few_rows(gemm, &p->f) && p->f.results > 1;
  return is_few_rows(gemm, &p->f) || is_few_columns(gemm, &p->f);
}

static ts_status plan_make(vector_plan *p) {
  p->dot = p->run->kernel == TS_GEMM_DOT;
  for (p->items = 1; p->items < p->f.items;) p->items *= 2;
  if (is_by_amx(p)) p->items = (int)p->f.items;
  p->thin = pick_thin(p);
  plan_chunks(p);
  bool small = (p->dot && p->run->shape.batch * p->chunks == 1) || !is_large(&p->run->shape, &p->f);
  p->parallel = small ? &ts_parallel_serial : p->run->parallel;
  p->chains = count_chains(p);
  if (p->chains > 0) {
    p->chunk = p->f.results;
    p->chunks = 1;
  }
  return plan_space(p);
}

/* ---- tasks ---- */

static void pack_task(void *arg, int64_t index, int worker) {
  (void)worker;
  const vector_plan *p = arg;
  const vector_form *f = &p->f;
  int64_t blocks = gemm_ceil_div(f->k, PACK_STEPS);
  int64_t batch = index / blocks, k = index % blocks * PACK_STEPS, steps = gemm_min(PACK_STEPS, f->k - k);
  gemm_pack pack = {f->v.type, p->run->gemm->compute, f->v.unit, f->v.k, p->items, p->items, GEMM_REAL, NULL,
                    0,         TS_DTYPE_NONE};
  const int64_t before = (is_by_amx(p) ? k / 2 : k) * p->items;
  char *to = p->v_space + batch * p->v_bytes + before * p->run->gemm->geometry.element_size;
  const char *from = f->v.at + (batch * f->v.batch + k * f->v.k) * f->v.size;
  if (!is_by_amx(p))
    ts_gemm_pack(&pack, from, f->items, steps, to, 0);
  else if (ts_gemm_bf16_pack_vectors(&pack, from, f->items, steps, (uint32_t *)(void *)to))
    atomic_store_explicit(p->has_tiny, true, memory_order_relaxed);
}

/* Adds the results of a chain to the earlier results. */
static void add_results(const vector_plan *p, const char *chain, int64_t count, char *out) {
  const gemm_widen *with = ts_gemm_widen_host();
  for (int i = 0; i < p->items; i++, chain += TS_GEMM_ITEM_BYTES, out += TS_GEMM_ITEM_BYTES) {
    if (p->run->gemm->compute == TS_GEMM_F64)
      with->add_f64((const double *)(const void *)chain, count, (double *)(void *)out);
    else
      with->add_f32((const float *)(const void *)chain, count, (float *)(void *)out);
  }
}

/* The sums of up to one chain. */
static void run_chain(const vector_plan *p, int64_t *args, int64_t count, char *out) {
  const int64_t size = p->run->gemm->geometry.element_size;
  for (int i = 0; i < p->items; i++) memset(out + i * TS_GEMM_ITEM_BYTES, 0, (size_t)(count * size));
  args[TS_GEMM_OUT] = (int64_t)(intptr_t)out;
  ts_kernel_entry(p->run->gemm->kernels[TS_GEMM_AXPY])(args, 0, count, NULL);
}

/* Chain after chain: the first one in `out`, the others in `aside`. */
static void run_axpy(const vector_plan *p, int64_t *args, int64_t count, char *out, char *aside) {
  const int64_t k = args[TS_GEMM_K], size = p->run->gemm->geometry.element_size;
  for (int64_t first = 0; first < k; first += p->run->chain) {
    args[TS_GEMM_K] = gemm_min(p->run->chain, k - first);
    run_chain(p, args, count, first == 0 ? out : aside);
    if (first > 0) add_results(p, aside, count, out);
    args[TS_GEMM_LHS] += args[TS_GEMM_K] * p->items * size;
    args[TS_GEMM_RHS] += args[TS_GEMM_K] * args[TS_GEMM_RHS_STRIDE];
  }
}

static void run_by_amx(const vector_plan *p, const char *x, const char *v, int64_t count, char *out, char *aside) {
  const gemm_bf16_vectors call = {.x = x,
                                  .x_stride = (p->dot ? p->f.x.unit : p->f.x.k) * p->f.x.size,
                                  .v = (const uint32_t *)(const void *)v,
                                  .items = p->items,
                                  .k = p->f.k,
                                  .count = count,
                                  .has_tiny = atomic_load_explicit(p->has_tiny, memory_order_relaxed),
                                  .out = out};
  if (p->dot)
    ts_gemm_bf16_dot(&call);
  else
    ts_gemm_bf16_axpy(&call, (float *)(void *)aside);
}

static void run_thin(const vector_plan *p, const char *x, const char *v, int64_t count, char *out, char *memory) {
  const vector_form *f = &p->f;
  const thin_code *code = thin_code_of_host();
  const bool rows = p->dot || is_few_rows(p->run->gemm, f);
  const thin_product call = {.x = x,
                             .x_type = f->x.type,
                             .x_size = f->x.size,
                             .row = f->x.unit * f->x.size,
                             .v = v,
                             .rows = rows ? count : 1,
                             .columns = rows ? 1 : count,
                             .terms = f->k,
                             .memory = memory,
                             .out = out,
                             .crowds = p->dot && crowds_sets(f)};
  (p->run->gemm->compute == TS_GEMM_F64 ? code->f64 : code->f32)(&call);
}

/* Computes results [0, count) of the rows from `x` on. A tail below one machine vector is computed again together with
 * the rows before it. */
static void run_kernel(const vector_plan *p, const char *x, const char *v, int64_t count, char *out, char *aside) {
  const vector_form *f = &p->f;
  if (is_by_amx(p)) {
    run_by_amx(p, x, v, count, out, aside);
    return;
  }
  if (p->thin) {
    run_thin(p, x, v, count, out, aside + p->worker_bytes - p->results_bytes - p->thin_bytes);
    return;
  }
  int64_t lanes = p->run->gemm->geometry.lanes;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_K] = f->k,
                                [TS_GEMM_LHS] = (int64_t)(intptr_t)v,
                                [TS_GEMM_RHS] = (int64_t)(intptr_t)x,
                                [TS_GEMM_RHS_STRIDE] = (p->dot ? f->x.unit : f->x.k) * f->x.size,
                                [TS_GEMM_OUT] = (int64_t)(intptr_t)out,
                                [TS_GEMM_CHAIN] = p->run->chain,
                                [TS_GEMM_ITEMS] = p->items};
  if (!p->dot) {
    run_axpy(p, args, count, out, aside);
    return;
  }
  if (is_thin_dot(p)) {
    run_thin(p, x, v, count, out, NULL);
    return;
  }
  ts_kernel_fn kernel = ts_kernel_entry(p->run->gemm->kernels[TS_GEMM_DOT]);
  int64_t whole = count / lanes * lanes;
  kernel(args, 0, whole, NULL);
  if (whole < count) kernel(args, count - lanes, count, NULL);
}

/* The results of one vector, which are no neighbours in `out`. */
static void copy_apart(const vector_form *f, const gemm_run *run, const char *from, int64_t count, char *out) {
  const int64_t size = run->gemm->geometry.element_size;
  for (int64_t r = 0; r < count; r++, from += size, out += f->out_result * run->size) {
    if (run->native)
      memcpy(out, from, (size_t)size);
    else
      ts_gemm_narrow(run->gemm->types.out, from, 1, out);
  }
}

/* Copies results, item by item, to `out`, perhaps rounded to a narrower type. */
static void copy_results(const vector_form *f, const gemm_run *run, const char *from, int64_t count, char *out) {
  const int64_t size = run->size, row = f->out_result * size;
  if (f->out_item == 1 && f->items > 1) {
    if (run->native)
      ts_gemm_join_items((int)size, from, f->items, count, out, row);
    else
      ts_gemm_narrow_items(run->gemm->types.out, from, f->items, count, out, row);
    return;
  }
  for (int64_t i = 0; i < f->items; i++, from += TS_GEMM_ITEM_BYTES, out += f->out_item * size) {
    if (f->out_result != 1 && count > 1)
      copy_apart(f, run, from, count, out);
    else if (run->native)
      memcpy(out, from, (size_t)(count * size));
    else
      ts_gemm_narrow(run->gemm->types.out, from, count, out);
  }
}

/* True when tasks have parts of rows: an epilogue that takes whole rows runs after them. */
static bool has_parts(const vector_plan *p) { return p->run->shape.n > p->run->shape.m && p->chunks > 1; }

static void show_epilogue(const vector_plan *p, int64_t batch, int64_t first, int64_t count, int worker) {
  const gemm_run *run = p->run;
  const vector_form *f = &p->f;
  if (run->epilogue->whole_rows && has_parts(p)) return;
  if (run->shape.n <= run->shape.m)
    gemm_show(run, (ts_epilogue_part){batch, first, count, 0, f->items}, worker);
  else
    gemm_show(run, (ts_epilogue_part){batch, 0, f->items, first, count}, worker);
}

static const char *vectors_at(const vector_plan *p, int64_t batch) {
  const side *v = &p->f.v;
  return p->packed ? p->v_space + (v->batch == 0 ? 0 : batch) * p->v_bytes : v->at + batch * v->batch * v->size;
}

static void chain_task(void *arg, int64_t index, int worker) {
  (void)worker;
  const vector_plan *p = arg;
  const vector_form *f = &p->f;
  if (gemm_cancelled(p->run)) return;
  const int64_t batch = index / p->chains, k = index % p->chains * p->run->chain;
  const char *x = f->x.at + (batch * f->x.batch + k * f->x.k) * f->x.size;
  const char *v = vectors_at(p, batch) + k * p->items * p->run->gemm->geometry.element_size;
  int64_t args[TS_GEMM_ARGS] = {[TS_GEMM_K] = gemm_min(p->run->chain, f->k - k),
                                [TS_GEMM_LHS] = (int64_t)(intptr_t)v,
                                [TS_GEMM_RHS] = (int64_t)(intptr_t)x,
                                [TS_GEMM_RHS_STRIDE] = f->x.k * f->x.size,
                                [TS_GEMM_ITEMS] = p->items};
  run_chain(p, args, f->results, p->workers + index * p->results_bytes);
}

/* Adds the chains of a batch in order. */
static void end_chains(const vector_plan *p, int64_t batch) {
  const gemm_run *run = p->run;
  const vector_form *f = &p->f;
  char *sums = p->workers + batch * p->chains * p->results_bytes,
       *out = run->out + batch * run->shape.out_batch * run->size;
  for (int64_t c = 1; c < p->chains; c++) add_results(p, sums + c * p->results_bytes, f->results, sums);
  copy_results(f, run, sums, f->results, out);
  if (run->epilogue) show_epilogue(p, batch, 0, f->results, 0);
}

static void run_chains(const vector_plan *p) {
  ts_parallel_run(p->parallel, p->run->shape.batch * p->chains, chain_task, (void *)(uintptr_t)p);
  for (int64_t b = 0; b < p->run->shape.batch && !gemm_cancelled(p->run); b++) end_chains(p, b);
}

static void vector_task(void *arg, int64_t index, int worker) {
  const vector_plan *p = arg;
  const gemm_run *run = p->run;
  const vector_form *f = &p->f;
  if (gemm_cancelled(run)) return;
  int size = run->size;
  int64_t batch = index / p->chunks, chunk = index % p->chunks, first = chunk * p->chunk;
  int64_t count = chunk + 1 == p->chunks ? f->results - first : p->chunk;
  char *out = run->out + (batch * run->shape.out_batch + first * f->out_result) * size;
  const char *v = vectors_at(p, batch);
  const char *x = f->x.at + (batch * f->x.batch + first * f->x.unit) * f->x.size;
  bool in_place = run->native && p->items == 1 && (f->out_result == 1 || count == 1);
  char *aside = p->workers + worker * p->worker_bytes;
  run_kernel(p, x, v, count, in_place ? out : aside, aside + p->results_bytes);
  if (!in_place) copy_results(f, run, aside, count, out);
  if (run->epilogue) show_epilogue(p, batch, first, count, worker);
}

ts_status ts_gemm_run_vector(const gemm_run *run) {
  _Atomic bool has_tiny = false;
  vector_plan p = {.run = run, .has_tiny = &has_tiny, .f = as_vectors(run->gemm, &run->shape, run->lhs, run->rhs)};
  TS_TRY(plan_make(&p));
  int64_t results = p.chains > 0 ? p.results_bytes * p.chains * run->shape.batch : p.worker_bytes * p.parallel->width;
  int64_t bytes = V_MARGIN + p.packed_bytes + results;
  void *memory;
  TS_TRY(ts_pool_alloc(run->pool, bytes, &memory));
  p.v_space = (char *)memory + V_MARGIN;
  p.workers = p.v_space + p.packed_bytes;
  if (p.packed) ts_parallel_run(p.parallel, p.v_batches * gemm_ceil_div(p.f.k, PACK_STEPS), pack_task, &p);
  if (p.chains > 0)
    run_chains(&p);
  else
    ts_parallel_run(p.parallel, run->shape.batch * p.chunks, vector_task, &p);
  ts_pool_free(run->pool, memory, bytes);
  TS_TRY(ts_check_cancelled(run->cancel, "a matrix product"));
  if (run->epilogue && run->epilogue->whole_rows && has_parts(&p))
    ts_gemm_show_rows(run, 0, run->shape.batch, p.parallel);
  return TS_SUCCESS;
}
