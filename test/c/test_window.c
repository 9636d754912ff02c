/* Windows against the interpreter: every type, windows anywhere, with strides, padding of either sign and dilation,
 * also larger than the operand; equal elements, NaN and zeros of both signs; the same bits on any number of threads and
 * by every instruction set; cancelling. */
#include "exec/executable.h"
#include "exec/pool.h"
#include "kernel/conv/window_lanes.h"
#include "kernel/ref/ref.h"
#include "kernel/routine.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

#include "tool/compare.h"

#include <math.h>

static const char *const types[] = {"s8",  "s16", "s32",  "s64", "u8",  "u16", "u32",
                                    "u64", "f16", "bf16", "f32", "f64", "c64", "c128"};
static const char *const folds[] = {"window_sum", "window_product", "window_max", "window_min"};
static const char *const scatters[] = {"window_scatter_max", "window_scatter_min"};
/* Types from REAL on are complex: they have only sums and products, the first folds. */
enum { TYPES = sizeof types / sizeof *types, REAL = TYPES - 2, SUMS = 2 };

typedef struct window_case {
  const char *shape, *sizes, *strides, *low, *high, *dilation;
} window_case;

static const window_case cases[] = {
    {"", "", "", "", "", ""},
    {"9", "3", "1", "0", "0", "1"},
    {"9", "3", "2", "1", "1", "1"},
    {"100", "5", "1", "2", "2", "1"},
    {"333", "2", "2", "0", "0", "1"},
    {"334", "3", "2", "1", "0", "1"},
    {"200", "3", "3", "2", "5", "1"},
    {"40", "4", "1", "-3", "-2", "1"},
    {"5", "9", "1", "8", "8", "1"},
    {"5", "9", "1", "0", "3", "1"},
    {"0", "2", "1", "3", "2", "1"},
    {"50", "1", "1", "0", "0", "1"},
    {"50", "1", "3", "1", "0", "1"},
    {"50", "2", "4611686018427387904", "0", "0", "1"},
    {"6,7", "2,2", "2,2", "0,0", "0,0", "1,1"},
    {"7,90", "3,3", "1,1", "1,1", "1,1", "1,1"},
    {"7,90", "3,1", "1,1", "1,0", "1,0", "1,1"},
    {"7,90", "1,3", "1,2", "0,1", "0,1", "1,1"},
    {"2,5,6,40", "1,2,2,1", "1,2,2,1", "0,0,0,0", "0,1,0,0", "1,1,1,1"},
    {"2,5,6,133", "1,3,3,1", "1,1,1,1", "0,1,1,0", "0,1,1,0", "1,1,1,1"},
    {"2,5,6,3", "1,3,3,1", "1,2,2,1", "0,1,1,0", "0,1,1,0", "1,1,1,1"},
    {"2,6,40,23", "1,2,3,1", "1,2,2,1", "0,0,1,0", "0,0,1,0", "1,1,1,1"},
    {"2,9,12,5", "1,5,5,1", "1,2,2,1", "0,1,0,0", "0,1,0,0", "1,1,1,1"},
    {"2,7,63", "1,2,2", "1,2,2", "0,0,0", "0,0,0", "1,1,1"},
    {"2,3,8,80", "1,1,2,2", "1,1,2,2", "0,0,0,0", "0,0,0,0", "1,1,1,1"},
    {"2,3,8,81", "1,1,3,3", "1,1,2,2", "0,0,1,1", "0,0,1,1", "1,1,1,1"},
    {"3,4,5", "2,2,2", "1,2,1", "1,0,2", "0,1,2", "1,1,1"},
    {"3,4,5", "9,9,9", "1,1,1", "8,8,8", "8,8,8", "1,1,1"},
    {"2,30,30", "1,6,6", "1,3,3", "0,2,2", "0,2,2", "1,1,1"},
    {"3,1,0,4", "1,1,2,2", "1,1,1,1", "0,0,1,0", "0,0,1,0", "1,1,1,1"},
    {"4,70", "2,1", "1,1", "1000000000000,0", "-1000000000000,0", "1,1"},
    {"3,20", "2,3", "1,1", "1,4", "1,2", "2,3"},
    {"3,7,20,66", "1,2,3,1", "1,2,1,1", "0,1,4,0", "0,1,2,0", "1,2,3,1"},
    {"20", "2", "1", "0", "9000000000000000000", "9000000000000000000"},
    {"5", "4611686018427387904", "1", "4611686018427387903", "4", "1"},
    {"2,60,80,5", "1,2,2,1", "1,1,1,1", "0,0,0,0", "0,0,0,0", "1,1,1,1"},
    {"2,60,80,5", "1,2,2,1", "1,2,2,1", "0,1,1,0", "0,1,1,0", "1,1,1,1"},
    {"300,10,2", "2,5,1", "1,1,1", "0,0,0", "0,0,0", "1,1,1"},
    {"3,130,8,2", "1,3,5,1", "1,1,1,1", "0,1,2,0", "0,2,1,0", "1,1,1,1"},
    {"3,130,8,2", "1,3,2,1", "1,3,3,1", "0,1,1,0", "0,1,1,0", "1,2,1,1"},
    {"700,6", "3,2", "1,1", "1,1", "1,1", "1,1"},
    {"2,170,9,1", "1,3,3,1", "1,2,3,1", "0,0,0,0", "0,0,0,0", "1,1,1,1"},
    {"2,3000,3", "1,4,1", "1,3,1", "0,2,0", "0,2,0", "1,1,1"},
    {"2,9000", "1,3", "1,3", "0,1", "0,1", "1,1"},
    {"5,2,7", "3,2,1", "4611686018427387904,1,1", "0,0,0", "0,0,0", "1,1,1"},
    {"5,4,7", "1,2,1", "1,4611686018427387904,1", "0,0,0", "0,0,0", "1,1,1"},
    {"3,10,0", "1,3,1", "1,1,1", "0,0,0", "0,0,0", "1,1,1"},
    {"3,10,0", "2,3,1", "2,2,1", "0,1,0", "0,1,0", "1,1,1"},
    {"0,10,2", "1,3,1", "1,2,1", "1,0,0", "1,0,0", "1,1,1"},
    {"2,0,9,3", "1,2,3,1", "1,1,2,1", "0,1,0,0", "0,2,0,0", "1,1,1,1"},
};
enum { CASES = sizeof cases / sizeof *cases };

static bool is_dilated(const window_case *c) {
  for (const char *p = c->dilation; *p; p++)
    if (*p != '1' && *p != ',') return true;
  return strlen(c->dilation) > 1 && c->dilation[1] != ',';
}

/* The shape of the windows, as inference has it. */
static void windows_of(const window_case *c, char *out) {
  char text[640];
  const char *shape = c->shape;
  ts_graph *graph;
  int length = snprintf(text, sizeof text, "graph @main(%%0: f32[%s]) -> (f32[%s]) {\n  return %%0\n}\n", shape, shape);
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  ts_attrs attrs = {0};
  ts_dims *lists[] = {&attrs.window.sizes, &attrs.window.strides, &attrs.window.low, &attrs.window.high,
                      &attrs.window.dilation};
  const char *const texts[] = {c->sizes, c->strides, c->low, c->high, c->dilation};
  for (int i = 0; i < 5; i++)
    for (const char *p = texts[i]; *p; p += strcspn(p, ","), p += *p == ',')
      lists[i]->dims[lists[i]->rank++] = strtoll(p, NULL, 10);
  ts_value_id id = 0;
  ck_assert_ok(ts_graph_add_op(graph, TS_ROOT, TS_OP_WINDOW_SUM, (ts_values){&id, 1}, &attrs, &id));
  const ts_shape *windows = ts_graph_value(graph, id)->shape;
  *out = '\0';
  for (int32_t d = 0; d < windows->rank; d++) out += sprintf(out, "%s%lld", d ? "," : "", (long long)windows->dims[d]);
  ts_graph_destroy(graph);
}

static ts_graph *make_graph(const char *op, const char *type, const window_case *c) {
  char text[1024], windows[256];
  bool scatter = strlen(op) > 14;
  ts_graph *graph;
  windows_of(c, windows);
  int length = snprintf(text, sizeof text, "graph @main(%%0: %s[%s]", type, c->shape);
  if (scatter)
    length += snprintf(text + length, sizeof text - (size_t)length, ", %%1: %s[%s], %%2: %s[]", type, windows, type);
  length += snprintf(text + length, sizeof text - (size_t)length,
                     ") -> (%s[%s]) {\n  %%3 = %s %%0%s {sizes = [%s], strides = [%s], low = [%s], high = [%s], "
                     "dilation = [%s]} : %s[%s]\n  return %%3\n}\n",
                     type, scatter ? c->shape : windows, op, scatter ? ", %1, %2" : "", c->sizes, c->strides, c->low,
                     c->high, c->dilation, type, scatter ? c->shape : windows);
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  return graph;
}

/* Many equal elements, zeros of both signs, and NaN here and there. */
static void set_ties(ts_buffer *x, uint64_t seed) {
  static const double values[] = {0.0, -0.0, 1, -1, 2, 1, 0.0, -2};
  for (int64_t i = 0; i < ts_shape_elements(&x->shape); i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    bool nan = ts_dtype_is_float(x->dtype) && seed >> 33 & 1 && (seed >> 40) % 50 == 0;
    double value = nan ? __builtin_nan("") : values[seed >> 61];
    ts_scalar_store(x->dtype, ts_scalar_from_f64(x->dtype, value),
                    (char *)x->data + (size_t)i * ts_dtype_size(x->dtype));
  }
}

static void check(const char *op, const char *type, const window_case *c, bool ties) {
  ts_graph *graph = make_graph(op, type, c);
  size_t count = ts_graph_region(graph, TS_ROOT)->params.count;
  ts_buffer **args, *expected, *got;
  ts_executable *exe;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_random_args((uint64_t)(c - cases) + 7, graph, ts_pool_default(), &args));
  if (ties) set_ties(args[0], (uint64_t)(c - cases));
  ck_assert_ok(ts_ref_run(graph, args, count, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, count, NULL, &got));
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s %s, case %d, %s: %s", op, type, (int)(c - cases),
                ties ? "ties" : "random", message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  ts_executable_release(exe);
  ts_random_args_free(args, count);
  ts_graph_destroy(graph);
}

START_TEST(folds_of_every_type_and_shape)
{
  for (int t = 0; t < (_i < SUMS ? TYPES : REAL); t++)
    for (int c = 0; c < CASES; c++)
      for (int ties = 0; ties < 2; ties++) check(folds[_i], types[t], &cases[c], ties);
}
END_TEST

START_TEST(scatters_of_every_type_and_shape)
{
  for (int t = 0; t < REAL; t++)
    for (int c = 0; c < CASES; c++)
      for (int ties = 0; ties < 2 && !is_dilated(&cases[c]); ties++) check(scatters[_i], types[t], &cases[c], ties);
}
END_TEST

static void run_backwards(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  for (int64_t t = tasks; t-- > 0;) fn(arg, t, (int)(t % self->width));
}

static void run_with(const ts_graph *graph, ts_buffer **args, const ts_parallel *parallel, const _Atomic bool *cancel,
                     ts_code expected, void *out) {
  size_t count = ts_graph_region(graph, TS_ROOT)->params.count;
  ts_arena arena;
  ts_arena_init(&arena);
  ts_routine_plan plan = {.routine = ts_routine_of(graph->ops.data[0].code, TS_F32), .operand_count = (uint32_t)count};
  ck_assert_ok(plan.routine->plan(&(ts_routine_request){.graph = graph, .arena = &arena}, &plan));
  void *base[4] = {args[0]->data, count > 1 ? args[1]->data : NULL, count > 1 ? args[2]->data : NULL, out}, *space;
  const uint32_t ids[] = {0, 1, 2, 3};
  int64_t bytes = plan.thread_workspace * parallel->width;
  ck_assert_ok(ts_pool_alloc(ts_pool_default(), bytes, &space));
  ts_status status = plan.routine->run(&plan, &(ts_routine_run){.base = base,
                                                                .operands = ids,
                                                                .results = ids + 3,
                                                                .thread_workspace = space,
                                                                .parallel = parallel,
                                                                .pool = ts_pool_default(),
                                                                .cancel = cancel});
  ck_assert_int_eq(ts_status_code(status), expected);
  ts_status_free(status);
  ts_pool_free(ts_pool_default(), space, bytes);
  ts_arena_deinit(&arena);
}

START_TEST(the_same_bits_on_any_number_of_threads)
{
  static const window_case large[] = {{"4,40,40,70", "1,3,3,1", "1,2,2,1", "0,1,1,0", "0,1,1,0", "1,1,1,1"},
                                      {"12,300,300", "1,2,3", "1,2,1", "0,0,1", "0,0,1", "1,1,1"},
                                      {"300000", "7", "2", "3", "3", "1"},
                                      {"6,112,112,64", "1,2,2,1", "1,2,2,1", "0,0,0,0", "0,0,0,0", "1,1,1,1"}};
  static const char *const ops[] = {"window_sum", "window_max", "window_scatter_max"};
  for (int op = 0; op < 3; op++) {
    ts_graph *graph = make_graph(ops[op], "f32", &large[_i]);
    ts_buffer **args, *expected, *got;
    ck_assert_ok(ts_random_args(5, graph, ts_pool_default(), &args));
    const ts_value *type = ts_graph_value(graph, graph->ops.data[0].first_result);
    ck_assert_ok(ts_buffer_create(ts_pool_default(), type->dtype, type->shape, &expected));
    ck_assert_ok(ts_buffer_create(ts_pool_default(), type->dtype, type->shape, &got));
    run_with(graph, args, &ts_parallel_serial, NULL, TS_OK, expected->data);
    for (int width = 1; width <= 33; width += width < 8 ? 1 : 5) {
      const ts_parallel backwards = {.width = width, .run = run_backwards};
      memset(got->data, 0xff, (size_t)got->bytes);
      run_with(graph, args, &backwards, NULL, TS_OK, got->data);
      ck_assert_mem_eq(got->data, expected->data, (size_t)got->bytes);
    }
    ts_buffer_release(got);
    ts_buffer_release(expected);
    ts_random_args_free(args, ts_graph_region(graph, TS_ROOT)->params.count);
    ts_graph_destroy(graph);
  }
}
END_TEST

START_TEST(a_cancelled_run_ends)
{
  const _Atomic bool cancel = true;
  ts_graph *graph = make_graph(_i ? "window_scatter_max" : "window_sum", "f32", &cases[15]);
  ts_buffer **args;
  static float out[7 * 90];
  ck_assert_ok(ts_random_args(5, graph, ts_pool_default(), &args));
  run_with(graph, args, ts_pool_parallel(0), &cancel, TS_CANCELLED, out);
  ts_random_args_free(args, ts_graph_region(graph, TS_ROOT)->params.count);
  ts_graph_destroy(graph);
}
END_TEST

#if defined(__x86_64__)
static const ts_window_lanes *const lanes[] = {&ts_window_lanes_base, &ts_window_lanes_avx2, &ts_window_lanes_avx512};
static bool has(int isa) {
  return isa == 0 || (isa == 1 ? __builtin_cpu_supports("avx2")
                               : __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
}

/* Runs of every length, of stride 1 to 3, beside one another. */
START_TEST(instruction_sets_agree)
{
  static float x[3][1000], a[300], b[300];
  static int32_t p[300], q[300];
  if (!has(_i)) {
    printf("this machine lacks instruction set %d\n", _i);
    return;
  }
  for (int r = 0; r < 3; r++)
    for (int i = 0; i < 1000; i++) x[r][i] = (float)((i * 7919 + r * 31) % 23) - 11;
  const char *rows[] = {(const char *)x[0], (const char *)x[1], (const char *)x[2]};
  const ts_window_taps taps = {rows, 3, 4, 3, 4, false};
  for (int f = 0; f < TS_COMBINE_NUMBERS; f++)
    for (int64_t stride = 1; stride <= 3; stride++)
      for (int64_t n = 0; n <= 256; n += n < 70 ? 1 : 31) {
        memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(p, 0, sizeof p), memset(q, 0, sizeof q);
        lanes[0]->folds[TS_F32][f](&taps, stride, n, a);
        lanes[_i]->folds[TS_F32][f](&taps, stride, n, b);
        lanes[0]->picks[TS_F32][f % 2](&taps, stride, n, p);
        lanes[_i]->picks[TS_F32][f % 2](&taps, stride, n, q);
        ck_assert_mem_eq(a, b, sizeof a);
        ck_assert_mem_eq(p, q, (size_t)n * sizeof *p);
      }
}
END_TEST

/* Rows of windows with few columns and many, that share elements or do not. */
START_TEST(instruction_sets_scatter_the_same)
{
  static float x[2][1200], source[400], a[2][1200], b[2][1200];
  static const ts_dtype scattered[] = {TS_F32, TS_S32, TS_U32};
  if (!has(_i)) {
    printf("this machine lacks instruction set %d\n", _i);
    return;
  }
  for (int i = 0; i < 1200; i++)
    for (int r = 0; r < 2; r++) x[r][i] = (float)((i * 7919 + r * 31) % 23) - 11;
  for (int i = 0; i < 400; i++) source[i] = (float)(i % 17) - 8;
  const char *rows[] = {(const char *)x[0], (const char *)x[1]};
  for (int t = 0; t < 6; t++)
    for (int64_t columns = 1; columns < 40; columns++)
      for (int64_t step = 1; step <= 3; step++) {
        const ts_window_taps taps = {rows, 2, 8, 2, columns * 4, false};
        ts_window_line line = {
            9, columns, step * columns * 4, columns * 4, (char *)a - (char *)x, (const char *)source};
        memset(a, 0, sizeof a), memset(b, 0, sizeof b);
        lanes[0]->scatters[scattered[t / 2]][t % 2](&taps, &line);
        line.out = (char *)b - (char *)x;
        lanes[_i]->scatters[scattered[t / 2]][t % 2](&taps, &line);
        ck_assert_mem_eq(a, b, sizeof a);
      }
}
END_TEST

/* The greatest and the least of numbers, zeros of both signs and NaNs with other bits, stored both ways. */
static void check_best(ts_dtype type, int isa, int fold) {
  static _Alignas(64) char x[3][4096], a[1024], b[1024];
  int64_t size = (int64_t)ts_dtype_size(type);
  static const double values[] = {0.0, -0.0, 1, -1, 0.0, -0.0, 2, -2};
  uint64_t seed = 11;
  for (int64_t i = 0; i < (int64_t)sizeof x / size; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    char *to = (char *)x + i * size;
    ts_scalar_store(type, ts_scalar_from_f64(type, seed >> 33 & 7 ? values[seed >> 61] : __builtin_nan("")), to);
    if (seed >> 33 & 8) to[0] ^= (char)(seed >> 40 & 3), to[size - 1] ^= (char)(seed >> 50 & 0x80);
  }
  const char *rows[] = {x[0], x[1], x[2]};
  for (int streams = 0; streams < 2; streams++) {
    const ts_window_taps taps = {rows, 3, 0, 3, 1024, streams};
    memset(a, 0, sizeof a), memset(b, 0, sizeof b);
    lanes[0]->folds[type][fold](&taps, 1, 1024 / size, a);
    lanes[isa]->folds[type][fold](&taps, 1, 1024 / size, b);
    ck_assert_mem_eq(a, b, sizeof a);
  }
}

/* Folds of any number of windows, one and two elements apart, are those of each window by itself; so they are where the
 * best of the elements is a zero, and beside infinities and NaNs. Nothing is read behind the last window. */
static void check_neighbours(ts_dtype type, int isa, int fold, int kind) {
  static const double values[][8] = {{0.0, -0.0, -1, -2, -0.0, -3, -0.0, -1},
                                     {0.0, -0.0, 1, 2, 0.0, 3, 0.0, 1},
                                     {-0.0, 1.5, INFINITY, -INFINITY, -2, 2, -1, 1},
                                     {5, 1.5, -7, 3, -2, 2, -1, 1}};
  enum { MOST = 150, ELEMENTS = 2 * MOST + 1 };
  static char x[2][ELEMENTS * 8], a[MOST * 8], b[MOST * 8];
  const int64_t size = (int64_t)ts_dtype_size(type);
  uint64_t seed = (uint64_t)kind + 3;
  for (int64_t i = 0; i < (int64_t)sizeof x / size; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const bool nan = ts_dtype_is_float(type) && kind == 3 && seed >> 40 & 1 && (seed >> 41) % 64 == 0;
    const double value = nan ? (seed & 1 << 30 ? -1 : 1) * (double)NAN : values[kind][seed >> 61];
    ts_scalar_store(type, ts_scalar_from_f64(type, value), (char *)x + i * size);
  }
  for (int64_t stride = 1; stride <= 2; stride++)
    for (int64_t count = 1; count <= MOST; count++) {
      const int64_t last = ((count - 1) * stride + 2) * size; /* the end of the elements */
      const char *rows[] = {x[0] + sizeof x[0] - last, x[1] + sizeof x[1] - last};
      const ts_window_taps taps = {rows, 2, 0, 2, size, false};
      for (int64_t w = 0; w < count; w++) {
        ts_window_taps one = taps;
        one.offset = w * stride * size;
        lanes[isa]->folds[type][fold](&one, 1, 1, a + w * size);
      }
      memset(b, 0, sizeof b);
      lanes[isa]->folds[type][fold](&taps, stride, count, b);
      ck_assert_mem_eq(a, b, (size_t)(count * size));
    }
}

START_TEST(neighbours_are_as_single_windows)
{
  static const ts_dtype lane_types[] = {TS_F32, TS_F64, TS_F16, TS_BF16, TS_S8,  TS_U8,
                                        TS_S16, TS_U16, TS_S32, TS_U32,  TS_S64, TS_U64};
  if (!has(_i)) {
    printf("this machine lacks instruction set %d\n", _i);
    return;
  }
  for (int t = 0; t < 12; t++)
    for (int fold = 0; fold < 4; fold++)
      for (int kind = ts_dtype_is_float(lane_types[t]) ? 0 : 3; kind < 4; kind++)
        if (fold == TS_COMBINE_MAX || fold == TS_COMBINE_MIN || kind < 2)
          check_neighbours(lane_types[t], _i, fold, kind);
}
END_TEST

START_TEST(instruction_sets_agree_on_the_best)
{
  static const ts_dtype floats[] = {TS_F32, TS_F64, TS_F16, TS_BF16};
  if (!has(_i)) {
    printf("this machine lacks instruction set %d\n", _i);
    return;
  }
  for (int t = 0; t < 4; t++) {
    check_best(floats[t], _i, TS_COMBINE_MAX);
    check_best(floats[t], _i, TS_COMBINE_MIN);
  }
}
END_TEST

enum { STRIP_ELEMENTS = 40, STRIP_CHANNELS = 128, STRIP_LINES = 2 };
static _Alignas(64) char strip_x[STRIP_LINES][STRIP_ELEMENTS * STRIP_CHANNELS * 8];
static _Alignas(64) char strip_w[STRIP_LINES * 3 * STRIP_CHANNELS * 8], strip_out[2][20 * STRIP_CHANNELS * 8];
static const char strip_zeros[STRIP_CHANNELS * 8];

static void fill_strip(ts_dtype type, char *to, size_t bytes, uint64_t seed) {
  size_t size = ts_dtype_size(type);
  for (size_t i = 0; i < bytes / size; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    ts_scalar_store(type, ts_scalar_from_f64(type, (double)(int32_t)(seed >> 32) * 0x1p-30), to + i * size);
  }
}

/* The expected results of the strip, place by place and tap by tap. */
static void strip_by_dots(const ts_window_lanes *l, ts_dtype type, const ts_window_strip *s, int64_t places) {
  int64_t row = s->weights->count * (int64_t)ts_dtype_size(type);
  const char *taps[STRIP_LINES * 3 * TS_WINDOW_DOTS];
  for (int64_t p = 0; p < places; p++) {
    for (int64_t t = 0; t < s->weights->taps; t++) {
      const char *line = s->lines[t / s->line_taps];
      int64_t at = s->first + p * s->stride + t % s->line_taps * s->dilation;
      taps[t * TS_WINDOW_DOTS] = line && at >= 0 && at < s->n ? line + at * row : strip_zeros;
    }
    l->dots[type](taps, 1, s->weights, strip_out[0] + p * row);
  }
}

static void check_strip(const ts_window_lanes *l, ts_dtype type, const ts_window_strip *s, int64_t places) {
  memset(strip_out, 0xee, sizeof strip_out);
  strip_by_dots(l, type, s, places);
  l->strips[type](s, places, strip_out[1]);
  ck_assert_mem_eq(strip_out[0], strip_out[1], sizeof strip_out[0]);
}

/* Any number of places and channels, with padding before, behind and above; two and three taps, strides, dilation. */
static void check_strips(const ts_window_lanes *l, ts_dtype type, int64_t channels, bool streams) {
  const char *all[] = {strip_x[0], strip_x[1]}, *second[] = {NULL, strip_x[1]};
  for (int64_t line_taps = 2; line_taps <= 3; line_taps++) {
    const ts_window_weights weights = {strip_w, STRIP_LINES * line_taps, channels};
    for (int i = 0; i < 16; i++)
      for (int64_t places = 1; places <= 20; places += places < 10 ? 1 : 5)
        check_strip(l, type,
                    &(ts_window_strip){.lines = i & 1 ? second : all,
                                       .line_count = STRIP_LINES,
                                       .line_taps = line_taps,
                                       .n = places + (i & 8 ? 20 : 1),
                                       .first = i & 8 ? 0 : -2,
                                       .stride = i & 2 ? 2 : 1,
                                       .dilation = i & 4 ? 2 : 1,
                                       .weights = &weights,
                                       .streams = streams},
                    places);
  }
}

START_TEST(strips_are_dots_of_their_places)
{
  static const ts_dtype floats[] = {TS_F32, TS_F64, TS_F16, TS_BF16};
  static const int64_t channels[] = {1, 5, 17, 64, 67};
  if (!has(_i)) {
    printf("this machine lacks instruction set %d\n", _i);
    return;
  }
  for (int t = 0; t < 4; t++) {
    fill_strip(floats[t], strip_x[0], sizeof strip_x, 5);
    fill_strip(floats[t], strip_w, sizeof strip_w, 6);
    for (int c = 0; c < 5; c++) check_strips(lanes[_i], floats[t], channels[c], false);
    check_strips(lanes[_i], floats[t], 64, true);
  }
}
END_TEST
#endif

int main(void) {
  Suite *suite = suite_create("window");
  TCase *window = tcase_create("window");
  tcase_set_timeout(window, 120);
  tcase_add_loop_test(window, folds_of_every_type_and_shape, 0, 4);
  tcase_add_loop_test(window, scatters_of_every_type_and_shape, 0, 2);
  tcase_add_loop_test(window, the_same_bits_on_any_number_of_threads, 0, 4);
  tcase_add_loop_test(window, a_cancelled_run_ends, 0, 2);
#if defined(__x86_64__)
  tcase_add_loop_test(window, instruction_sets_agree, 0, 3);
  tcase_add_loop_test(window, instruction_sets_scatter_the_same, 0, 3);
  tcase_add_loop_test(window, instruction_sets_agree_on_the_best, 0, 3);
  tcase_add_loop_test(window, neighbours_are_as_single_windows, 0, 3);
  tcase_add_loop_test(window, strips_are_dots_of_their_places, 0, 3);
#endif
  suite_add_tcase(suite, window);
  return testing_run(suite);
}
