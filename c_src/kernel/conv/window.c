/* Plans of windows, and folds over them. A tap is an element position of a window. Dims that no window spans are merged
 * with their neighbours. Dims after the last dim with windows are `inner` elements, in the lanes of vectors; without
 * them, neighbouring windows are in the lanes. Each window is folded in its own order, so the number of threads or
 * lanes changes no bit. */
#include "kernel/conv/window_internal.h"

#include "jit/session/target.h"
#include "kernel/inline.h"

#include <string.h>

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* ---- folds */

/* Windows [first, end) of a row whose elements are neighbours. */
static void fold_line(const window_state *s, ts_window_taps *taps, int64_t first, int64_t end, char *out) {
  for (int64_t o = first; o < end;) {
    bool inside = is_interior(s, o);
    int64_t count = inside ? min_of(end, s->interior_end) - o : 1;
    ts_window_set_taps(s, o, taps);
    s->fold(taps, s->last.stride, count, out + o * s->size);
    o += count;
  }
}

/* Inner elements between two checks: whole cache lines. */
static int64_t inner_step(const window_state *s) { return (CHECK_ELEMENTS / (s->taps + 1) + 64) / 64 * 64; }

/* Windows whose elements are neighbours: of interior windows one element apart these are the elements of all. */
static void fold_points(const window_run *run, ts_window_taps *taps, int64_t first, int64_t end, char *out) {
  const window_state *s = run->s;
  const int64_t step = inner_step(s);
  for (int64_t o = first, count; o < end; o += count) {
    count = s->last.stride == 1 && is_interior(s, o) ? min_of(end, s->interior_end) - o : 1;
    ts_window_set_taps(s, o, taps);
    const int64_t elements = count * s->inner;
    for (int64_t i = 0; i < elements && !ts_cancelled(run->cancel); i += step, taps->offset += step * s->size)
      s->fold(taps, 1, min_of(step, elements - i), out + (o * s->inner + i) * s->size);
  }
}

static void fold_windows(const window_run *run, ts_window_taps *taps, int64_t first, int64_t end, char *out) {
  if (run->s->inner == 1)
    fold_line(run->s, taps, first, end, out);
  else
    fold_points(run, taps, first, end, out);
}

/* ---- blocks of short windows
 *
 * A call for one window, or one row, of few elements leaves most lanes empty. So a block of windows is folded as one
 * line, which has the elements between the windows as well, and those of the windows are copied to the result. */

#define BLOCK_BYTES 8192

/* `rows` rows of `windows` windows each. */
typedef struct window_block {
  int64_t rows, windows;
} window_block;

/* Elements between the first elements of two rows of a block. */
static int64_t row_distance(const window_state *s) {
  return s->rank > 0 ? s->outer[s->rank - 1].stride * s->outer[s->rank - 1].step / s->size : 0;
}

/* From the first element of `windows` windows to the last, all of them included. */
static int64_t line_elements(const window_state *s, int64_t windows) {
  return ((windows - 1) * s->last.stride + 1) * s->inner;
}

#define DEFINE_COPY(BITS, T)                                                                               \
  INLINE void copy_by##BITS(const window_state *s, const T *from, int64_t windows, T *to, int64_t inner) { \
    const int64_t step = s->last.stride * s->inner;                                                        \
    for (int64_t o = 0; o < windows; o++)                                                                  \
      for (int64_t i = 0; i < inner; i++) to[o * inner + i] = from[o * step + i];                          \
  }                                                                                                        \
  static void copy##BITS(const window_state *s, const void *from, int64_t windows, void *to) {             \
    switch (s->inner) { /* loops of a few known steps have no branches */                                  \
    case 1: copy_by##BITS(s, from, windows, to, 1); break;                                                 \
    case 2: copy_by##BITS(s, from, windows, to, 2); break;                                                 \
    case 3: copy_by##BITS(s, from, windows, to, 3); break;                                                 \
    case 4: copy_by##BITS(s, from, windows, to, 4); break;                                                 \
    default: copy_by##BITS(s, from, windows, to, s->inner);                                                \
    }                                                                                                      \
  }
DEFINE_COPY(8, uint8_t)
DEFINE_COPY(16, uint16_t)
DEFINE_COPY(32, uint32_t)
DEFINE_COPY(64, uint64_t)

static void copy_windows(const window_state *s, const char *from, int64_t windows, char *to) {
  if (s->last.stride == 1)
    memcpy(to, from, (size_t)(windows * s->inner * s->size));
  else if (s->size == 1)
    copy8(s, from, windows, to);
  else if (s->size == 2)
    copy16(s, from, windows, to);
  else if (s->size == 4)
    copy32(s, from, windows, to);
  else
    copy64(s, from, windows, to);
}

/* Whole vectors, where the operand has the elements after the last window that they read. */
static int64_t whole_vectors(const window_run *run, const ts_window_taps *taps, int64_t elements) {
  const window_state *s = run->s;
  const int64_t lanes = 64 / s->size, more = (lanes - elements % lanes) % lanes;
  const char *last = taps->rows[taps->row_count - 1] + taps->offset + (taps->steps - 1) * taps->step;
  return (last - run->in) / s->size + elements + more <= s->elements ? elements + more : elements;
}

static void fold_block(const window_run *run, const ts_window_taps *taps, const window_block *block, char *out) {
  const window_state *s = run->s;
  _Alignas(64) char line[BLOCK_BYTES];
  const int64_t distance = row_distance(s), row_bytes = s->last.out * s->inner * s->size;
  const int64_t elements = (block->rows - 1) * distance + line_elements(s, block->windows);
  s->fold(taps, 1, taps->row_count > 0 ? whole_vectors(run, taps, elements) : elements, line);
  for (int64_t r = 0; r < block->rows; r++)
    copy_windows(s, line + r * distance * s->size, block->windows, out + r * row_bytes);
}

/* The interior windows of [first, end), in `rows` rows. */
static void fold_blocks(const window_run *run, ts_window_taps *taps, const window_block *all, int64_t first,
                        char *out) {
  const window_state *s = run->s;
  for (int64_t o = 0; o < all->windows && !ts_cancelled(run->cancel); o += s->block_windows) {
    const window_block block = {all->rows, min_of(s->block_windows, all->windows - o)};
    ts_window_set_taps(s, first + o, taps);
    fold_block(run, taps, &block, out + (first + o) * s->inner * s->size);
  }
}

/* Windows [first, end) of rows [row, row_end). */
typedef struct window_part {
  int64_t row, row_end, first, end;
} window_part;

static ts_window_taps taps_of_row(const window_run *run, int64_t row, const char **rows) {
  return (ts_window_taps){.rows = rows, .row_count = ts_window_find_rows(run->s, row, run->in, rows)};
}

static char *row_out(const window_run *run, int64_t row) {
  return run->out + row * run->s->last.out * run->s->inner * run->s->size;
}

/* Rows from `row` on whose taps have the same distances from their first element. */
static int64_t rows_of_block(const window_state *s, int64_t row, int64_t row_end) {
  if (s->block_rows <= 1) return 1;
  const int64_t o = row % s->outer[s->rank - 1].out;
  if (o < s->row_interior || o >= s->row_interior_end) return 1;
  return min_of(min_of(s->block_rows, s->row_interior_end - o), row_end - row);
}

/* The windows of a part by blocks, and those at the edges of rows one by one. */
static void fold_part_by_blocks(const window_run *run, const window_part *part, const char **rows) {
  const window_state *s = run->s;
  const int64_t first = clamp(s->interior, part->first, part->end), end = clamp(s->interior_end, first, part->end);
  for (int64_t row = part->row, count; row < part->row_end && !ts_cancelled(run->cancel); row += count) {
    count = rows_of_block(s, row, part->row_end);
    ts_window_taps taps = taps_of_row(run, row, rows);
    fold_blocks(run, &taps, &(window_block){count, end - first}, first, row_out(run, row));
    for (int64_t r = row; (part->first < first || end < part->end) && r < row + count; r++) {
      taps = taps_of_row(run, r, rows);
      fold_windows(run, &taps, part->first, first, row_out(run, r));
      fold_windows(run, &taps, end, part->end, row_out(run, r));
    }
  }
}

static void fold_part(const window_run *run, const window_part *part, int worker) {
  const window_state *s = run->s;
  const char **rows = worker_rows(run, worker);
  if (s->block_windows > 0) {
    fold_part_by_blocks(run, part, rows);
    return;
  }
  for (int64_t row = part->row; row < part->row_end && !ts_cancelled(run->cancel); row++) {
    ts_window_taps taps = taps_of_row(run, row, rows);
    taps.streams = run->streams;
    fold_windows(run, &taps, part->first, part->end, row_out(run, row));
  }
  /* Streaming stores are not ordered with the stores that publish the results to other threads. */
  if (run->streams) atomic_thread_fence(memory_order_seq_cst);
}

static void fold_task(void *arg, int64_t task, int worker) {
  const window_run *run = arg;
  const window_state *s = run->s;
  int64_t row = task / run->last_tasks * run->row_step, first = task % run->last_tasks * run->last_step;
  window_part part = {.row = row, .row_end = min_of(s->rows, row + run->row_step), .first = first};
  part.end = min_of(s->last.out, first + run->last_step);
  fold_part(run, &part, worker);
}

/* Stores bypass the caches if operand and result are larger than this: lines need not be read before they are
 * written. */
#define STREAM_BYTES (INT64_C(24) << 20)

static bool may_stream(const window_run *run) {
  const window_state *s = run->s;
  int64_t results = s->rows * s->last.out * s->inner;
  bool lines = s->inner * s->size % 64 == 0 && (uintptr_t)run->out % 64 == 0;
  return lines && (s->elements + results) * s->size >= STREAM_BYTES;
}

/* One task at most, as the division below would find. */
static bool is_small(const window_state *s) {
  return s->rows <= 1024 && s->last.out <= 1024 && s->inner <= 1024 && s->taps <= 1024 &&
         s->rows * s->last.out * s->inner * s->taps <= TASK_ELEMENTS;
}

static void run_folds(window_run *run, const ts_parallel *parallel) {
  const window_state *s = run->s;
  if (is_small(s)) { /* without divisions, which take as long as such windows */
    fold_part(run, &(window_part){.row_end = s->rows, .end = s->last.out}, 0);
    return;
  }
  run->streams = may_stream(run);
  int64_t windows = s->inner * s->taps > TASK_ELEMENTS ? 1 : TASK_ELEMENTS / (s->inner * s->taps);
  run->last_step = min_of(windows, s->last.out);
  run->row_step = windows / s->last.out > 0 ? windows / s->last.out : 1;
  run->last_tasks = ceil_div(s->last.out, run->last_step);
  int64_t tasks = ceil_div(s->rows, run->row_step) * run->last_tasks;
  ts_parallel_run(tasks == 1 ? &ts_parallel_serial : parallel, tasks, fold_task, run);
}

/* ---- runs */

static bool is_scatter(ts_opcode op) { return op == TS_OP_WINDOW_SCATTER_MAX || op == TS_OP_WINDOW_SCATTER_MIN; }

/* Field by field: to clear them all first takes as long as a few windows. */
static void begin_run(const ts_routine_plan *plan, const ts_routine_run *run, window_run *out) {
  out->s = plan->state;
  out->in = ts_routine_operand(run, 0);
  out->out = ts_routine_result(run, 0);
  out->workers = run->thread_workspace;
  out->worker_bytes = plan->thread_workspace;
  out->streams = out->fills = false;
  out->cancel = run->cancel;
}

static ts_status window_run_op(const ts_routine_plan *plan, const ts_routine_run *run) {
  const window_state *s = plan->state;
  window_run r;
  begin_run(plan, run, &r);
  bool scatter = is_scatter(s->op), windows = s->rows > 0 && s->last.out > 0 && s->inner > 0;
  if (scatter) {
    r.source = ts_routine_operand(run, 1);
    r.value = ts_routine_operand(run, 2);
    if (windows && s->elements > 0)
      ts_window_scatter(&r, run->parallel);
    else if (s->elements > 0)
      ts_window_fill(&r, run->parallel);
  } else if (windows) {
    run_folds(&r, run->parallel);
  }
  return ts_check_cancelled(run->cancel, ts_op_name(s->op));
}

/* ---- the plan */

const ts_window_lanes *ts_window_lanes_host(void) { return TS_TARGET_PICK(ts_window_lanes); }

const ts_window_lanes *ts_window_lanes_for(int64_t bytes) {
  const ts_window_lanes *lanes = ts_window_lanes_host();
#if defined(__x86_64__)
  if (lanes == &ts_window_lanes_avx512 && bytes < lanes->vector_bytes) return &ts_window_lanes_avx2;
#endif
  return lanes;
}

static bool is_plain(const window_dim *d) { return d->size == 1 && d->stride == 1 && d->low == 0 && d->out == d->n; }

static window_dim get_dim(const ts_attrs *a, const ts_shape *in, const ts_shape *windows, int32_t d) {
  return (window_dim){.n = in->dims[d],
                      .size = a->window.sizes.dims[d],
                      .stride = a->window.strides.dims[d],
                      .low = a->window.low.dims[d],
                      .dilation = a->window.dilation.dims[d],
                      .out = windows->dims[d]};
}

/* Joins neighbours that no window spans, and takes the inner elements and the last dim apart. */
static void fill_dims(window_state *s, const ts_attrs *a, const ts_shape *in, const ts_shape *windows) {
  for (int32_t d = 0; d < in->rank; d++) {
    window_dim dim = get_dim(a, in, windows, d), *before = s->rank > 0 ? &s->outer[s->rank - 1] : NULL;
    if (is_plain(&dim) && dim.n == 1) continue;
    if (is_plain(&dim) && before && is_plain(before)) {
      before->n *= dim.n;
      before->out *= dim.n;
    } else {
      s->outer[s->rank++] = dim;
    }
  }
  s->inner = 1;
  s->last = (window_dim){.n = 1, .size = 1, .stride = 1, .dilation = 1, .out = 1};
  if (s->rank > 0 && is_plain(&s->outer[s->rank - 1])) s->inner = s->outer[--s->rank].n;
  if (s->rank > 0) s->last = s->outer[--s->rank];
}

/* The windows along a dim whose taps are all in bounds. */
static void find_interior(const window_dim *d, int64_t *first, int64_t *end) {
  const int64_t room = d->n - 1 + d->low - (d->size - 1) * d->dilation;
  *first = clamp(d->low > 0 ? (d->low - 1) / d->stride + 1 : 0, 0, d->out);
  *end = clamp(room < 0 ? 0 : room / d->stride + 1, *first, d->out);
}

static void fill_counts(window_state *s) {
  window_dim *l = &s->last;
  int64_t step = s->inner * s->size;
  l->step = step;
  step *= l->n;
  s->rows = s->row_taps = 1;
  for (int32_t d = s->rank - 1; d >= 0; d--) {
    s->outer[d].step = step;
    step *= s->outer[d].n;
    s->rows *= s->outer[d].out;
    s->row_taps *= min_of(s->outer[d].size, s->outer[d].n);
  }
  s->elements = step / s->size;
  s->taps = s->row_taps * min_of(l->size, l->n);
  if (s->taps < 1) s->taps = 1;
  find_interior(l, &s->interior, &s->interior_end);
  if (s->rank > 0) find_interior(&s->outer[s->rank - 1], &s->row_interior, &s->row_interior_end);
}

/* Vectors of neighbours from which on a call fills its lanes. */
#define LONG_VECTORS 4

/* Whether this number of neighbours is less than some vectors of the type that computes them. */
static bool is_below(const window_state *s, int64_t elements, int64_t vectors) {
  const int64_t size = ts_dtype_is_float(s->type) && s->size < 4 ? 4 : s->size;
  return elements * size < vectors * ts_window_lanes_host()->vector_bytes;
}

/* Rows share blocks where they are short, and few elements between them belong to no window. */
static int64_t plan_rows(const window_state *s, int64_t width) {
  const int64_t most = BLOCK_BYTES / s->size;
  if (s->rank == 0 || s->outer[s->rank - 1].stride > most || !is_below(s, width, LONG_VECTORS)) return 1;
  const int64_t distance = row_distance(s);
  return distance <= 3 * width || is_below(s, distance, LONG_VECTORS / 2) ? (most - width) / distance + 1 : 1;
}

/* Of more taps a block would take too long between two checks of the cancel flag. */
#define BLOCK_TAPS 1024

/* Not for complex numbers, which have no vectors, and not where a fold takes every second element itself. */
static void plan_blocks(window_state *s) {
  const int64_t windows = s->interior_end - s->interior, stride = s->last.stride, most = BLOCK_BYTES / s->size;
  if (s->elements == 0 || windows == 0 || stride > most || s->inner > most || s->taps > BLOCK_TAPS) return;
  if (ts_dtype_is_complex(s->type)) return;
  const int64_t room = (most / s->inner - 1) / stride + 1;
  const int64_t rows = windows < room ? plan_rows(s, line_elements(s, windows)) : 1;
  const bool by_pairs = s->inner == 1 && stride == 2 && s->size >= 4;
  const bool apart = stride > 1 && !by_pairs && is_below(s, stride * s->inner, LONG_VECTORS);
  const bool few = is_below(s, windows * s->inner, 1);
  if (rows == 1 && (!apart || few)) return;
  s->block_windows = min_of(windows, room);
  s->block_rows = rows;
}

static ts_status window_plan(const ts_routine_request *request, ts_routine_plan *out) {
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *operand = ts_graph_value(request->graph, op->operands[0]);
  const ts_value *windows = is_scatter(op->code) ? ts_graph_value(request->graph, op->operands[1])
                                                 : ts_graph_value(request->graph, op->first_result);
  const ts_window_lanes *lanes = ts_window_lanes_host();
  const ts_combiner *by = ts_combiner_of(op->code); /* NULL: a scatter */
  window_state *s;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &s));
  *s = (window_state){.op = op->code, .type = operand->dtype, .size = (int64_t)ts_dtype_size(operand->dtype)};
  s->fold = lanes->folds[s->type][by ? by->kind : TS_COMBINE_SUM];
  s->pick = lanes->picks[s->type][op->code == TS_OP_WINDOW_SCATTER_MIN];
  s->add = lanes->adds[s->type];
  if (by ? !s->fold : !s->pick || !s->add) return TS_SUCCESS;
  fill_dims(s, op->attrs, operand->shape, windows->shape);
  fill_counts(s);
  if (s->inner > 1 && s->taps <= FEW_TAPS) s->scatter = lanes->scatters[s->type][op->code == TS_OP_WINDOW_SCATTER_MIN];
  plan_blocks(s);
  if (s->taps > INT32_MAX) return TS_SUCCESS;
  out->state = s;
  out->cost_ns = 100 + (int64_t)((double)ts_shape_elements(windows->shape) * (double)s->taps / 8);
  out->thread_workspace = (s->row_taps * (int64_t)sizeof(char *) + 64) / 64 * 64;
  return TS_SUCCESS;
}

const ts_routine ts_window_routine = {"window", window_plan, NULL, window_run_op, NULL};
