/* Convolution against the interpreter: every type; strides, padding of either sign, both dilations, groups, depthwise,
 * any number of spatial dims; infinities in the kernel; underflow; the same bits on any number of threads; cancelling.
 */
#include "exec/executable.h"
#include "exec/pool.h"
#include "kernel/ref/ref.h"
#include "kernel/routine.h"
#include "random_graph.h"
#include "tensors.h"
#include "testing.h"

#include "tool/compare.h"

static const char *const types[] = {"f32", "f64", "f16", "bf16", "s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"};
enum { TYPES = sizeof types / sizeof *types };

typedef struct conv_case {
  const char *x, *kernel, *out, *strides, *low, *high, *input_dilation, *kernel_dilation;
  int groups;
} conv_case;

static const conv_case cases[] = {
    {"5,7", "7,3", "5,3", "", "", "", "", "", 1},
    {"5,8", "2,12", "5,12", "", "", "", "", "", 4},
    {"2,9,4", "3,4,5", "2,7,5", "1", "0", "0", "1", "1", 1},
    {"2,9,4", "3,4,5", "2,9,5", "1", "1", "1", "1", "1", 1},
    {"2,9,4", "3,4,5", "2,5,5", "2", "2", "0", "1", "1", 1},
    {"2,9,4", "3,4,5", "2,17,5", "1", "1", "1", "2", "1", 1},
    {"2,9,4", "3,4,5", "2,4,5", "2", "-1", "1", "1", "1", 1},
    {"2,9,20", "3,20,5", "2,9,5", "1", "2", "2", "1", "2", 1},
    {"2,9,20", "3,20,33", "2,20,33", "1", "2", "3", "2", "1", 1},
    {"2,9,20", "3,20,33", "2,4,33", "5", "-2", "8", "2", "2", 1},
    {"1,12,11,3", "7,7,3,70", "1,6,6,70", "2,2", "3,3", "2,3", "1,1", "1,1", 1},
    {"3,8,9,17", "3,3,17,19", "3,8,9,19", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"3,8,9,17", "3,3,17,19", "3,6,7,19", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"3,8,9,17", "1,1,17,19", "3,8,9,19", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"3,8,9,17", "1,1,17,40", "3,4,5,40", "2,2", "0,0", "0,0", "1,1", "1,1", 1},
    /* one tap with few features, which is a product (pass/vector_dot.h) */
    {"3,8,9,1", "1,1,1,1", "3,8,9,1", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"3,8,9,5", "1,1,5,2", "3,8,9,2", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"3,8,9,70", "1,1,70,8", "3,8,9,8", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"3,40,5", "1,5,3", "3,20,3", "2", "0", "0", "1", "1", 1},
    {"3,40,5", "1,5,3", "3,42,3", "1", "1", "1", "1", "1", 1},
    {"0,8,5", "1,5,3", "0,8,3", "1", "0", "0", "1", "1", 1},
    {"3,8,0", "1,0,3", "3,8,3", "1", "0", "0", "1", "1", 1},
    {"3,8,9,12", "3,3,4,18", "3,8,9,18", "1,1", "1,1", "1,1", "1,1", "1,1", 3},
    {"3,8,9,12", "3,3,1,12", "3,8,9,12", "1,1", "1,1", "1,1", "1,1", "1,1", 12},
    {"2,8,9,131", "3,2,1,131", "2,4,7,131", "2,1", "1,0", "1,0", "1,1", "1,2", 131},
    {"2,8,9,6", "3,3,1,12", "2,8,9,12", "1,1", "1,1", "1,1", "1,1", "1,1", 6},
    {"2,4,5,6", "3,3,1,6", "2,8,10,6", "1,1", "2,2", "1,1", "2,2", "1,1", 6},
    {"2,5,40,9", "3,3,9,37", "2,5,40,37", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"2,9,23,9", "3,2,9,48", "2,5,13,48", "2,2", "1,2", "1,2", "1,1", "1,1", 1},
    {"2,9,23,5", "3,2,5,16", "2,9,22,16", "1,1", "2,0", "2,0", "1,1", "2,1", 1},
    {"2,9,23,5", "3,2,5,16", "2,17,44,16", "1,1", "1,0", "1,0", "2,2", "1,1", 1},
    {"2,9,20", "3,20,33", "2,9,33", "2", "1", "1", "2", "1", 1},
    {"2,19,20", "3,20,33", "2,10,33", "4", "1", "1", "2", "1", 1},
    {"2,9,23,5", "3,2,5,16", "2,9,23,16", "2,2", "1,0", "1,1", "2,2", "1,1", 1},
    {"1,2,400,40", "3,1,40,40", "1,1,400,40", "1,1", "0,0", "0,0", "2,1", "1,1", 1},
    {"2,9,23,5", "3,2,5,33", "2,5,19,33", "1,1", "-1,-2", "-1,-1", "1,1", "1,1", 1},
    {"2,9,23,5", "3,2,5,33", "2,8,23,33", "1,1", "2,-1", "-1,2", "1,1", "1,1", 1},
    {"3,31,4", "5,4,32", "3,31,32", "1", "2", "2", "1", "1", 1},
    {"2,6,40,35", "3,3,1,35", "2,3,20,35", "2,2", "1,1", "0,0", "1,1", "1,1", 35},
    {"2,6,40,35", "2,5,1,35", "2,7,40,35", "1,1", "1,2", "1,2", "1,1", "1,1", 35},
    {"2,6,4,35", "3,3,1,35", "2,13,4,35", "1,1", "2,1", "2,1", "2,1", "1,1", 35},
    {"3,40,20", "3,1,20", "3,36,20", "1", "-1", "-1", "1", "1", 20},
    {"3,20", "1,20", "3,20", "", "", "", "", "", 20},
    {"2,6,7,1", "3,2,1,1", "2,6,6,1", "1,1", "1,0", "1,0", "1,1", "1,1", 1},
    {"2,6,7,1", "3,2,1,9", "2,6,8,9", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"2,3,4,5,6", "2,2,2,6,7", "2,3,3,4,7", "1,1,1", "1,0,0", "0,0,0", "1,1,1", "1,1,1", 1},
    {"1,2,2,2,2,2", "1,2,1,2,2,3", "1,2,1,2,1,3", "1,1,1,1", "0,0,0,0", "0,0,0,0", "1,1,1,1", "1,1,1,1", 1},
    {"1,2,2,2,2,2,1", "1,2,1,2,2,1,3", "1,2,1,2,1,1,3", "1,1,1,1,1", "0,0,0,0,0", "0,0,0,0,0", "1,1,1,1,1", "1,1,1,1,1",
     1},
    {"0,5,4", "3,4,5", "0,3,5", "1", "0", "0", "1", "1", 1},
    {"2,0,4", "3,4,5", "2,2,5", "1", "2", "2", "1", "1", 1},
    {"2,5,0", "3,0,5", "2,3,5", "1", "0", "0", "1", "1", 1},
    {"2,5,4", "3,4,0", "2,3,0", "1", "0", "0", "1", "1", 1},
    /* many terms and few results, as gradients of kernels */
    {"1,16,16,100", "15,15,100,6", "1,4,4,6", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"2,16,10,101", "16,10,101,18", "2,2,3,18", "1,1", "0,1", "1,1", "1,1", "1,1", 1},
    {"2,2,4", "3,4,5", "2,0,5", "1", "0", "0", "1", "1", 1},
    {"2,3,4", "2,4,5", "2,1,5", "1", "1000000000", "-1000000001", "1", "1", 1},
    {"1,700,2", "1,2,3", "1,2,3", "700", "0", "700", "1", "1", 1},
    {"1,3,2", "4,2,3", "1,1,3", "1", "0", "6000000000", "3000000000", "4000000000", 1},
    /* depthwise, two rows at once: all their lines, few points, two rows of taps, none to share */
    {"2,5,11,40", "3,3,1,40", "2,5,11,40", "1,1", "1,1", "1,1", "1,1", "1,1", 40},
    {"2,5,3,40", "3,3,1,40", "2,5,3,40", "1,1", "1,1", "1,1", "1,1", "1,1", 40},
    {"1,6,9,33", "2,3,1,33", "1,5,9,33", "1,1", "0,1", "0,1", "1,1", "1,1", 33},
    {"1,4,9,33", "1,3,1,33", "1,4,9,33", "1,1", "0,1", "0,1", "1,1", "1,1", 33},
    {"2,3,4,9,16", "1,3,3,1,16", "2,3,4,9,16", "1,1,1", "0,1,1", "0,1,1", "1,1,1", "1,1,1", 16},
    {"2,5,11,13", "3,3,1,13", "2,5,11,13", "1,1", "1,1", "1,1", "1,1", "1,1", 13},
    {"2,50,15", "3,1,15", "2,50,15", "1", "1", "1", "1", "1", 15},
    /* sums of several chains, and of several blocks (tensor/contract_order.h) */
    {"2,300,5", "150,1,5", "2,151,5", "1", "0", "0", "1", "1", 5},
    {"1,40,700", "2,700,9", "1,20,9", "2", "1", "0", "1", "1", 1},
    {"2,2,15,700", "1,2,700,72", "2,2,16,72", "1,1", "0,1", "0,1", "1,1", "1,1", 1},
    {"1,3,20,600", "1,2,600,72", "1,3,39,72", "1,1", "0,1", "0,0", "1,2", "1,1", 1},
    {"1,500,1", "300,1,1", "1,201,1", "1", "0", "0", "1", "1", 1},
    {"1,4,20,70", "3,5,70,16", "1,4,20,16", "1,1", "1,2", "1,2", "1,1", "1,1", 1},
    {"1,60,60,3", "58,58,3,4", "1,3,3,4", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"1,60,60,3", "58,58,3,4", "1,4,4,4", "1,1", "1,1", "0,0", "1,1", "1,1", 1},
    {"1,100,100,4", "99,99,2,4", "1,2,2,4", "1,1", "0,0", "0,0", "1,1", "1,1", 2},
};
enum { CASES = sizeof cases / sizeof *cases };

static ts_graph *make_graph(const char *type, const conv_case *c) {
  char text[1024];
  ts_graph *graph;
  int length =
      snprintf(text, sizeof text,
               "graph @main(%%0: %s[%s], %%1: %s[%s]) -> (%s[%s]) {\n  %%2 = conv %%0, %%1 {strides = [%s], low = "
               "[%s], high = [%s], input_dilation = [%s], kernel_dilation = [%s], groups = %d} : %s[%s]\n"
               "  return %%2\n}\n",
               type, c->x, type, c->kernel, type, c->out, c->strides, c->low, c->high, c->input_dilation,
               c->kernel_dilation, c->groups, type, c->out);
  ck_assert_ok(ts_graph_parse(text, (size_t)length, &graph));
  return graph;
}

/* What the operands have: random numbers; an infinity in the kernel; numbers whose products underflow, with sums of -0
 * and +0. */
typedef enum operands { RANDOM, INFINITE, TINY } operands;

static void fill_tiny(ts_buffer *buffer, uint32_t seed) {
  const int64_t size = (int64_t)ts_dtype_size(buffer->dtype);
  const double tiny = buffer->dtype == TS_F64 ? 1e-300 : 1e-30;
  for (int64_t at = 0; at < buffer->bytes; at += size, seed = seed * 1664525 + 1013904223)
    ts_scalar_store(buffer->dtype, ts_scalar_from_f64(buffer->dtype, seed >> 31 ? -tiny : tiny),
                    (char *)buffer->data + at);
}

static void fill(ts_buffer **args, operands kind) {
  if (kind == INFINITE && args[1]->bytes > 0)
    ts_scalar_store(args[1]->dtype, ts_scalar_from_f64(args[1]->dtype, __builtin_inf()), args[1]->data);
  for (int i = 0; kind == TINY && i < 2; i++) fill_tiny(args[i], (uint32_t)i + 1);
}

static void check(const char *type, const conv_case *c, operands kind) {
  ts_graph *graph = make_graph(type, c);
  ts_buffer **args, *expected, *got;
  ts_executable *exe;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_random_args((uint64_t)(c - cases) + 7, graph, ts_pool_default(), &args));
  fill(args, kind);
  ck_assert_ok(ts_ref_run(graph, args, 2, ts_pool_default(), &expected));
  ck_assert_ok(ts_executable_create(graph, NULL, &exe));
  ck_assert_ok(ts_executable_run(exe, args, 2, NULL, &got));
  ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "%s, case %d: %s", type, (int)(c - cases), message);
  ts_buffer_release(got);
  ts_buffer_release(expected);
  ts_executable_release(exe);
  ts_random_args_free(args, 2);
  ts_graph_destroy(graph);
}

START_TEST(every_type_and_shape)
{
  for (int c = 0; c < CASES; c++)
    if (testing_takes(c + _i, 3)) check(types[_i], &cases[c], RANDOM);
}
END_TEST

START_TEST(infinities_meet_padding)
{
  for (int c = 0; c < CASES; c++)
    if (testing_takes(c + _i, 3)) check(types[_i], &cases[c], INFINITE);
}
END_TEST

START_TEST(zeros_of_underflow_have_their_signs)
{
  for (int c = 0; c < CASES; c++)
    if (testing_takes(c + _i, 3)) check(types[_i], &cases[c], TINY);
}
END_TEST

static int64_t most_tasks; /* since it was set to 0 */

static void run_backwards(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  if (tasks > most_tasks) most_tasks = tasks;
  for (int64_t t = tasks; t-- > 0;) fn(arg, t, (int)(t % self->width));
}

static const conv_case large[] = {
    {"2,40,41,32", "3,3,32,48", "2,40,41,48", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"1,64,64,3", "7,7,3,64", "1,32,32,64", "2,2", "3,3", "2,2", "1,1", "1,1", 1},
    {"2,40,40,96", "3,3,1,96", "2,40,40,96", "1,1", "1,1", "1,1", "1,1", "1,1", 96},
    {"3,20,33,8", "3,3,8,40", "3,20,33,40", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"1,70000,16", "3,1,16", "1,70000,16", "1", "1", "1", "1", "1", 16},
    {"1,4001,30", "1,30,40", "1,4001,40", "1", "0", "0", "1", "1", 1},
    {"2,4003,8", "3,8,40", "2,2001,40", "2", "0", "0", "1", "1", 1},
    {"2,30,31,48", "1,1,48,72", "2,30,31,72", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    {"3,20,33,40", "3,3,40,40", "3,40,66,40", "1,1", "1,1", "2,2", "2,2", "1,1", 1},
    {"2,64,65,40", "3,3,40,3", "2,64,65,3", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"1,200000,16", "2,1,16", "1,200001,16", "1", "1", "1", "1", "1", 16},
    /* the kernel in panels: several groups of them, parts of the features, strides, points of all lines in a row */
    {"1,7,14,128", "3,3,128,288", "1,7,14,288", "1,1", "1,1", "1,1", "1,1", "1,1", 1},
    {"1,14,29,128", "3,3,128,240", "1,7,15,240", "2,2", "1,1", "1,1", "1,1", "1,1", 1},
    {"2,5,9,300", "1,1,300,456", "2,5,9,456", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    /* panels that stay in L1, where rows of the kernel compete for sets */
    {"2,12,15,32", "1,1,32,512", "2,12,15,512", "1,1", "0,0", "0,0", "1,1", "1,1", 1},
    /* a single row with padding, in pieces; rows of lhs that compete for a set */
    {"2,7000,40", "3,40,16", "2,7000,16", "1", "1", "1", "1", "1", 1},
    {"1,500,1024", "1,1024,16", "1,500,16", "1", "0", "0", "1", "1", 1},
};

START_TEST(the_same_bits_on_any_number_of_threads)
{
  ts_graph *graph = make_graph("f32", &large[_i]);
  ts_buffer **args, *expected, *got;
  char message[TS_COMPARE_TEXT];
  ck_assert_ok(ts_random_args(5, graph, ts_pool_default(), &args));
  ck_assert_ok(ts_ref_run(graph, args, 2, ts_pool_default(), &expected));
  ck_assert_ok(ts_buffer_create(ts_pool_default(), expected->dtype, &expected->shape, &got));
  for (int width = 1; width <= 33; width += width < 4 ? 1 : 10) {
    ts_arena arena;
    ts_arena_init(&arena);
    ts_routine_plan plan = {.routine = ts_routine_of(TS_OP_CONV, TS_F32), .operand_count = 2};
    ck_assert_ok(plan.routine->plan(&(ts_routine_request){.graph = graph, .arena = &arena}, &plan));
    if (plan.kernel) {
      ts_kernel *kernel;
      ck_assert_ok(ts_jit_get_kernels(plan.kernel, 1, &kernel));
      plan.routine->adopt(&plan, kernel);
      ts_kernel_release(kernel);
    }
    const ts_parallel backwards = {.width = width, .run = run_backwards};
    int64_t bytes = plan.workspace + plan.thread_workspace * width;
    void *space, *base[] = {args[0]->data, args[1]->data, got->data};
    const uint32_t ids[] = {0, 1, 2};
    ck_assert_ok(ts_pool_alloc(ts_pool_default(), bytes + 64, &space));
    most_tasks = 0;
    ck_assert_ok(plan.routine->run(&plan, &(ts_routine_run){.base = base,
                                                            .operands = ids,
                                                            .results = ids + 2,
                                                            .workspace = (char *)space + plan.thread_workspace * width,
                                                            .thread_workspace = space,
                                                            .parallel = &backwards,
                                                            .pool = ts_pool_default()}));
    if (width == 1) { /* NaNs of the interpreter may have other bits; NaNs of other numbers of threads may not */
      ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "case %d: %s", _i, message);
      memcpy(expected->data, got->data, (size_t)got->bytes);
    }
    ck_assert_mem_eq(got->data, expected->data, (size_t)got->bytes);
    ck_assert_msg(width == 1 || most_tasks > 1, "case %d is one task", _i);
    ts_pool_free(ts_pool_default(), space, bytes + 64);
    plan.routine->deinit(&plan);
    ts_arena_deinit(&arena);
  }
  ts_buffer_release(got);
  ts_buffer_release(expected);
  ts_random_args_free(args, 2);
  ts_graph_destroy(graph);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("conv");
  TCase *conv = tcase_create("conv");
  tcase_set_timeout(conv, 120);
  tcase_add_loop_test(conv, every_type_and_shape, 0, TYPES);
  tcase_add_loop_test(conv, infinities_meet_padding, 0, 4);
  tcase_add_loop_test(conv, zeros_of_underflow_have_their_signs, 0, 2);
  testing_add_many(conv, the_same_bits_on_any_number_of_threads, sizeof large / sizeof *large);
  suite_add_tcase(suite, conv);
  return testing_run(suite);
}
