/* A line is processed in order, so a single line is bound by the latency of its op. Many lines are processed together:
 * along an outer axis the inner elements of one index are adjacent in memory; along the last axis lines are
 * interleaved. Either way the order within each line, and so its bits, are the same. */
#include "kernel/scan.h"

#include "base/cancel.h"
#include "ir/combiner.h"
#include "kernel/complex_number.h"
#include "kernel/routine.h"

/* A tile of lines: its elements are transposed, so that one step of all lines is one row of the tile. */
#define ROWS 16
#define TILE_COLUMNS 32
/* Of lines that are not turned. */
#define LINES_COLUMNS 1024
/* Elements of one task. */
#define TASK_ELEMENTS 65536
/* Inner elements processed together along an outer axis: their carries stay in L1. */
#define PANEL 512

typedef struct scan_job {
  const char *in;
  char *out;
  int64_t outer, n, inner; /* the shape around the axis */
  int64_t step;            /* +1, or -1 for reverse, in indices of the axis */
  int64_t tasks, per_task;
  const _Atomic bool *cancel;
} scan_job;

/* Steps of a line between two checks of the cancel flag. */
#define CHECK 8192
static bool cancelled(const scan_job *job) { return ts_cancelled(job->cancel); }

typedef void (*scan_fn)(const scan_job *job, int64_t begin, int64_t end);

#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
/* NaN if either is; -0 below +0 */
#define FLOAT_MIN(a, b) \
  ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) < (b) ? (a) : (b) < (a) ? (b) : signbit_of(a) ? (a) : (b))
#define FLOAT_MAX(a, b) \
  ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) > (b) ? (a) : (b) > (a) ? (b) : signbit_of(a) ? (b) : (a))
#define INT_MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define INT_MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define signbit_of(x) __builtin_signbit(x)
#define SAME(x) (x)
#define FROM_ZERO(x) (0 + (x)) /* -0 becomes +0, as in a sum from +0 */

/* block_NAME: `columns` steps of `rows` lines, from their carries on. T: memory type, A: type of the carry. */
#define DEFINE_TILE(NAME, T, A, LOAD, STORE, OP, FIRST)                                                           \
  static void block_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry, \
                           bool first) {                                                                          \
    A tile[TILE_COLUMNS][ROWS];                                                                                   \
    if (rows < ROWS) memset(tile, 0, sizeof tile);                                                                \
    for (int64_t r = 0; r < rows; r++)                                                                            \
      for (int64_t c = 0; c < columns; c++) tile[c][r] = LOAD(x[r * line + c * step]);                            \
    for (int64_t c = 0; c < columns; c++) {                                                                       \
      for (int r = 0; r < ROWS; r++) carry[r] = first ? (A)FIRST(tile[c][r]) : (A)OP(carry[r], tile[c][r]);       \
      for (int r = 0; r < ROWS; r++) tile[c][r] = carry[r];                                                       \
      first = false;                                                                                              \
    }                                                                                                             \
    for (int64_t r = 0; r < rows; r++)                                                                            \
      for (int64_t c = 0; c < columns; c++) y[r * line + c * step] = STORE(tile[c][r]);                           \
  }

/* The same where a step is one instruction: four lines at once hide its latency, and nothing is turned. More lines
 * would share a set of the first cache where a line has a power of two of elements. */
#define DEFINE_LINES(NAME, T, A, LOAD, STORE, OP, FIRST)                                                          \
  static void four_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t columns, A *carry) {              \
    A a = carry[0], b = carry[1], c = carry[2], d = carry[3];                                                     \
    for (int64_t at = 0; at != columns * step; at += step) {                                                      \
      a = (A)OP(a, LOAD(x[at])), b = (A)OP(b, LOAD(x[at + line]));                                                \
      c = (A)OP(c, LOAD(x[at + 2 * line])), d = (A)OP(d, LOAD(x[at + 3 * line]));                                 \
      y[at] = STORE(a), y[at + line] = STORE(b), y[at + 2 * line] = STORE(c), y[at + 3 * line] = STORE(d);        \
    }                                                                                                             \
    carry[0] = a, carry[1] = b, carry[2] = c, carry[3] = d;                                                       \
  }                                                                                                               \
  static void block_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry, \
                           bool first) {                                                                          \
    int64_t r = 0;                                                                                                \
    for (int64_t i = 0; first && i < rows; i++) {                                                                 \
      carry[i] = (A)FIRST(LOAD(x[i * line]));                                                                     \
      y[i * line] = STORE(carry[i]);                                                                              \
    }                                                                                                             \
    if (first) x += step, y += step, columns--;                                                                   \
    for (; r + 4 <= rows; r += 4) four_##NAME(x + r * line, y + r * line, line, step, columns, carry + r);        \
    for (; r < rows; r++) {                                                                                       \
      for (int64_t c = 0; c < columns; c++) {                                                                     \
        carry[r] = (A)OP(carry[r], LOAD(x[r * line + c * step]));                                                 \
        y[r * line + c * step] = STORE(carry[r]);                                                                 \
      }                                                                                                           \
    }                                                                                                             \
  }

/* Defines rows_NAME (lines along the last axis; units are lines) and columns_NAME (units are outer * panels). KIND:
 * TILE or LINES, of the blocks. */
#define DEFINE_SCAN(KIND, NAME, T, A, LOAD, STORE, OP, FIRST)                                                   \
  DEFINE_##KIND(NAME, T, A, LOAD, STORE, OP, FIRST) static void rows_##NAME(const scan_job *job, int64_t begin, \
                                                                            int64_t end) {                      \
    int64_t n = job->n, first = job->step > 0 ? 0 : n - 1;                                                      \
    for (int64_t row = begin; row < end; row += ROWS) {                                                         \
      int64_t rows = end - row < ROWS ? end - row : ROWS;                                                       \
      const T *x = (const T *)job->in + row * n + first;                                                        \
      T *y = (T *)job->out + row * n + first;                                                                   \
      A carry[ROWS] = {0};                                                                                      \
      for (int64_t k = 0; k < n; k += KIND##_COLUMNS) {                                                         \
        if (k % CHECK == 0 && cancelled(job)) return;                                                           \
        int64_t at = k * job->step;                                                                             \
        int64_t columns = n - k < KIND##_COLUMNS ? n - k : KIND##_COLUMNS;                                      \
        if (rows == ROWS && columns == KIND##_COLUMNS && job->step == 1)                                        \
          block_##NAME(x + at, y + at, n, 1, ROWS, KIND##_COLUMNS, carry, k == 0);                              \
        else                                                                                                    \
          block_##NAME(x + at, y + at, n, job->step, rows, columns, carry, k == 0);                             \
      }                                                                                                         \
    }                                                                                                           \
  }                                                                                                             \
  static void columns_##NAME(const scan_job *job, int64_t begin, int64_t end) {                                 \
    int64_t n = job->n, inner = job->inner, panels = (inner + PANEL - 1) / PANEL;                               \
    for (int64_t unit = begin; unit < end; unit++) {                                                            \
      int64_t start = unit % panels * PANEL, width = inner - start < PANEL ? inner - start : PANEL;             \
      int64_t base = (unit / panels * n + (job->step > 0 ? 0 : n - 1)) * inner + start;                         \
      const T *x = (const T *)job->in + base;                                                                   \
      T *y = (T *)job->out + base;                                                                              \
      A carry[PANEL];                                                                                           \
      for (int64_t i = 0; i < width; i++) {                                                                     \
        carry[i] = (A)FIRST(LOAD(x[i]));                                                                        \
        y[i] = STORE(carry[i]);                                                                                 \
      }                                                                                                         \
      for (int64_t k = 1; k < n; k++) {                                                                         \
        if (k % CHECK == 1 && cancelled(job)) return;                                                           \
        x += job->step * inner, y += job->step * inner;                                                         \
        for (int64_t i = 0; i < width; i++) {                                                                   \
          A v = LOAD(x[i]);                                                                                     \
          carry[i] = (A)OP(carry[i], v);                                                                        \
          y[i] = STORE(carry[i]);                                                                               \
        }                                                                                                       \
      }                                                                                                         \
    }                                                                                                           \
  }

/* Unsigned arithmetic wraps; small types are computed in 64 bits and truncated. */
#define DEFINE_INT(NAME, T, U)                                             \
  DEFINE_SCAN(LINES, sum_##NAME, U, U, SAME, SAME, SUM, FROM_ZERO)         \
  DEFINE_SCAN(LINES, product_##NAME, U, U, SAME, SAME, WRAP_PRODUCT, SAME) \
  DEFINE_SCAN(TILE, min_##NAME, T, T, SAME, SAME, INT_MIN_OF, SAME)        \
  DEFINE_SCAN(TILE, max_##NAME, T, T, SAME, SAME, INT_MAX_OF, SAME)
#define WRAP_PRODUCT(a, b) ((uint64_t)(a) * (uint64_t)(b)) /* u16 * u16 would overflow int */

#define DEFINE_FLOAT(NAME, T, A, LOAD, STORE)                          \
  DEFINE_SCAN(LINES, sum_##NAME, T, A, LOAD, STORE, SUM, FROM_ZERO)    \
  DEFINE_SCAN(LINES, product_##NAME, T, A, LOAD, STORE, PRODUCT, SAME) \
  DEFINE_SCAN(TILE, min_##NAME, T, A, LOAD, STORE, FLOAT_MIN, SAME)    \
  DEFINE_SCAN(TILE, max_##NAME, T, A, LOAD, STORE, FLOAT_MAX, SAME)

DEFINE_INT(s8, int8_t, uint8_t)
DEFINE_INT(s16, int16_t, uint16_t)
DEFINE_INT(s32, int32_t, uint32_t)
DEFINE_INT(s64, int64_t, uint64_t)
DEFINE_INT(u8, uint8_t, uint8_t)
DEFINE_INT(u16, uint16_t, uint16_t)
DEFINE_INT(u32, uint32_t, uint32_t)
DEFINE_INT(u64, uint64_t, uint64_t)
DEFINE_FLOAT(f16, uint16_t, float, ts_f16_to_f32, ts_f32_to_f16)
DEFINE_FLOAT(bf16, uint16_t, float, ts_bf16_to_f32, ts_f32_to_bf16)
DEFINE_FLOAT(f32, float, float, SAME, SAME)
DEFINE_FLOAT(f64, double, double, SAME, SAME)
/* From the identity, as in the meaning: 1 times a number may change a zero's sign, and infinities. */
#define FROM_C64(x) (ts_c64_product(1, x))
#define FROM_C128(x) (ts_c128_product(1, x))
#define DEFINE_COMPLEX(NAME, T, FIRST) DEFINE_SCAN(LINES, product_##NAME, T, T, SAME, SAME, T##_product, FIRST)
DEFINE_COMPLEX(c64, ts_c64, FROM_C64)
DEFINE_COMPLEX(c128, ts_c128, FROM_C128)

#define ROW(E, N)                                      \
  [TS_##E] = {{rows_sum_##N, columns_sum_##N},         \
              {rows_product_##N, columns_product_##N}, \
              {rows_max_##N, columns_max_##N},         \
              {rows_min_##N, columns_min_##N}}

#define PRODUCTS(E, N) [TS_##E] = {[TS_COMBINE_PRODUCT] = {rows_product_##N, columns_product_##N}}

/* by type, ts_combine, and whether the axis is the last */
static const scan_fn table[TS_DTYPE_COUNT][TS_COMBINE_NUMBERS][2] = {
    ROW(S8, s8),   ROW(S16, s16), ROW(S32, s32),      ROW(S64, s64),       ROW(U8, u8),
    ROW(U16, u16), ROW(U32, u32), ROW(U64, u64),      ROW(F16, f16),       ROW(BF16, bf16),
    ROW(F32, f32), ROW(F64, f64), PRODUCTS(C64, c64), PRODUCTS(C128, c128)};

typedef struct scan_call {
  scan_fn fn;
  scan_job job;
  int64_t units;
} scan_call;

static void scan_task(void *arg, int64_t task, int worker) {
  (void)worker;
  const scan_call *call = arg;
  int64_t begin = task * call->job.per_task, end = begin + call->job.per_task;
  call->fn(&call->job, begin, end < call->units ? end : call->units);
}

ts_status ts_scan_run(const ts_scan *scan, const void *in, void *out, const ts_parallel *parallel,
                      const _Atomic bool *cancel) {
  const ts_shape *shape = &scan->shape;
  const ts_opcode op = scan->op;
  const ts_dtype type = scan->dtype;
  const int axis = scan->axis;
  const ts_combiner *by = ts_op_get_class(op) == TS_CLASS_SCAN ? ts_combiner_of(op) : NULL;
  if (!by || type >= TS_DTYPE_COUNT || !table[type][by->kind][0])
    return ts_error(TS_INVALID_ARGUMENT, "%s of %s is not a scan", ts_op_name(op), ts_dtype_name(type));
  if (axis < 0 || axis >= shape->rank)
    return ts_error(TS_INVALID_ARGUMENT, "%s: axis %d of %s", ts_op_name(op), axis, TS_SHAPE_STR(type, shape));
  scan_call call = {.job = {.in = in,
                            .out = out,
                            .outer = 1,
                            .n = shape->dims[axis],
                            .inner = 1,
                            .step = scan->reverse ? -1 : 1,
                            .cancel = cancel}};
  for (int d = 0; d < axis; d++) call.job.outer *= shape->dims[d];
  for (int d = axis + 1; d < shape->rank; d++) call.job.inner *= shape->dims[d];
  if (call.job.outer == 0 || call.job.n == 0 || call.job.inner == 0) return TS_SUCCESS;
  bool rows = call.job.inner == 1;
  call.fn = table[type][by->kind][rows ? 0 : 1];
  call.units = rows ? call.job.outer : call.job.outer * ((call.job.inner + PANEL - 1) / PANEL);
  int64_t unit_elements = call.job.n * (rows ? 1 : call.job.inner < PANEL ? call.job.inner : PANEL);
  call.job.per_task = TASK_ELEMENTS / unit_elements;
  if (call.job.per_task < ROWS) call.job.per_task = rows ? ROWS : 1;
  if (rows) call.job.per_task -= call.job.per_task % ROWS;
  call.job.tasks = (call.units + call.job.per_task - 1) / call.job.per_task;
  ts_parallel_run(parallel, call.job.tasks, scan_task, &call);
  return ts_check_cancelled(cancel, ts_op_name(op));
}

/* ---- as a routine ---- */

static ts_status scan_plan(const ts_routine_request *request, ts_routine_plan *out) {
  static const bool in_place = true;
  const ts_op *op = ts_graph_op(request->graph, request->op);
  const ts_value *operand = ts_graph_value(request->graph, op->operands[0]);
  ts_scan *state;
  if (!table[operand->dtype][ts_combiner_of(op->code)->kind][0]) return TS_SUCCESS;
  TS_TRY(TS_ARENA_ARRAY(request->arena, 1, &state));
  *state = (ts_scan){op->code, operand->dtype, *operand->shape, op->attrs->scan.axis, op->attrs->scan.reverse};
  out->state = state;
  out->cost_ns = 100 + 2 * ts_shape_elements(&state->shape);
  out->inplace = &in_place;
  return TS_SUCCESS;
}

static ts_status scan_run(const ts_routine_plan *plan, const ts_routine_run *run) {
  return ts_scan_run(plan->state, ts_routine_operand(run, 0), ts_routine_result(run, 0), run->parallel, run->cancel);
}

const ts_routine ts_scan_routine = {"scan", scan_plan, NULL, scan_run, NULL};
