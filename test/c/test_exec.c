/* Promises of a run besides its numbers; tessera-opt checks the numbers (test/golden/exec). */
#include "exec/executable.h"
#include "jit/jit.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <glob.h>
#include <pthread.h>
#include <string.h>

static glob_t programs; /* of test/golden/exec */

static void find_programs(void) {
  static const char pattern[] = "test/golden/exec/*.ts";
  if (glob(pattern, 0, NULL, &programs) == 0) return;
  fprintf(stderr, "no %s: run this from the repository's root\n", pattern);
  exit(EXIT_FAILURE);
}

/* Two vectors of 1000 f32. */
static const char add_text[] =
    "graph @main(%0: f32[1000], %1: f32[1000]) -> (f32[1000]) {\n  %2 = add %0, %1 : f32[1000]\n  return %2\n}\n";

static ts_buffer *filled(ts_dtype type, int64_t n, int value) {
  ts_shape shape = ts_shape_make(1, &n);
  ts_buffer *b;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &b));
  for (int64_t i = 0; i < n; i++)
    ts_scalar_store(type, ts_scalar_from_s64(type, value), (char *)b->data + i * (int64_t)ts_dtype_size(type));
  return b;
}

START_TEST(wrong_arguments_are_refused)
{
  ts_executable *exe = test_compile(add_text);
  ts_buffer *good = filled(TS_F32, 1000, 1), *bad = filled(TS_F32, 999, 1), *type = filled(TS_S32, 1000, 1), *out[1];
  ts_buffer *args[] = {good, bad};
  ck_assert_error(ts_executable_run(exe, args, 2, NULL, out), TS_INVALID_ARGUMENT, "argument 2 is f32[999]");
  args[1] = type;
  ck_assert_error(ts_executable_run(exe, args, 2, NULL, out), TS_INVALID_ARGUMENT, "argument 2 is s32[1000]");
  ck_assert_error(ts_executable_run(exe, args, 1, NULL, out), TS_INVALID_ARGUMENT, "takes 2 arguments, got 1");
  ts_buffer_release(good);
  ts_buffer_release(bad);
  ts_buffer_release(type);
  ts_executable_release(exe);
}
END_TEST

START_TEST(results_are_of_the_pool_that_is_asked_for)
{
  ts_pool *pool;
  ts_pool_stats stats;
  ck_assert_ok(ts_pool_create(1 << 20, &pool));
  ts_executable *exe = test_compile(add_text);
  ts_buffer *a = filled(TS_F32, 1000, 1), *args[] = {a, a}, *out;
  ts_run_options options = {.pool = pool};
  ck_assert_ok(ts_executable_run(exe, args, 2, &options, &out));
  ts_pool_get_stats(pool, &stats);
  ck_assert_int_ge(stats.live, 4000);
  ck_assert(((float *)out->data)[999] == 2.0f);
  ts_buffer_release(out);
  ts_pool_set_limit(pool, 1000);
  ck_assert_error(ts_executable_run(exe, args, 2, &options, &out), TS_RESOURCE_EXHAUSTED, "f32[1000]");
  ts_pool_get_stats(pool, &stats);
  ck_assert_int_eq(stats.live, 0);
  ts_buffer_release(a);
  ts_executable_release(exe);
  ts_pool_destroy(pool);
}
END_TEST

/* tanh(x . w + b) again and again, each with its own w and b. */
static ts_executable *compile_layers(int layers) {
  ts_text text = {0};
  ts_text_append(&text, "graph @main(%0: f32[32,64]");
  for (int i = 0; i < layers; i++) ts_text_format(&text, ", %%%d: f32[64,64], %%%d: f32[64]", 2 * i + 1, 2 * i + 2);
  ts_text_append(&text, ") -> (f32[32,64]) {\n");
  for (int i = 0, at = 2 * layers + 1, x = 0; i < layers; i++, x = at + 3, at += 4) {
    ts_text_format(&text,
                   "  %%%d = dot_general %%%d, %%%d {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch "
                   "= []} : f32[32,64]\n",
                   at, x, 2 * i + 1);
    ts_text_format(&text, "  %%%d = broadcast %%%d {shape = [32,64], axes = [1]} : f32[32,64]\n", at + 1, 2 * i + 2);
    ts_text_format(&text, "  %%%d = add %%%d, %%%d : f32[32,64]\n  %%%d = tanh %%%d : f32[32,64]\n", at + 2, at, at + 1,
                   at + 3, at + 2);
  }
  ts_text_format(&text, "  return %%%d\n}\n", 6 * layers);
  ts_executable *exe = test_compile(text.data);
  ts_text_deinit(&text);
  return exe;
}

START_TEST(alike_layers_share_what_is_kept_of_them)
{
  ts_executable_stats few, many;
  ts_executable *exe = compile_layers(20);
  ts_executable_get_stats(exe, &few);
  ts_executable_release(exe);
  exe = compile_layers(60);
  ts_executable_get_stats(exe, &many);
  const ts_type *const *types = ts_executable_param_types(exe);
  ck_assert_ptr_eq(types[1], types[119]);
  ck_assert_ptr_eq(types[2], types[120]);
  ck_assert_ptr_ne(types[1], types[2]);
  ck_assert_int_eq(many.steps, 60);
  ck_assert_int_eq(many.kernels, few.kernels);
  ck_assert_int_lt(many.kept_bytes - few.kept_bytes, 40 * 256);
  ts_executable_release(exe);
}
END_TEST

/* ---- loops that write what they carry in place ---- */

#define LOOP(shapes, last)                                                                                       \
  "graph @main(%0: f32[256,256], %1: s32[]) -> (f32[256,256]) {\n  %2, %3 = while %0, %1 {\n"                    \
  "    condition(%4: f32[256,256], %5: s32[]) {\n      %6 = constant 9 : s32[]\n      %7 = less %5, %6 : u8[]\n" \
  "      return %7\n    }\n    body(%8: f32[256,256], %9: s32[]) {\n      %10 = constant 1 : s32[]\n"            \
  "      %11 = add %9, %10 : s32[]\n      %12 = convert %9 : f32[]\n" shapes "      return " last                \
  ", %11\n    }\n  } : f32[256,256], s32[]\n  return %2\n}\n"

/* How many bytes beyond the argument and the result a program with a loop takes. */
static int64_t bytes_of_loop(const char *text) {
  ts_executable_stats stats;
  ts_executable *exe = test_compile(text);
  ts_executable_get_stats(exe, &stats);
  ts_executable_release(exe);
  return stats.planned_peak_bytes - 2 * 256 * 256 * (int64_t)sizeof(float);
}

START_TEST(a_loop_writes_what_it_carries_in_place)
{
  static const char *const in_place[] = {
      LOOP("      %13 = broadcast %12 {shape = [1,256], axes = []} : f32[1,256]\n"
           "      %14 = put_slice %8, %13, %9, %9 : f32[256,256]\n",
           "%14"),
      LOOP("      %13 = broadcast %12 {shape = [256,256], axes = []} : f32[256,256]\n"
           "      %14 = multiply %8, %13 : f32[256,256]\n",
           "%14"),
      LOOP("      %13 = cumulative_sum %8 {axis = 1, reverse = false} : f32[256,256]\n", "%13"),
  };
  static const char *const copied[] = {
      /* the old value is read after the write of the part, and by the transpose at other places */
      LOOP("      %13 = broadcast %12 {shape = [1,256], axes = []} : f32[1,256]\n"
           "      %14 = put_slice %8, %13, %9, %9 : f32[256,256]\n"
           "      %15 = slice %8 {start = [3,0], limit = [4,256], stride = [1,1]} : f32[1,256]\n"
           "      %16 = put_slice %14, %15, %9, %9 : f32[256,256]\n",
           "%16"),
      LOOP("      %13 = transpose %8 {axes = [1,0]} : f32[256,256]\n"
           "      %14 = add %13, %8 : f32[256,256]\n",
           "%14"),
  };
  for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++)
    ck_assert_int_lt(bytes_of_loop(in_place[i]), 256 * 256 * (int64_t)sizeof(float));
  for (size_t i = 0; i < sizeof copied / sizeof *copied; i++)
    ck_assert_int_ge(bytes_of_loop(copied[i]), 256 * 256 * (int64_t)sizeof(float));
}
END_TEST

START_TEST(a_donated_argument_gives_its_memory)
{
  ts_executable *exe = test_compile(add_text);
  ts_buffer *a = filled(TS_F32, 1000, 1), *b = filled(TS_F32, 1000, 2), *args[] = {a, b}, *out[1];
  void *memory = a->data;
  ts_run_options options = {.donated = TS_BITS(1)};
  ck_assert_ok(ts_executable_run(exe, args, 2, &options, out));
  ck_assert_ptr_eq(out[0]->data, memory);
  ck_assert(((float *)out[0]->data)[999] == 3.0f);
  /* shared: copied, never written over */
  ts_buffer_retain(b);
  ts_buffer *shared[] = {b, out[0]}, *again[1];
  ck_assert_ok(ts_executable_run(exe, shared, 2, &options, again));
  ck_assert_ptr_ne(again[0]->data, b->data);
  ck_assert(((float *)b->data)[0] == 2.0f && ((float *)again[0]->data)[0] == 5.0f);
  ts_buffer_release(b); /* the run took the other reference */
  /* given twice: its memory is still read by the other */
  ts_buffer *twice[] = {out[0], out[0]}, *sum[1];
  memory = out[0]->data;
  ck_assert_ok(ts_executable_run(exe, twice, 2, &options, sum)); /* takes the only reference */
  ck_assert_ptr_ne(sum[0]->data, memory);
  ck_assert(((float *)sum[0]->data)[0] == 6.0f);
  ts_buffer_release(sum[0]);
  ts_buffer_release(again[0]);
  ts_executable_release(exe);
}
END_TEST

/* A set of arguments has no limit: 200 results take the memory of 200 arguments. */
START_TEST(many_donated_arguments)
{
  enum { MANY = 200 };
  uint64_t donated[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
  ts_buffer *args[MANY], *out[MANY];
  ts_value_id values[MANY];
  void *memory[MANY];
  ts_graph *graph = test_graph();
  for (int i = 0; i < MANY; i++) {
    args[i] = VECTOR(TS_F32, i, i + 1);
    memory[i] = args[i]->data;
    values[i] = test_add_param(graph, TS_ROOT, TS_F32, SHAPE(2));
  }
  for (int i = 0; i < MANY; i++) values[i] = OP(graph, TS_ROOT, TS_OP_NEGATE, NULL, values[i]);
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, values, MANY));
  ts_executable *exe;
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ts_graph_destroy(graph);
  donated[2] &= ~UINT64_C(1); /* all but argument 128 */
  ts_run_options options = {.donated = {donated, 0, MANY}};
  ck_assert_ok(ts_executable_run(exe, args, MANY, &options, out));
  for (int i = 0; i < MANY; i++) {
    ck_assert_float_eq(*(float *)out[i]->data, -(float)i);
    ck_assert_int_eq(out[i]->data == memory[i], i != 128);
    ts_buffer_release(out[i]);
  }
  ts_buffer_release(args[128]);
  ts_executable_release(exe);
}
END_TEST

START_TEST(a_result_beside_sums_takes_a_donated_argument)
{
  char *text = testing_read("test/golden/exec/long_rows/points_and_sums.ts");
  ts_executable *exe = test_compile(text);
  free(text);
  ts_buffer *x = filled(TS_F32, 40001, -3), *out[3];
  void *memory = x->data;
  ck_assert_ok(ts_executable_run(exe, &x, 1, &(ts_run_options){.donated = TS_BITS(1)}, out));
  ck_assert_ptr_eq(out[0]->data, memory);
  ck_assert(((float *)out[0]->data)[40000] == -6.0f && *(float *)out[1]->data == -240006.0f);
  ck_assert_int_eq(*(int32_t *)out[2]->data, 40000);
  for (int i = 0; i < 3; i++) ts_buffer_release(out[i]);
  ts_executable_release(exe);
}
END_TEST

/* Results so large that they are stored past the caches. */

static ts_buffer *counted(ts_dtype type, int32_t rank, const int64_t *dims) {
  ts_shape shape = ts_shape_make(rank, dims);
  ts_buffer *b;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &b));
  if (type == TS_U8)
    for (int64_t i = 0; i < b->bytes; i++) ((uint8_t *)b->data)[i] = (uint8_t)(i * 7 + i / 256);
  else
    for (int64_t i = 0; i < b->bytes / 4; i++) ((uint32_t *)b->data)[i] = (uint32_t)i;
  return b;
}

static ts_buffer *run_one(const char *text, ts_buffer **args, size_t count) {
  ts_executable *exe = test_compile(text);
  ts_buffer *out;
  ck_assert_ok(ts_executable_run(exe, args, count, NULL, &out));
  ts_executable_release(exe);
  return out;
}

START_TEST(large_sums_are_whole)
{
  static const char *texts[] = {
      "graph @main(%0: u8[26000005]) -> (u8[26000005]) {\n  %1 = add %0, %0 : u8[26000005]\n  return %1\n}\n",
      "graph @main(%0: u32[7000005]) -> (u32[7000005]) {\n  %1 = add %0, %0 : u32[7000005]\n  return %1\n}\n"};
  int64_t n = _i ? 7000005 : 26000005;
  ts_buffer *x = counted(_i ? TS_U32 : TS_U8, 1, &n), *y = run_one(texts[_i], &x, 1);
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i++)
    wrong += _i ? ((uint32_t *)y->data)[i] != 2 * (uint32_t)i
                : ((uint8_t *)y->data)[i] != (uint8_t)(2 * ((uint8_t *)x->data)[i]);
  ck_assert_int_eq(wrong, 0);
  ts_buffer_release(x);
  ts_buffer_release(y);
}
END_TEST

/* Rows of whole cache lines, and others, which must not be stored that way. */
START_TEST(large_moves_are_whole)
{
  static const struct {
    int64_t rows, columns;
    const char *text;
  } cases[] = {{2000, 3600,
                "graph @main(%0: u32[2000,3600], %1: u32[2000,3600]) -> (u32[3600,2000], u32[2000,7200]) {\n"
                "  %2 = transpose %0 {axes = [1,0]} : u32[3600,2000]\n"
                "  %3 = concatenate %0, %1 {axis = 1} : u32[2000,7200]\n  return %2, %3\n}\n"},
               {2001, 3607,
                "graph @main(%0: u32[2001,3607], %1: u32[2001,3607]) -> (u32[3607,2001], u32[2001,7214]) {\n"
                "  %2 = transpose %0 {axes = [1,0]} : u32[3607,2001]\n"
                "  %3 = concatenate %0, %1 {axis = 1} : u32[2001,7214]\n  return %2, %3\n}\n"}};
  int64_t rows = cases[_i].rows, columns = cases[_i].columns, wrong = 0;
  ts_buffer *x = counted(TS_U32, 2, (int64_t[]){rows, columns}), *args[] = {x, x}, *out[2];
  ts_executable *exe = test_compile(cases[_i].text);
  ck_assert_ok(ts_executable_run(exe, args, 2, NULL, out));
  const uint32_t *turned = out[0]->data, *joined = out[1]->data;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++) {
      uint32_t expected = (uint32_t)(r * columns + c);
      wrong += turned[c * rows + r] != expected;
      wrong += joined[r * 2 * columns + c] != expected || joined[(r * 2 + 1) * columns + c] != expected;
    }
  ck_assert_int_eq(wrong, 0);
  ts_buffer_release(x);
  ts_buffer_release(out[0]);
  ts_buffer_release(out[1]);
  ts_executable_release(exe);
}
END_TEST

#define COUNTING(first, compare, limit, step)                                                                      \
  "graph @main(%0: f32[]) -> (f32[]) {\n  %1 = constant " first " : s32[]\n  %2, %3 = while %1, %0 {\n"            \
  "    condition(%4: s32[], %5: f32[]) {\n      %6 = constant " limit " : s32[]\n      %7 = " compare              \
  " %4, %6 : u8[]\n      return %7\n    }\n    body(%8: s32[], %9: f32[]) {\n      %10 = constant " step           \
  " : s32[]\n      %11 = add %8, %10 : s32[]\n      %12 = multiply %9, %9 : f32[]\n      return %11, %12\n    }\n" \
  "  } : s32[], f32[]\n  return %3\n}\n"

static ts_executable_stats stats_of(const char *text) {
  ts_executable_stats stats;
  ts_executable *exe = test_compile(text);
  ts_executable_get_stats(exe, &stats);
  ck_assert_int_eq(ts_executable_is_short(exe), stats.cost_ns < 300000);
  ts_executable_release(exe);
  return stats;
}

START_TEST(counted_loops_have_a_cost)
{
  int64_t few = stats_of(COUNTING("0", "less", "1000", "1")).cost_ns;
  ck_assert_int_gt(few, 500);
  ck_assert_int_lt(few, 20000);
  ck_assert_int_eq(stats_of(COUNTING("-7", "less", "2992", "3")).cost_ns, few);
  ck_assert_int_gt(stats_of(COUNTING("0", "less", "100000000", "1")).cost_ns, 50000000);
  ck_assert_int_lt(stats_of(COUNTING("5", "less", "5", "1")).cost_ns, 1000);
  ck_assert_int_eq(stats_of(COUNTING("0", "less", "1000", "-1")).cost_ns, INT64_MAX);
  ck_assert_int_eq(stats_of(COUNTING("0", "not_equal", "1000", "1")).cost_ns, INT64_MAX);
  ck_assert_int_eq(stats_of(COUNTING("0", "less_equal", "999", "1")).cost_ns, few);
  ck_assert_int_eq(stats_of(COUNTING("1000", "greater", "0", "-1")).cost_ns, few);
  ck_assert_int_eq(stats_of(COUNTING("999", "greater_equal", "0", "-1")).cost_ns, few);
  ck_assert_int_eq(stats_of(COUNTING("0", "greater", "1000", "-1")).cost_ns,
                   stats_of(COUNTING("5", "less", "5", "1")).cost_ns);
  ck_assert_int_eq(stats_of(COUNTING("1000", "greater", "0", "1")).cost_ns, INT64_MAX);
}
END_TEST

/* A counter of a narrow type, and a state of one element with a shape, whose ops are fused. */
#define COUNTING_BY(type, first, compare, limit, next, step)                                                     \
  "graph @main(%0: f32[1]) -> (f32[1]) {\n  %1 = constant " first " : " type "[]\n  %2, %3 = while %1, %0 {\n"   \
  "    condition(%4: " type "[], %5: f32[1]) {\n      %6 = constant " limit " : " type "[]\n      %7 = " compare \
  " %4, %6 : u8[]\n      return %7\n    }\n    body(%8: " type "[], %9: f32[1]) {\n      %10 = constant " step   \
  " : " type "[]\n      %11 = " next " %8, %10 : " type "[]\n      %12 = multiply %9, %9 : f32[1]\n"             \
  "      %13 = add %12, %9 : f32[1]\n      return %11, %13\n    }\n  } : " type "[], f32[1]\n  return %3\n}\n"

/* A counter that passes the end of its type may count for ever: such a loop must not stay on its caller's scheduler. */
START_TEST(counters_that_pass_the_end_of_their_type_have_no_cost)
{
  const int64_t few = stats_of(COUNTING_BY("s32", "0", "less", "200", "add", "100")).cost_ns;
  ck_assert_int_lt(few, 1000);
  ck_assert_int_eq(stats_of(COUNTING_BY("u8", "0", "less", "200", "add", "100")).cost_ns, few);
  ck_assert_int_eq(stats_of(COUNTING_BY("u8", "0", "less", "201", "add", "100")).cost_ns, INT64_MAX);
  ck_assert_int_eq(stats_of(COUNTING_BY("u8", "250", "less_equal", "255", "add", "1")).cost_ns, INT64_MAX);
  ck_assert_int_lt(stats_of(COUNTING_BY("u8", "250", "less_equal", "254", "add", "1")).cost_ns, 1000);
  ck_assert_int_eq(stats_of(COUNTING_BY("u8", "3", "greater_equal", "0", "subtract", "1")).cost_ns, INT64_MAX);
  ck_assert_int_lt(stats_of(COUNTING_BY("u8", "3", "greater", "0", "subtract", "1")).cost_ns, 1000);
  ck_assert_int_eq(stats_of(COUNTING_BY("s8", "0", "less", "101", "add", "100")).cost_ns, INT64_MAX);
  ck_assert_int_eq(stats_of(COUNTING_BY("s8", "-100", "greater", "-120", "subtract", "29")).cost_ns, INT64_MAX);
  ck_assert_int_lt(stats_of(COUNTING_BY("s8", "-100", "greater", "-120", "subtract", "20")).cost_ns, 1000);
  ck_assert_int_eq(stats_of(COUNTING_BY("u64", "0", "less", "18446744073709551615", "add", "1")).cost_ns, INT64_MAX);
}
END_TEST

#define BRANCH(limit)                                                                                         \
  "graph @main(%0: f32[], %20: s32[]) -> (f32[]) {\n  %1 = constant 0.0 : f32[]\n  %2 = less %1, %0 : u8[]\n" \
  "  %3 = cond %2, %0, %20 {\n    true(%4: f32[], %21: s32[]) {\n      %5 = constant 0 : s32[]\n" limit       \
  "      %6, %7, %22 = while %5, %4, %23 {\n        condition(%8: s32[], %9: f32[], %24: s32[]) {\n"          \
  "          %11 = less %8, %24 : u8[]\n          return %11\n        }\n"                                    \
  "        body(%12: s32[], %13: f32[], %25: s32[]) {\n          %14 = constant 1 : s32[]\n"                  \
  "          %15 = add %12, %14 : s32[]\n          %16 = multiply %13, %13 : f32[]\n"                         \
  "          return %15, %16, %25\n        }\n      } : s32[], f32[], s32[]\n      return %7\n    }\n"        \
  "    false(%17: f32[], %26: s32[]) {\n      return %17\n    }\n  } : f32[]\n  return %3\n}\n"

/* A branch takes as long as the loops in it, so one whose loop has no known end leaves the caller's scheduler. */
START_TEST(a_branch_costs_what_its_loops_cost)
{ ck_assert_int_eq(stats_of(BRANCH("      %23 = add %21, %21 : s32[]\n")).cost_ns, INT64_MAX); }
END_TEST

typedef struct caller {
  ts_executable *exe;
  int value, wrong;
} caller;

static void *call_often(void *arg) {
  caller *c = arg;
  ts_buffer *x = filled(TS_F32, 1000, c->value), *args[] = {x, x}, *out[1];
  for (int i = 0; i < 500; i++) {
    if (!ts_status_consume_ok(ts_executable_run(c->exe, args, 2, NULL, out))) {
      c->wrong++;
      continue;
    }
    c->wrong += ((float *)out[0]->data)[i] != 2.0f * (float)c->value;
    ts_buffer_release(out[0]);
  }
  ts_buffer_release(x);
  return NULL;
}

START_TEST(many_threads_run_one_executable)
{
  ts_executable *exe = test_compile(add_text);
  caller callers[8];
  pthread_t threads[8];
  for (int i = 0; i < 8; i++) {
    callers[i] = (caller){exe, i + 1, 0};
    pthread_create(&threads[i], NULL, call_often, &callers[i]);
  }
  for (int i = 0; i < 8; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_eq(callers[i].wrong, 0);
  }
  ts_executable_release(exe);
}
END_TEST

/* The layout of a run whose arguments are donated is made by the first of them. */
static const char *const donating =
    "graph @main(%0: f32[16,16]) -> (f32[16,16]) {\n"
    "%1 = dot_general %0, %0 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16,16]\n"
    "%2 = dot_general %1, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16,16]\n"
    "%3 = dot_general %2, %1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : f32[16,16]\n"
    "%4 = cumulative_sum %3 {axis = 0, reverse = false} : f32[16,16]\nreturn %4\n}\n";

static ts_buffer *small_matrix(void) {
  ts_shape shape = ts_shape_make(2, (int64_t[]){16, 16});
  ts_buffer *b = NULL;
  if (!ts_status_consume_ok(ts_buffer_create(ts_pool_default(), TS_F32, &shape, &b))) return NULL;
  for (int i = 0; i < 256; i++) ((float *)b->data)[i] = (float)(i % 7) / 8 - 0.25f;
  return b;
}

typedef struct donor {
  ts_executable *exe;
  const ts_buffer *expected;
  int wrong;
} donor;

static void *donate_often(void *arg) {
  donor *d = arg;
  for (int i = 0; i < 20; i++) {
    ts_buffer *x = small_matrix(), *out = NULL;
    void *memory = x ? x->data : NULL;
    if (!x || !ts_status_consume_ok(ts_executable_run(d->exe, &x, 1, &(ts_run_options){.donated = TS_BITS(1)}, &out))) {
      d->wrong++;
      continue;
    }
    d->wrong += out->data != memory || memcmp(out->data, d->expected->data, (size_t)out->bytes) != 0;
    ts_buffer_release(out);
  }
  return NULL;
}

START_TEST(many_threads_donate_at_once)
{
  ts_executable *first = test_compile(donating), *exe = test_compile(donating);
  ts_buffer *x = small_matrix(), *expected;
  ck_assert_ok(ts_executable_run(first, &x, 1, NULL, &expected));
  donor donors[4];
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    donors[i] = (donor){exe, expected, 0};
    pthread_create(&threads[i], NULL, donate_often, &donors[i]);
  }
  for (int i = 0; i < 4; i++) {
    pthread_join(threads[i], NULL);
    ck_assert_int_eq(donors[i].wrong, 0);
  }
  ts_buffer_release(x);
  ts_buffer_release(expected);
  ts_executable_release(first);
  ts_executable_release(exe);
}
END_TEST

/* A constant that is a result belongs to the caller: writing to it does not change the program. */
START_TEST(a_constant_result_is_fresh)
{
  ts_executable *exe = test_compile("graph @main() -> (s32[7]) {\n  %0 = constant 5 : s32[7]\n  return %0\n}\n");
  ts_buffer *first, *second;
  ck_assert_ok(ts_executable_run(exe, NULL, 0, NULL, &first));
  memset(first->data, 0, 7 * sizeof(int32_t));
  ck_assert_ok(ts_executable_run(exe, NULL, 0, NULL, &second));
  for (int i = 0; i < 7; i++) ck_assert_int_eq(((int32_t *)second->data)[i], 5);
  ts_buffer_release(first);
  ts_buffer_release(second);
  ts_executable_release(exe);
}
END_TEST

/* A layer and its softmax, for a batch of n. */
static ts_graph *layer(int n) {
  static const char format[] =
      "graph @main(%%0: f32[%1$d,20], %%1: f32[20,13], %%2: f32[13]) -> (f32[%1$d,13], f32[%1$d]) {\n"
      "%%3 = dot_general %%0, %%1 {lhs_contract = [1], lhs_batch = [], rhs_contract = [0], rhs_batch = []} : "
      "f32[%1$d,13]\n"
      "%%4 = broadcast %%2 {shape = [%1$d,13], axes = [1]} : f32[%1$d,13]\n%%5 = add %%3, %%4 : f32[%1$d,13]\n"
      "%%6 = reduce_max %%5 {axes = [1]} : f32[%1$d]\n%%7 = broadcast %%6 {shape = [%1$d,13], axes = [0]} : "
      "f32[%1$d,13]\n"
      "%%8 = subtract %%5, %%7 : f32[%1$d,13]\n%%9 = exp %%8 : f32[%1$d,13]\n"
      "%%10 = reduce_sum %%9 {axes = [1]} : f32[%1$d]\n%%11 = broadcast %%10 {shape = [%1$d,13], axes = [0]} : "
      "f32[%1$d,13]\n"
      "%%12 = divide %%9, %%11 : f32[%1$d,13]\n%%13 = tanh %%10 : f32[%1$d]\nreturn %%12, %%13\n}\n";
  char text[2048];
  ts_graph *graph;
  snprintf(text, sizeof(text), format, n);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  return graph;
}

static int64_t run_layer(int n, const ts_compile_options *options, ts_buffer **out) {
  ts_graph *graph = layer(n);
  ts_executable *exe;
  ts_executable_stats stats;
  ts_buffer **args;
  ck_assert_ok(ts_random_args(1, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_executable_create(graph, options, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 3, NULL, out));
  ts_executable_get_stats(exe, &stats);
  ts_random_args_free(args, 3);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
  return stats.kernels_compiled;
}

/* No shape waits for LLVM that a kernel in memory can do, were it by strides that it does not have. */
START_TEST(a_batch_of_one_needs_no_compiler)
{
  static const ts_compile_options plain = {.no_fusion = true};
  ts_buffer *got[2], *expected[2];
  char message[TS_COMPARE_TEXT];
  run_layer(7, NULL, got);
  for (int i = 0; i < 2; i++) ts_buffer_release(got[i]);
  for (int n = 40; n >= 1; n -= 13) {
    ck_assert_int_eq(run_layer(n, NULL, got), 0);
    run_layer(n, &plain, expected);
    for (int i = 0; i < 2; i++) {
      ck_assert_msg(ts_compare_buffers(got[i], expected[i], 0, message), "batch %d: %s", n, message);
      ts_buffer_release(got[i]);
      ts_buffer_release(expected[i]);
    }
  }
}
END_TEST

/* An immediate compilation does not wait: not for a kernel ... */
START_TEST(nonblocking_needs_known_kernels)
{
  static const char *const text = "graph @main(%0: s16[70], %1: s16[70]) -> (s16[70]) {\n"
                                  "  %2 = multiply %0, %1 : s16[70]\n  %3 = bitwise_xor %2, %1 : s16[70]\n"
                                  "  %4 = subtract %3, %0 : s16[70]\n  return %4\n}\n";
  const ts_compile_options nonblocking = {.nonblocking = true};
  ts_graph *graph;
  ts_executable *exe;
  ts_executable_stats stats;
  ck_assert_ptr_null(ts_graph_parse(text, strlen(text), &graph));
  ck_assert_ptr_null(ts_executable_create(graph, &nonblocking, &exe));
  ck_assert_ptr_null(exe);
  ck_assert_ptr_null(ts_executable_create(graph, NULL, &exe));
  ck_assert_ptr_nonnull(exe);
  ts_executable_release(exe);
  ck_assert_ptr_null(ts_executable_create(graph, &nonblocking, &exe));
  ck_assert_ptr_nonnull(exe);
  ts_executable_get_stats(exe, &stats);
  ck_assert_int_eq(stats.kernels_compiled, 0);
  ts_executable_release(exe);
  ts_graph_destroy(graph);
}
END_TEST

/* ... nor long for the interpreter. */
START_TEST(nonblocking_folds_little)
{
  const ts_compile_options nonblocking = {.nonblocking = true};
  const int sizes[] = {4, 200};
  for (int i = 0; i < 2; i++) {
    char bytes[401], text[700];
    ts_graph *graph;
    ts_executable *exe;
    memset(bytes, '0', sizeof bytes);
    bytes[2 * sizes[i]] = '\0';
    snprintf(text, sizeof text,
             "graph @main() -> (s8[%d]) {\n  %%0 = literal \"%s\" : s8[%d]\n  %%1 = bitwise_not %%0 : s8[%d]\n"
             "  return %%1\n}\n",
             sizes[i], bytes, sizes[i], sizes[i]);
    ck_assert_ptr_null(ts_graph_parse(text, strlen(text), &graph));
    ck_assert_ptr_null(ts_executable_create(graph, &nonblocking, &exe));
    ck_assert_int_eq(exe != NULL, sizes[i] == 4);
    ts_executable_release(exe);
    ts_graph_destroy(graph);
  }
}
END_TEST

enum { MOST_PROGRAM_RESULTS = 160 };

typedef struct failing {
  ts_graph *graph;
  ts_buffer **args;
  size_t params, results;
} failing;

/* Compiles and runs the program while the n-th allocation fails, and returns how many blocks that left. */
static int64_t fail_at(const failing *f, int64_t n, bool *out_done) {
  ts_buffer *out[MOST_PROGRAM_RESULTS];
  const int64_t live = ts_alloc_live();
  ts_alloc_fail_after(n, true);
  ts_executable *exe = NULL;
  ts_status status = ts_executable_create(f->graph, NULL, &exe);
  if (!status) status = ts_executable_run(exe, f->args, f->params, NULL, out);
  *out_done = ts_alloc_failures() == 0;
  ts_alloc_fail_after(0, false);
  if (status)
    ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  else
    for (size_t i = 0; i < f->results; i++) ts_buffer_release(out[i]);
  ts_status_free(status);
  ts_executable_release(exe);
  return ts_alloc_live() - live;
}

/* Kernels that the background thread caches meanwhile leave blocks, too, but not each time. */
START_TEST(every_allocation_may_fail)
{
  enum { KEPT = 8, TRIES = 5 };
  failing f;
  char *text = testing_read(programs.gl_pathv[_i]);
  ck_assert_ok(ts_graph_parse(text, strlen(text), &f.graph));
  free(text);
  f.params = ts_graph_region(f.graph, TS_ROOT)->params.count;
  f.results = ts_graph_region(f.graph, TS_ROOT)->results.count;
  ck_assert_uint_le(f.results, MOST_PROGRAM_RESULTS);
  ck_assert_ok(ts_random_args(1, f.graph, ts_pool_default(), &f.args));
  ts_executable *warm;
  ck_assert_ok(ts_executable_create(f.graph, NULL, &warm));
  ts_executable_release(warm);
  bool done = false;
  for (int64_t n = 1; !done && n < 100000; n++) {
    int64_t left = KEPT + 1;
    for (int i = 0; i < TRIES && left > KEPT; i++) left = fail_at(&f, n, &done);
    ck_assert_int_le(left, KEPT);
  }
  ck_assert(done);
  ts_random_args_free(f.args, f.params);
  ts_graph_destroy(f.graph);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("exec");
  TCase *t = tcase_create("exec");
  find_programs();
  int n = (int)programs.gl_pathc;
  tcase_set_timeout(t, 60);
  tcase_add_test(t, wrong_arguments_are_refused);
  tcase_add_test(t, results_are_of_the_pool_that_is_asked_for);
  tcase_add_test(t, alike_layers_share_what_is_kept_of_them);
  tcase_add_test(t, a_loop_writes_what_it_carries_in_place);
  tcase_add_test(t, a_donated_argument_gives_its_memory);
  tcase_add_test(t, many_donated_arguments);
  tcase_add_test(t, a_result_beside_sums_takes_a_donated_argument);
  tcase_add_loop_test(t, large_sums_are_whole, 0, 2);
  tcase_add_loop_test(t, large_moves_are_whole, 0, 2);
  tcase_add_test(t, counted_loops_have_a_cost);
  tcase_add_test(t, counters_that_pass_the_end_of_their_type_have_no_cost);
  tcase_add_test(t, a_branch_costs_what_its_loops_cost);
  tcase_add_test(t, many_threads_run_one_executable);
  tcase_add_test(t, many_threads_donate_at_once);
  tcase_add_test(t, a_batch_of_one_needs_no_compiler);
  tcase_add_test(t, a_constant_result_is_fresh);
  tcase_add_test(t, nonblocking_needs_known_kernels);
  tcase_add_test(t, nonblocking_folds_little);
  tcase_add_loop_test(t, every_allocation_may_fail, 0, n);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
