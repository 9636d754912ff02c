/* Cuts a chain into stripes. */
#include "exec/pool.h"
#include "exec/stripes/stripes.h"
#include "jit/emit/gemm_emit.h"

#include <string.h>

/* Multiplications of a stripe of several batches: enough to amortize its start. */
#define STRIPE_PRODUCTS (INT64_C(1) << 20)
#define TASKS_PER_WORKER 4
/* Products with fewer multiplications stay on one thread: waking another costs as much. */
#define PARALLEL_MIN (768 << 10)
/* Of the rows between the products, in all: fewer bytes stay in the caches anyway. */
#define WORTH_BYTES (32 << 10)
/* Multiplications for each element of the rows. */
#define MOST_PRODUCTS 512
/* Of the rows, so that all numbers of multiplications and bytes fit 64 bits. No memory has as much. */
#define MOST_BYTES 1e15
/* Fewer rows do not pay for the packing of a long right side in one piece. */
#define FEW_ROWS 32

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t round_up(int64_t a, int64_t unit) { return ceil_div(a, unit) * unit; }

/* ---- whether there are stripes ---- */

static int64_t batches_of(const ts_stripes_product *p) { return p->outer.count * p->shape.batch; }

/* The rows of the first product are those of the lhs of the second one, which it reads in their order. */
static bool are_rows(const ts_stripes_product *first, const ts_stripes_product *second) {
  const ts_gemm_shape *a = &first->shape, *b = &second->shape;
  const int64_t batch = b->m * b->k;
  return batches_of(first) == batches_of(second) && a->m == b->m && a->n == b->k && b->lhs_col == 1 &&
         b->lhs_row == b->k && (b->batch == 1 || b->lhs_batch == batch) &&
         (second->outer.count == 1 || second->outer.lhs == b->batch * batch);
}

static bool has_some(const ts_stripes_product *p) {
  const ts_gemm_shape *s = &p->shape;
  return batches_of(p) > 0 && s->m > 0 && s->n > 0 && s->k > 0 && ts_gemm_has_some(&p->types, s);
}

static ts_gemm_compute compute_of(ts_dtype type) {
  ts_gemm_compute compute;
  (void)ts_gemm_is_native(type, &compute);
  return compute;
}

static bool are_products(const ts_graph *g, const ts_chain *chain, ts_stripes *s) {
  ts_stripes_product *a = &s->first, *b = &s->second;
  if (!ts_gemm_describe(g, ts_graph_op(g, chain->first), &a->types, &a->shape, &a->outer)) return false;
  if (!ts_gemm_describe(g, ts_graph_op(g, chain->second), &b->types, &b->shape, &b->outer)) return false;
  s->batch = batches_of(a);
  return are_rows(a, b) && has_some(a) && has_some(b) && compute_of(a->types.out) == compute_of(b->types.out);
}

/* What the rows save is their way to memory and back, for each (k + n) multiplications of an element: more of these
 * take so long that it does not count. The right sides are read for each stripe. With a few rows all threads share
 * them. */
static bool is_worth_it(const ts_stripes *s) {
  const ts_gemm_shape *a = &s->first.shape, *b = &s->second.shape;
  const int64_t row = a->n * (int64_t)ts_dtype_size(s->first.types.out), wide = a->k + b->n;
  const bool is_long = row * a->k > ts_target_host()->l2_bytes / 4; /* the right side, beside the rows */
  if ((double)s->batch * (double)a->m * (double)(row + 64) > MOST_BYTES) return false;
  return a->m > (is_long ? FEW_ROWS : TS_GEMM_MAX_ITEMS) && wide <= MOST_PRODUCTS &&
         s->batch * a->m >= ceil_div(WORTH_BYTES, row) && wide <= 4 * ts_target_host()->l2_bytes / row;
}

bool ts_stripes_fit(const ts_graph *graph, const ts_chain *chain) {
  ts_stripes s = {.parts = 0};
  return are_products(graph, chain, &s) && is_worth_it(&s);
}

static bool is_launch(const ts_stripes_request *r, const ts_stripes *s, const ts_launch *launch) {
  const ts_epilogue_space space = {.batch = s->batch, .rows = s->first.shape.m, .cols = s->first.shape.n};
  const ts_kernel_desc *d = &launch->desc;
  uint32_t reads[64];
  size_t count = 0;
  for (uint32_t i = 0; i < 64; i++)
    if (r->chain->reads >> i & 1) reads[count++] = i;
  return (d->kind == TS_KERNEL_MAP || (d->kind == TS_KERNEL_ROW && d->members == 0)) &&
         ts_epilogue_fits(&space, launch, reads, count) && ts_launch_fills(launch, 0);
}

static bool is_kernel(const ts_stripes_request *r, const ts_stripes *s) {
  const ts_lowered *lowered = &r->work->lowered;
  const ts_step_launch *l = r->work->launches;
  if (lowered->launch_count != 1 || lowered->temp_count > 0) return false;
  return is_launch(r, s, l->launch) && (!l->own || is_launch(r, s, &l->own->launch));
}

/* ---- the result ---- */

static ts_stripes_result in_order(const ts_stripes *s) {
  const ts_gemm_shape *b = &s->second.shape;
  return (ts_stripes_result){s->batch, b->m * b->n, 0, b->n};
}

/* One dim of the move, in elements: where its indices are in the product, and in the result. */
typedef struct moved_dim {
  int64_t extent, from, to;
} moved_dim;

/* Finds the dim whose indices are `from` apart; without one there is a single index. False for part of what counts. */
static bool take_dim(const moved_dim *dims, int32_t rank, int64_t from, int64_t extent, int64_t *out_to) {
  *out_to = 0;
  for (int32_t i = 0; i < rank; i++) {
    if (dims[i].from != from || dims[i].extent == 1) continue;
    *out_to = dims[i].to;
    return dims[i].extent == extent;
  }
  return extent == 1;
}

/* The extent of the dim whose indices are `from` apart; 1 without one. */
static int64_t extent_at(const moved_dim *dims, int32_t rank, int64_t from) {
  for (int32_t i = 0; i < rank; i++)
    if (dims[i].from == from && dims[i].extent > 1) return dims[i].extent;
  return 1;
}

/* The rows of the product stay whole, and their batches are two dims at most. */
static bool has_place(const ts_stripes *s, const moved_dim *dims, int32_t rank, ts_stripes_result *out) {
  const ts_gemm_shape *b = &s->second.shape;
  const int64_t batch = b->m * b->n;
  int64_t col;
  out->inner = extent_at(dims, rank, batch);
  return take_dim(dims, rank, 1, b->n, &col) && (col == 1 || b->n == 1) &&
         take_dim(dims, rank, b->n, b->m, &out->row) && s->batch % out->inner == 0 &&
         take_dim(dims, rank, batch, out->inner, &out->inner_stride) &&
         take_dim(dims, rank, batch * out->inner, s->batch / out->inner, &out->outer_stride);
}

/* A launch that only copies, each element once. */
static bool is_copy(const ts_lowered *lowered) {
  const ts_launch *l = lowered->launches;
  if (lowered->launch_count != 1 || lowered->temp_count > 0) return false;
  const ts_kernel_desc *d = &l->desc;
  return d->kind == TS_KERNEL_MAP && d->input_count == 1 && d->output_count == 1 && d->index_count == 0 &&
         d->node_count == 1 && d->nodes[0].kind == TS_NODE_LOAD && l->pointers[0].offset == 0 &&
         l->pointers[0].term_count == 0 && l->pointers[1].offset == 0 && l->pointers[1].term_count == 0;
}

/* If the chain's move only puts rows elsewhere, the second product writes them there. */
static ts_status find_place(const ts_stripes_request *r, ts_stripes *s) {
  const int64_t size = (int64_t)ts_dtype_size(s->second.types.out);
  moved_dim dims[TS_KERNEL_MAX_RANK];
  ts_lowered lowered;
  ts_stripes_result place;
  s->result = in_order(s);
  if (r->chain->move == TS_NO_ID) return TS_SUCCESS;
  ts_status status = ts_lower_op(r->graph, r->chain->move, r->arena, NULL, &lowered);
  if (ts_status_code(status) == TS_UNIMPLEMENTED) {
    ts_status_free(status);
    return TS_SUCCESS;
  }
  TS_TRY(status);
  if (!is_copy(&lowered) || lowered.launches[0].points != s->batch * s->second.shape.m * s->second.shape.n)
    return TS_SUCCESS;
  const ts_launch *l = lowered.launches;
  for (int32_t d = 0; d < l->desc.rank; d++)
    dims[d] = (moved_dim){l->args[d], l->args[ts_kernel_arg_operand(&l->desc, 0) + 1 + d] / size,
                          l->args[ts_kernel_arg_operand(&l->desc, 1) + 1 + d] / size};
  s->moves = has_place(s, dims, l->desc.rank, &place);
  if (s->moves) s->result = place;
  return TS_SUCCESS;
}

/* ---- the rows of a stripe ---- */

/* True when the launch may write over each operand that is the product. */
static bool writes_over(const ts_stripes_request *r) {
  const bool *inplace = r->work->lowered.inplace;
  bool all = inplace;
  for (uint32_t i = 0; i < 64 && all; i++) all = !(r->chain->reads >> i & 1) || inplace[i];
  return all;
}

/* Rows begin at cache lines, and those of a tile are not a power of two apart: they would share a few sets of the first
 * cache. A launch that knows no rows, or rows of other lengths, has them one behind the other. */
static int64_t pitch_of(const ts_launch *launch, int64_t cols, ts_dtype type) {
  const int64_t size = (int64_t)ts_dtype_size(type), bytes = round_up(cols * size, 64);
  if (launch->desc.rank < 2 || launch->args[launch->desc.rank - 1] != cols) return cols * size;
  return bytes % 512 == 0 ? bytes + 64 : bytes;
}

/* Changes the distances of rows in the launch's words. */
static void set_pitch(const ts_launch *launch, int32_t operand, int64_t row_bytes, int64_t pitch, int64_t *words) {
  int64_t *strides = words + ts_kernel_arg_operand(&launch->desc, operand) + 1;
  for (int32_t d = 0; d < launch->desc.rank - 1 && pitch != row_bytes; d++) strides[d] = strides[d] / row_bytes * pitch;
}

static ts_status make_words(const ts_stripes_request *r, ts_stripes *s) {
  const ts_launch *launch = r->work->launches->launch;
  const int64_t cols = s->first.shape.n;
  const size_t count = (size_t)ts_kernel_arg_count(&launch->desc);
  int64_t *words;
  int32_t *reads;
  TS_TRY(TS_ARENA_ARRAY(r->arena, count, &words));
  TS_TRY(TS_ARENA_ARRAY(r->arena, (size_t)launch->pointer_count, &reads));
  memcpy(words, launch->args, count * sizeof(*words));
  for (int32_t i = 0; i < launch->pointer_count; i++) {
    const ts_launch_pointer *p = &launch->pointers[i];
    const bool is_read = p->role == TS_ROLE_OPERAND && p->index < 64 && r->chain->reads >> p->index & 1;
    if (is_read) {
      set_pitch(launch, i, cols * (int64_t)ts_dtype_size(s->first.types.out), s->pitch, words);
      reads[s->read_count++] = p->word;
    } else if (p->role == TS_ROLE_RESULT) {
      set_pitch(launch, i, cols * (int64_t)ts_dtype_size(s->second.types.lhs), s->out_pitch, words);
      s->write = p->word;
    }
  }
  s->words = words;
  s->reads = reads;
  return TS_SUCCESS;
}

/* A quarter of the second cache has the rows of a stripe, in whole tiles. All stripes read the right sides: with too
 * few rows that would take more traffic than the stripes save. */
static int64_t most_rows(const ts_stripes *s, int64_t tile) {
  const int64_t row = s->pitch + (s->in_place ? 0 : s->out_pitch);
  const int64_t threads = ts_cpu_count(), rows = s->batch * s->first.shape.m;
  int64_t most = ts_target_host()->l2_bytes / 4 / row;
  most = max_of(most, (s->first.shape.k + s->second.shape.n) / 3);
  if (threads > 1) most = min_of(most, ceil_div(rows, TASKS_PER_WORKER * threads));
  return max_of(most / tile, 1) * tile;
}

/* True when the batches of a stripe are equally far from each other, in all operands and the result. */
static bool are_strided(const ts_stripes *s) {
  const int64_t counts[] = {s->first.outer.count == 1 ? s->batch : s->first.shape.batch,
                            s->second.outer.count == 1 ? s->batch : s->second.shape.batch, s->result.inner};
  bool all = true;
  for (int i = 0; i < 3; i++) all = all && (counts[i] >= s->batch || counts[i] % s->batches == 0);
  return all;
}

static void cut(ts_stripes *s) {
  const ts_gemm_shape *a = &s->first.shape, *b = &s->second.shape;
  const int64_t tile = ts_gemm_some_rows(s->first.gemm), most = most_rows(s, tile), threads = ts_cpu_count();
  const int64_t products = a->m * a->n * (a->k + b->n);
  const int64_t wanted = ceil_div(TASKS_PER_WORKER * threads, s->batch);
  s->parts = s->batches = 1;
  if (a->m <= most) {
    s->rows = a->m;
    s->batches = min_of(max_of(1, STRIPE_PRODUCTS / products), max_of(1, most / a->m));
    s->batches = min_of(s->batches, max_of(1, s->batch / (TASKS_PER_WORKER * threads)));
    while (!are_strided(s)) s->batches--;
  } else {
    const int64_t stripes = ceil_div(a->m, most);
    s->rows = round_up(ceil_div(a->m, stripes), tile);
    s->parts = min_of(stripes, threads > 1 ? wanted : 1);
  }
}

static bool is_dense(const ts_gemm_shape *s) { return s->rhs_col == 1 && s->rhs_row == s->n; }

/* Rows of rhs one behind the other are read where they lie. */
static void plan_columns(const ts_stripes *s, ts_stripes_product *p) {
  const bool several = s->rows < p->shape.m, packs = ts_gemm_some_packs(p->gemm, &p->shape) || !is_dense(&p->shape);
  if (packs && s->batches == 1 && (several || p->shape.m > 2 * ts_gemm_some_rows(p->gemm)))
    p->columns = ts_gemm_columns_bytes(p->gemm, &p->shape);
}

void ts_stripes_memory(const ts_stripes *s, int64_t out[TS_STRIPES_PARTS]) {
  const int64_t words = ts_kernel_arg_count(&s->work->launches->launch->desc), rows = s->batches * s->rows;
  out[TS_STRIPES_WORDS] = words * (int64_t)sizeof(int64_t);
  out[TS_STRIPES_FIRST] = s->first.columns;
  out[TS_STRIPES_SECOND] = s->second.columns;
  out[TS_STRIPES_PRODUCT] = rows * s->pitch;
  out[TS_STRIPES_ROWS] = s->in_place ? 0 : rows * s->out_pitch;
  out[TS_STRIPES_SCRATCH] = s->work->scratch_bytes;
  for (int i = 0; i < TS_STRIPES_PARTS; i++) out[i] = ts_pool_padded(out[i]);
}

static void plan_memory(ts_stripes *s) {
  int64_t bytes[TS_STRIPES_PARTS];
  ts_stripes_memory(s, bytes);
  for (int i = 0; i < TS_STRIPES_PARTS; i++) s->worker_bytes += bytes[i];
}

/* ---- the plan ---- */

/* The rows between the products: where the first product writes them, and the second one reads them. */
static void place_rows(ts_stripes *s) {
  ts_gemm_shape *a = &s->first.shape, *b = &s->second.shape;
  b->out_row = s->result.row;
  b->out_batch = s->result.inner_stride;
  a->out_row = s->pitch / (int64_t)ts_dtype_size(s->first.types.out);
  a->out_batch = a->m * a->out_row;
  b->lhs_row = s->out_pitch / (int64_t)ts_dtype_size(s->second.types.lhs);
  b->lhs_batch = b->m * b->lhs_row;
}

static int64_t cost_of(const ts_stripes_product *p) {
  ts_gemm_shape whole = p->shape;
  whole.batch *= p->outer.count;
  return ts_gemm_cost(p->types.out, &whole);
}

static ts_status make(const ts_stripes_request *r, const ts_stripes *found, ts_routine_plan *out) {
  const ts_launch *launch = r->work->launches->launch;
  ts_kernel_source same;
  ts_stripes *s;
  TS_TRY(TS_ARENA_ARRAY(r->arena, 1, &s));
  *s = *found;
  out->state = s;
  TS_TRY(ts_gemm_prepare_some(&s->first.types, &s->first.gemm, &s->source));
  TS_TRY(ts_gemm_prepare_some(&s->second.types, &s->second.gemm, &same));
  s->work = r->work;
  s->operands_read = r->chain->reads;
  s->in_place = writes_over(r);
  s->pitch = pitch_of(launch, s->first.shape.n, s->first.types.out);
  s->out_pitch = pitch_of(launch, s->first.shape.n, s->second.types.lhs);
  s->rhs = TS_STRIPES_KERNEL_OPERANDS + ts_graph_op(r->graph, r->chain->kernel)->operand_count;
  TS_TRY(make_words(r, s));
  TS_TRY(find_place(r, s));
  cut(s);
  plan_columns(s, &s->first);
  plan_columns(s, &s->second);
  place_rows(s);
  plan_memory(s);
  const ts_gemm_shape *b = &s->second.shape;
  const double products = (double)s->batch * (double)b->m * (double)b->k * (double)(b->n + s->first.shape.k);
  s->space = (ts_epilogue_space){s->batch, b->m, b->n, .is_parallel = products >= PARALLEL_MIN};
  out->kernel = &s->source;
  out->epilogue = s->moves ? NULL : &s->space;
  out->cost_ns = ts_cost_add(ts_cost_add(cost_of(&s->first), r->work->cost_ns), cost_of(&s->second));
  return TS_SUCCESS;
}

ts_status ts_stripes_plan(const ts_stripes_request *request, ts_routine_plan *out) {
  ts_stripes found = {.parts = 0};
  if (!are_products(request->graph, request->chain, &found)) return TS_SUCCESS;
  return is_kernel(request, &found) ? make(request, &found, out) : TS_SUCCESS;
}
