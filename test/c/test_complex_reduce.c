/* Products of complex numbers over axes against the interpreter, bit for bit: every shape of kept and reduced axes, no
 * elements, several blocks of the tree; special values; the same bits on any number of threads; cancelling; allocations
 * that fail. */
#include "exec/executable.h"
#include "kernel/ref/ref.h"
#include "routine_check.h"
#include "tensors.h"
#include "testing.h"

#include "tool/compare.h"

#include <math.h>

static const ts_dtype types[] = {TS_C64, TS_C128};
enum { TYPES = sizeof types / sizeof *types };

typedef struct product_case {
  ts_shape shape;
  ts_dims axes;
} product_case;

#define DIMS(...)                                                                                  \
  {                                                                                                \
    .rank = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), .dims = { __VA_ARGS__ } \
  }
static const product_case cases[] = {
    {{0}, {0}},
    {DIMS(1), DIMS(0)},
    {DIMS(0), DIMS(0)},
    {DIMS(5), {0}},
    {DIMS(3, 0), DIMS(1)},
    {DIMS(0, 3), DIMS(1)},
    {DIMS(31), DIMS(0)},
    {DIMS(33), DIMS(0)},
    {DIMS(7, 5), DIMS(0)},
    {DIMS(7, 5), DIMS(1)},
    {DIMS(7, 5), DIMS(0, 1)},
    {DIMS(40, 3), DIMS(0)},
    {DIMS(3, 40), DIMS(1)},
    {DIMS(2, 65, 17), DIMS(1)},
    {DIMS(9, 3, 8, 2), DIMS(0, 2)},
    {DIMS(9, 3, 8, 2), DIMS(1, 3)},
    {DIMS(4, 1, 6, 1, 5), DIMS(0, 2, 3)},
    {DIMS(5, 6, 7), DIMS(0, 1)},
    {DIMS(5, 6, 7), DIMS(1, 2)},
    {DIMS(16384), DIMS(0)},
    {DIMS(16385), DIMS(0)},
    {DIMS(100003), DIMS(0)},
    {DIMS(3, 20000), DIMS(1)},
    {DIMS(20000, 11), DIMS(0)},
    {DIMS(130, 3, 130), DIMS(0, 2)},
};
enum { CASES = sizeof cases / sizeof *cases };

typedef struct program {
  ts_graph *graph;
  ts_executable *exe;
  ts_buffer *x;
} program;

static double noise(uint64_t *state) {
  *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (double)(*state >> 33) / (double)(INT64_C(1) << 31);
}

/* Near the unit circle, so that products stay finite; one in `special` is special, 0: none. */
static void fill(ts_buffer *x, int special) {
  static const double values[] = {0, -0.0, INFINITY, -INFINITY, NAN, 1e-300, -1e38, 3e38};
  uint64_t state = 5;
  for (int64_t i = 0; i < ts_shape_elements(&x->shape); i++) {
    const double angle = 7 * noise(&state), size = 1 + (noise(&state) - 0.5) / 64;
    double re = size * cos(angle), im = size * sin(angle);
    if (special && noise(&state) * special < 1) re = values[(int)(noise(&state) * 8)];
    if (special && noise(&state) * special < 1) im = values[(int)(noise(&state) * 8)];
    ts_scalar_store(x->dtype, ts_scalar_complex(x->dtype, re, im),
                    (char *)x->data + (size_t)i * ts_dtype_size(x->dtype));
  }
}

static program make(ts_dtype type, const product_case *c, int special) {
  program p = {.graph = test_graph()};
  ts_value_id x = test_add_param(p.graph, TS_ROOT, type, c->shape);
  x = test_add_op(p.graph, TS_ROOT, TS_OP_REDUCE_PRODUCT, &(ts_attrs){.axes = c->axes}, &x, 1);
  ck_assert_ok(ts_graph_set_results(p.graph, TS_ROOT, &x, 1));
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &c->shape, &p.x));
  fill(p.x, special);
  ck_assert_ok(ts_executable_create(p.graph, NULL, &p.exe));
  return p;
}

static void drop(program *p) {
  ts_buffer_release(p->x);
  ts_executable_release(p->exe);
  ts_graph_destroy(p->graph);
}

START_TEST(products_are_those_of_the_interpreter)
{
  for (int special = 0; special <= 40; special += 20)
    for (int c = 0; c < CASES; c++) {
      program p = make(types[_i], &cases[c], special);
      ts_buffer *expected, *got;
      char message[TS_COMPARE_TEXT];
      ck_assert_ok(ts_ref_run(p.graph, &p.x, 1, ts_pool_default(), &expected));
      ck_assert_ok(ts_executable_run(p.exe, &p.x, 1, NULL, &got));
      ck_assert_msg(ts_compare_buffers(got, expected, 0, message), "case %d: %s", c, message);
      ts_buffer_release(expected);
      ts_buffer_release(got);
      drop(&p);
    }
}
END_TEST

START_TEST(the_same_bits_on_any_number_of_threads)
{
  for (int t = 0; t < TYPES; t++) {
    program p = make(types[t], &cases[_i], 0);
    check_routine_threads(p.graph, &p.x);
    drop(&p);
  }
}
END_TEST

START_TEST(a_cancelled_run_ends)
{
  program p = make(TS_C64, &cases[_i], 0);
  check_routine_cancelled(p.graph, &p.x);
  drop(&p);
}
END_TEST

START_TEST(every_allocation_failing)
{
  program p = make(TS_C128, &cases[CASES - 1], 0);
  check_routine_allocations(p.graph, &p.x);
  drop(&p);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("complex_reduce");
  TCase *values = tcase_create("values"), *memory = tcase_create("memory");
  tcase_set_timeout(values, 120);
  tcase_set_timeout(memory, 60);
  tcase_add_loop_test(values, products_are_those_of_the_interpreter, 0, TYPES);
  tcase_add_loop_test(values, the_same_bits_on_any_number_of_threads, 0, CASES);
  tcase_add_checked_fixture(memory, test_leaks_begin, test_leaks_end);
  tcase_add_loop_test(memory, a_cancelled_run_ends, 0, CASES);
  tcase_add_test(memory, every_allocation_failing);
  suite_add_tcase(suite, values);
  suite_add_tcase(suite, memory);
  return testing_run(suite);
}
