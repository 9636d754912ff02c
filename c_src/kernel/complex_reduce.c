/* Products of complex numbers over axes: a kernel has one accumulator for each lane, and these need two. The tree is
 * defined by tensor/reduce_tree.h. A unit of work is one block of a panel; a panel is neighbouring results along the
 * last kept dim. each result has its own accumulators, so panels and tasks change no bit. */
#include "base/cancel.h"
#include "ir/combiner.h"
#include "kernel/routine.h"
#include "tensor/reduce_tree.h"

#define LANES TS_REDUCE_LANES
#define BLOCK TS_REDUCE_BLOCK
/* Results of a panel. */
#define WIDTH 8
/* Elements of one task, at least. */
#define TASK_ELEMENTS 32768

/* Dims with their strides in elements; neighbours are joined if they are one dim in memory. The last one exists. */
typedef struct walk {
  int32_t rank;
  int64_t dims[TS_MAX_RANK], strides[TS_MAX_RANK];
} walk;

/* A level of the tree: each block of `n` elements becomes one, at result * blocks + block. */
typedef struct level {
  const void *in;
  void *out;
  walk kept, reduced;
  int64_t results, n, blocks;
} level;

typedef struct reduce_state {
  ts_dtype type;
  level first;    /* its `in` and `out` belong to a run */
  int64_t second; /* bytes of the workspace before the results of the second level */
} reduce_state;

typedef struct reduce_run {
  const level *l;
  void (*block)(const level *l, int64_t panel, int64_t block);
  int64_t panels, units, per_task;
  const _Atomic bool *cancel;
} reduce_run;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static int64_t count_blocks(int64_t n) { return n > BLOCK ? ceil_div(n, BLOCK) : 1; }
static int64_t panels_of(const walk *w) { return ceil_div(w->dims[w->rank - 1], WIDTH); }

/* ---- walks ---- */

static void add_dim(walk *w, int64_t dim, int64_t stride) {
  const int32_t last = w->rank - 1;
  if (dim == 1) return;
  if (last >= 0 && w->strides[last] == dim * stride) {
    w->dims[last] *= dim;
    w->strides[last] = stride;
    return;
  }
  w->dims[w->rank] = dim;
  w->strides[w->rank++] = stride;
}

static void end_walk(walk *w) {
  if (w->rank > 0) return;
  w->rank = 1;
  w->dims[0] = 1;
}

/* Sets `at` to the index of element k, and returns the offset of that element. */
static int64_t find(const walk *w, int32_t rank, int64_t k, int64_t *at) {
  int64_t offset = 0;
  for (int32_t d = rank - 1; d >= 0; d--) {
    at[d] = k % w->dims[d];
    offset += at[d] * w->strides[d];
    k /= w->dims[d];
  }
  return offset;
}

/* From the last element of a line along the last dim to the first of the next line: by how much the offset of the
 * line's beginning changes. */
static int64_t next_line(const walk *w, int64_t *at) {
  int64_t change = 0;
  for (int32_t d = w->rank - 2; d >= 0; d--) {
    if (++at[d] < w->dims[d]) return change + w->strides[d];
    change -= (w->dims[d] - 1) * w->strides[d];
    at[d] = 0;
  }
  return change;
}

/* ---- one block of a panel ---- */

typedef struct panel {
  int64_t result, width, offset, stride; /* stride: from one result's elements to the next one's */
} panel;

static panel find_panel(const level *l, int64_t which) {
  const walk *kept = &l->kept;
  const int32_t last = kept->rank - 1;
  const int64_t dim = kept->dims[last], outer = which / panels_of(kept), start = which % panels_of(kept) * WIDTH;
  int64_t at[TS_MAX_RANK];
  return (panel){.result = outer * dim + start,
                 .width = least(WIDTH, dim - start),
                 .offset = find(kept, last, outer, at) + start * kept->strides[last],
                 .stride = kept->strides[last]};
}

/* Lanes without an element hold the identity, and of two such lanes the product is the identity. */
#define DEFINE_BLOCK(NAME, P)                                                                       \
  typedef struct lanes_##NAME {                                                                     \
    P re[LANES][WIDTH], im[LANES][WIDTH];                                                           \
  } lanes_##NAME;                                                                                   \
  static void times_##NAME(P *re, P *im, P x, P y) {                                                \
    const P a = *re, b = *im;                                                                       \
    *re = a * x - b * y;                                                                            \
    *im = a * y + b * x;                                                                            \
  }                                                                                                 \
  static void fold_##NAME(lanes_##NAME *acc, int64_t lanes, int64_t width) {                        \
    for (int64_t half = LANES / 2; half > 0; half /= 2)                                             \
      for (int64_t l = 0; l < least(half, lanes); l++)                                              \
        for (int64_t w = 0; w < width; w++)                                                         \
          times_##NAME(&acc->re[l][w], &acc->im[l][w], acc->re[l + half][w], acc->im[l + half][w]); \
  }                                                                                                 \
  static void block_##NAME(const level *l, int64_t which, int64_t block) {                          \
    const walk *reduced = &l->reduced;                                                              \
    const int32_t last = reduced->rank - 1;                                                         \
    const panel p = find_panel(l, which);                                                           \
    const int64_t count = least(BLOCK, l->n - block * BLOCK), step = 2 * reduced->strides[last];    \
    lanes_##NAME acc;                                                                               \
    int64_t at[TS_MAX_RANK];                                                                        \
    for (int i = 0; i < LANES; i++)                                                                 \
      for (int w = 0; w < WIDTH; w++) acc.re[i][w] = 1, acc.im[i][w] = 0;                           \
    const P *x = (const P *)l->in + 2 * p.offset;                                                   \
    if (count > 0) x += 2 * find(reduced, reduced->rank, block * BLOCK, at);                        \
    for (int64_t k = 0; k < count;) {                                                               \
      const int64_t line = least(count - k, reduced->dims[last] - at[last]);                        \
      for (int64_t i = 0; i < line; i++, k++)                                                       \
        for (int64_t w = 0; w < p.width; w++) {                                                     \
          const P *z = x + i * step + 2 * w * p.stride;                                             \
          times_##NAME(&acc.re[k % LANES][w], &acc.im[k % LANES][w], z[0], z[1]);                   \
        }                                                                                           \
      if (k < count) x += 2 * (next_line(reduced, at) - at[last] * reduced->strides[last]);         \
      at[last] = 0;                                                                                 \
    }                                                                                               \
    fold_##NAME(&acc, count, p.width);                                                              \
    for (int64_t w = 0; w < p.width; w++) {                                                         \
      P *to = (P *)l->out + 2 * ((p.result + w) * l->blocks + block);                               \
      to[0] = acc.re[0][w], to[1] = acc.im[0][w];                                                   \
    }                                                                                               \
  }

DEFINE_BLOCK(c64, float)
DEFINE_BLOCK(c128, double)

/* ---- runs ---- */

static void reduce_task(void *arg, int64_t task, int worker) {
  const reduce_run *r = arg;
  (void)worker;
  for (int64_t u = task * r->per_task; u < least(r->units, (task + 1) * r->per_task); u++) {
    if (ts_cancelled(r->cancel)) return;
    r->block(r->l, u / r->l->blocks, u % r->l->blocks);
  }
}

static void run_level(const level *l, ts_dtype type, const ts_routine_run *run) {
  const int64_t dim = l->kept.dims[l->kept.rank - 1];
  const int64_t elements = (l->n < BLOCK ? l->n : BLOCK) * least(dim, WIDTH);
  reduce_run r = {.l = l, .block = type == TS_C64 ? block_c64 : block_c128, .cancel = run->cancel};
  r.units = l->results / dim * panels_of(&l->kept) * l->blocks;
  r.per_task = elements < TASK_ELEMENTS ? TASK_ELEMENTS / (elements + 1) + 1 : 1;
  ts_parallel_run(run->parallel, ceil_div(r.units, r.per_task), reduce_task, &r);
}

static ts_status reduce_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const reduce_state *s = plan->state;
  void *const parts[2] = {run->workspace, run->workspace + s->second}, *const out = ts_routine_result(run, 0);
  level l = s->first;
  l.in = ts_routine_operand(run, 0);
  for (int i = 0; l.results > 0; i = !i) {
    l.out = l.blocks > 1 ? parts[i] : out;
    run_level(&l, s->type, run);
    if (l.blocks == 1) break;
    l = (level){.in = l.out, .results = l.results, .n = l.blocks, .blocks = count_blocks(l.blocks)};
    l.kept = (walk){.rank = 1, .dims = {l.results}, .strides = {l.n}};
    l.reduced = (walk){.rank = 1, .dims = {l.n}, .strides = {1}};
  }
  return ts_check_cancelled(run->cancel, "reduce_product");
}

static void set_dims(const ts_shape *shape, const ts_dims *axes, level *out) {
  int64_t strides[TS_MAX_RANK];
  const uint64_t goes = ts_dims_mask(axes);
  ts_shape_strides(shape, strides);
  out->results = out->n = 1;
  for (int32_t d = 0; d < shape->rank; d++) {
    const bool reduced = goes >> d & 1;
    add_dim(reduced ? &out->reduced : &out->kept, shape->dims[d], strides[d]);
    *(reduced ? &out->n : &out->results) *= shape->dims[d];
  }
  end_walk(&out->kept);
  end_walk(&out->reduced);
  out->blocks = count_blocks(out->n);
}

static ts_status reduce_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *x = ts_graph_value(request->graph, op->operands[0]);
  const int64_t size = (int64_t)ts_dtype_size(x->dtype);
  reduce_state *s;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (reduce_state){.type = x->dtype};
  set_dims(x->shape, &op->attrs->axes, &s->first);
  out->state = s;
  out->cost_ns = 100 + 4 * s->first.results + 2 * ts_shape_elements(x->shape);
  if (s->first.blocks == 1) return TS_SUCCESS;
  /* fewer than the operand has elements */
  s->second = ceil_div(s->first.results * s->first.blocks * size, 64) * 64;
  out->workspace = s->second + s->first.results * count_blocks(s->first.blocks) * size;
  return TS_SUCCESS;
}

const ts_routine ts_complex_reduce_routine = {"complex reduce", reduce_plan, NULL, reduce_run_op, NULL};
