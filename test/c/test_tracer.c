/* Programs as a front end traces them, without a VM: captures, hidden arguments, control ops, refusals. Each is
 * compared as text. */
#include "front/tracer.h"

#include "graph_text.h"
#include "tensors.h"

#define OPERANDS(...) \
  ((ts_operands){(ts_operand[]){__VA_ARGS__}, sizeof((ts_operand[]){__VA_ARGS__}) / sizeof(ts_operand)})
#define TYPES(...) ((ts_types){(ts_type[]){__VA_ARGS__}, sizeof((ts_type[]){__VA_ARGS__}) / sizeof(ts_type)})

static const ts_type scalar = {.dtype = TS_S32};

static ts_operand number(int64_t value) {
  return (ts_operand){.is_number = true, .number = {TS_NUMBER_SIGNED, .s = value}, .shape = &ts_shape_scalar};
}

static ts_tracer new_tracer(size_t hidden_count) {
  ts_tracer t = {0};
  test_ok(ts_tracer_init(&t, hidden_count));
  return t;
}

static ts_value_id add_param(ts_tracer *t, ts_dtype dtype, ts_shape shape) {
  ts_value_id value;
  test_ok(ts_tracer_param(t, &(ts_type){dtype, shape}, &value));
  return value;
}

/* A value as an operand of the current region. */
static ts_operand use(ts_tracer *t, ts_value_id value) {
  ts_value_id here;
  test_ok(ts_tracer_value(t, value, &here));
  return ts_tracer_operand(t, here);
}

static ts_value_id add_op(ts_tracer *t, ts_opcode code, ts_operands operands) {
  ts_value_id value;
  test_ok(ts_tracer_op(t, code, operands, &(ts_attrs){0}, &value));
  return value;
}

/* Opens a region with one parameter per type. */
static ts_region_id open(ts_tracer *t, ts_types types, ts_region_id like) {
  ts_region_id region;
  test_ok(ts_tracer_open(t, types, like, &region));
  return region;
}

static ts_value_id param_of(const ts_tracer *t, ts_region_id region) {
  return ts_graph_region(t->graph, region)->params.data[0];
}

/* Finishes the program, compares it with the text, and frees it. */
static void check(ts_tracer *t, ts_operands results, const char *expected) {
  test_ok(ts_tracer_finish(t, results));
  test_ok(ts_graph_verify(t->graph));
  char *text = graph_text(t->graph);
  ck_assert_str_eq(text, expected);
  ts_free(text);
  ts_tracer_deinit(t);
}

START_TEST(ops_convert_and_broadcast_their_operands)
{
  ts_tracer t = new_tracer(0);
  ts_value_id x = add_param(&t, TS_U8, SHAPE(2, 3)), y = add_param(&t, TS_S16, SHAPE(3));
  ts_value_id sum = add_op(&t, TS_OP_ADD, OPERANDS(use(&t, x), use(&t, y)));
  check(&t, OPERANDS(use(&t, sum), number(7)),
        "graph @main(%0: u8[2,3], %1: s16[3]) -> (s16[2,3], s32[]) {\n"
        "  %2 = convert %0 : s16[2,3]\n"
        "  %3 = broadcast %1 {shape = [2,3], axes = [1]} : s16[2,3]\n"
        "  %4 = add %2, %3 : s16[2,3]\n"
        "  %5 = constant 7 : s32[]\n"
        "  return %4, %5\n"
        "}\n");
}
END_TEST

START_TEST(values_of_outer_regions_are_captured_once_for_each_region_between)
{
  ts_tracer t = new_tracer(0);
  size_t own;
  ts_value_id x = add_param(&t, TS_S32, SHAPE()), out;
  ts_region_id condition = open(&t, TYPES(scalar), TS_NO_ID);
  ts_value_id less = add_op(&t, TS_OP_LESS, OPERANDS(use(&t, param_of(&t, condition)), use(&t, x)));
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, less))));
  ts_region_id body = open(&t, TYPES(scalar), condition);
  ts_region_id yes = open(&t, (ts_types){0}, TS_NO_ID);
  ts_value_id twice = add_op(&t, TS_OP_ADD, OPERANDS(use(&t, x), use(&t, x)));
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, twice))));
  ts_region_id no = open(&t, (ts_types){0}, yes);
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, param_of(&t, body)))));
  test_ok(ts_tracer_control(&t, TS_OP_COND, (ts_region_id[]){yes, no}, OPERANDS(use(&t, x)), &out, &own));
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, out))));
  test_ok(ts_tracer_control(&t, TS_OP_WHILE, (ts_region_id[]){condition, body}, OPERANDS(number(1)), &out, &own));
  ck_assert_uint_eq(own, 1);
  check(&t, OPERANDS(use(&t, out)),
        "graph @main(%0: s32[]) -> (s32[]) {\n"
        "  %1 = constant 1 : s32[]\n"
        "  %2, %3 = while %1, %0 {\n"
        "    condition(%4: s32[], %5: s32[]) {\n"
        "      %6 = less %4, %5 : u8[]\n"
        "      return %6\n"
        "    }\n"
        "    body(%7: s32[], %8: s32[]) {\n"
        "      %9 = constant 0 : s32[]\n"
        "      %10 = not_equal %8, %9 : u8[]\n"
        "      %11 = cond %10, %8, %7 {\n"
        "        true(%12: s32[], %13: s32[]) {\n"
        "          %14 = add %12, %12 : s32[]\n"
        "          return %14\n"
        "        }\n"
        "        false(%15: s32[], %16: s32[]) {\n"
        "          return %16\n"
        "        }\n"
        "      } : s32[]\n"
        "      return %11, %8\n"
        "    }\n"
        "  } : s32[], s32[]\n"
        "  return %2\n"
        "}\n");
}
END_TEST

START_TEST(constants_are_repeated_instead)
{
  ts_tracer t = new_tracer(0);
  size_t own;
  ts_value_id x = add_param(&t, TS_S32, SHAPE()), five, out;
  ts_operand operand = number(5);
  test_ok(ts_tracer_place(&t, &operand, &five));
  ts_region_id yes = open(&t, (ts_types){0}, TS_NO_ID);
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, five))));
  ts_region_id no = open(&t, (ts_types){0}, yes);
  test_ok(ts_tracer_close(&t, OPERANDS(number(6))));
  test_ok(ts_tracer_control(&t, TS_OP_COND, (ts_region_id[]){yes, no}, OPERANDS(use(&t, x)), &out, &own));
  check(&t, OPERANDS(use(&t, out)),
        "graph @main(%0: s32[]) -> (s32[]) {\n"
        "  %1 = constant 5 : s32[]\n"
        "  %2 = constant 0 : s32[]\n"
        "  %3 = not_equal %0, %2 : u8[]\n"
        "  %4 = cond %3 {\n"
        "    true() {\n"
        "      %5 = constant 5 : s32[]\n"
        "      return %5\n"
        "    }\n"
        "    false() {\n"
        "      %6 = constant 6 : s32[]\n"
        "      return %6\n"
        "    }\n"
        "  } : s32[]\n"
        "  return %4\n"
        "}\n");
}
END_TEST

START_TEST(hidden_arguments_are_parameters_in_the_order_of_their_use)
{
  ts_tracer t = new_tracer(3);
  ts_buffer *first = VECTOR(TS_F32, 1, 2), *last = SCALAR(TS_F64, 3);
  ts_value_id a, b, again;
  test_ok(ts_tracer_hidden(&t, 2, last, &b));
  test_ok(ts_tracer_hidden(&t, 0, first, &a));
  test_ok(ts_tracer_hidden(&t, 2, last, &again));
  ck_assert_uint_eq(b, again);
  ck_assert_uint_eq(t.used.count, 2);
  ck_assert_uint_eq(t.used.data[0], 2);
  ck_assert_uint_eq(t.used.data[1], 0);
  ts_buffer_release(first);
  ts_buffer_release(last);
  check(&t, OPERANDS(use(&t, a), use(&t, b)),
        "graph @main(%0: f64[], %1: f32[2]) -> (f32[2], f64[]) {\n"
        "  return %1, %0\n"
        "}\n");
}
END_TEST

START_TEST(other_tensors_are_constants)
{
  ts_tracer t = new_tracer(0);
  ts_buffer *one = SCALAR(TS_F64, 0.5), *two = VECTOR(TS_S8, 1, 2);
  ts_value_id a, b;
  test_ok(ts_tracer_constant(&t, one, &a));
  test_ok(ts_tracer_constant(&t, two, &b));
  ts_buffer_release(one);
  ts_buffer_release(two);
  check(&t, OPERANDS(use(&t, a), use(&t, b)),
        "graph @main() -> (f64[], s8[2]) {\n"
        "  %0 = constant 0.5 : f64[]\n"
        "  %1 = literal \"0102\" : s8[2]\n"
        "  return %0, %1\n"
        "}\n");
}
END_TEST

START_TEST(callbacks_have_results_of_the_types_that_are_given)
{
  ts_tracer t = new_tracer(0);
  ts_value_id x = add_param(&t, TS_S32, SHAPE()), first;
  ts_attrs attrs = {.callback = {.index = 3}};
  const ts_type vector = {TS_F32, SHAPE(2)};
  test_ok(ts_tracer_typed(&t, TS_OP_CALLBACK, &attrs, TYPES(scalar, vector), OPERANDS(use(&t, x)), &first));
  check(&t, OPERANDS(use(&t, first), use(&t, first + 1)),
        "graph @main(%0: s32[]) -> (s32[], f32[2]) {\n"
        "  %1, %2 = callback %0 {index = 3} {\n"
        "    types() {\n"
        "      %3 = constant 0 : s32[]\n"
        "      %4 = constant 0.0 : f32[2]\n"
        "      return %3, %4\n"
        "    }\n"
        "  } : s32[], f32[2]\n"
        "  return %1, %2\n"
        "}\n");
}
END_TEST

START_TEST(a_region_is_inlined_on_other_arguments)
{
  ts_tracer t = new_tracer(0);
  ts_value_id x = add_param(&t, TS_S32, SHAPE()), *results;
  ts_region_id square = open(&t, TYPES(scalar), TS_NO_ID);
  ts_operand p = use(&t, param_of(&t, square));
  ts_value_id product = add_op(&t, TS_OP_MULTIPLY, OPERANDS(p, p));
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, product))));
  ts_values sought = {(ts_value_id[]){product, x, 1000000}, 3};
  test_ok(ts_tracer_inline(&t, square, OPERANDS(use(&t, x)), sought, &results));
  ck_assert_error(ts_tracer_inline(&t, square, (ts_operands){0}, sought, &results), TS_INTERNAL,
                  "takes 1 values, got 0");
  ck_assert_uint_eq(results[1], results[0]);
  ck_assert_uint_eq(results[2], TS_NO_ID);
  ck_assert_uint_eq(results[3], TS_NO_ID);
  ts_operand result = use(&t, results[0]);
  ts_free(results);
  check(&t, OPERANDS(result),
        "graph @main(%0: s32[]) -> (s32[]) {\n"
        "  %1 = multiply %0, %0 : s32[]\n"
        "  return %1\n"
        "}\n");
}
END_TEST

/* ---- refusals ---- */

START_TEST(values_of_closed_regions_are_refused)
{
  ts_tracer t = new_tracer(0);
  ts_value_id out;
  ts_region_id region = open(&t, TYPES(scalar), TS_NO_ID);
  ts_value_id param = param_of(&t, region);
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, param))));
  ck_assert_error(ts_tracer_value(&t, param, &out), TS_INVALID_ARGUMENT, "outside of the function that made it");
  ck_assert_error(ts_tracer_value(&t, 100, &out), TS_INVALID_ARGUMENT, "no value 100 in this program");
  ts_tracer_deinit(&t);
}
END_TEST

START_TEST(regions_are_left_in_their_order)
{
  ts_tracer t = new_tracer(0);
  ck_assert_error(ts_tracer_leave(&t), TS_FAILED_PRECONDITION, "no region is open");
  ts_region_id outer = open(&t, (ts_types){0}, TS_NO_ID), inner = open(&t, (ts_types){0}, TS_NO_ID);
  ck_assert_error(ts_tracer_finish(&t, (ts_operands){0}), TS_FAILED_PRECONDITION, "a region is still open");
  ck_assert_error(ts_tracer_enter(&t, outer), TS_FAILED_PRECONDITION, "was not opened in the current one");
  test_ok(ts_tracer_leave(&t));
  test_ok(ts_tracer_enter(&t, inner));
  ck_assert_error(ts_tracer_check_region(&t, TS_ROOT), TS_INVALID_ARGUMENT, "expected a region of the program, got 0");
  ck_assert_error(ts_tracer_check_region(&t, 99), TS_INVALID_ARGUMENT, "expected a region of the program, got 99");
  ts_tracer_deinit(&t);
}
END_TEST

START_TEST(regions_nest_up_to_a_limit)
{
  ts_tracer t = new_tracer(0);
  ts_region_id region;
  for (int depth = 0; depth < TS_MAX_NESTING; depth++) (void)open(&t, (ts_types){0}, TS_NO_ID);
  ck_assert_error(ts_tracer_open(&t, (ts_types){0}, TS_NO_ID, &region), TS_OUT_OF_RANGE, "nested more than 1000 deep");
  ts_tracer_deinit(&t);
}
END_TEST

START_TEST(combiners_capture_nothing)
{
  ts_tracer t = new_tracer(0);
  ts_value_id x = add_param(&t, TS_S32, SHAPE(4)), y = add_param(&t, TS_S32, SHAPE()), out;
  ts_region_id combiner = open(&t, TYPES(scalar, scalar), TS_NO_ID);
  ts_value_id sum = add_op(&t, TS_OP_ADD, OPERANDS(use(&t, param_of(&t, combiner)), use(&t, y)));
  test_ok(ts_tracer_close(&t, OPERANDS(use(&t, sum))));
  ts_attrs attrs = {.reduce = {.axes = {.rank = 1}, .region = combiner}};
  ck_assert_error(ts_tracer_op(&t, TS_OP_REDUCE, OPERANDS(use(&t, x), number(0)), &attrs, &out), TS_INVALID_ARGUMENT,
                  "uses a value from outside");
  ts_tracer_deinit(&t);
}
END_TEST

START_TEST(predicates_are_one_scalar)
{
  ts_tracer t = new_tracer(0);
  ts_value_id x = add_param(&t, TS_S32, SHAPE(4)), out;
  size_t own;
  ts_region_id regions[2];
  for (int i = 0; i < 2; i++) {
    regions[i] = open(&t, (ts_types){0}, TS_NO_ID);
    test_ok(ts_tracer_close(&t, OPERANDS(number(i))));
  }
  ck_assert_error(ts_tracer_control(&t, TS_OP_COND, regions, OPERANDS(use(&t, x)), &out, &own), TS_INVALID_ARGUMENT,
                  "cond: expected a scalar predicate, got s32[4]");
  ck_assert_error(ts_tracer_control(&t, TS_OP_COND, regions, (ts_operands){0}, &out, &own), TS_INVALID_ARGUMENT,
                  "cond: expected a predicate, got 0");
  ts_tracer_deinit(&t);
}
END_TEST

START_TEST(finished_programs_are_not_traced)
{
  ts_tracer t = new_tracer(0);
  test_ok(ts_tracer_check(&t));
  test_ok(ts_tracer_finish(&t, OPERANDS(number(1))));
  ck_assert_error(ts_tracer_check(&t), TS_FAILED_PRECONDITION, "used after its function had returned");
  ts_tracer_deinit(&t);
}
END_TEST

/* A loop that captures a value, and a copy of a region; ends at the first error. */
static ts_status trace_all(ts_tracer *t) {
  ts_value_id x, less, out, *results;
  size_t own;
  ts_region_id condition, body;
  TS_TRY(ts_tracer_init(t, 0));
  TS_TRY(ts_tracer_param(t, &scalar, &x));
  TS_TRY(ts_tracer_open(t, TYPES(scalar), TS_NO_ID, &condition));
  ts_operand p = ts_tracer_operand(t, param_of(t, condition));
  TS_TRY(ts_tracer_value(t, x, &out));
  TS_TRY(ts_tracer_op(t, TS_OP_LESS, OPERANDS(p, ts_tracer_operand(t, out)), &(ts_attrs){0}, &less));
  TS_TRY(ts_tracer_close(t, OPERANDS(ts_tracer_operand(t, less))));
  TS_TRY(ts_tracer_open(t, TYPES(scalar), condition, &body));
  TS_TRY(ts_tracer_inline(t, condition, OPERANDS(number(1), number(2)), (ts_values){0}, &results));
  ts_free(results);
  TS_TRY(ts_tracer_close(t, OPERANDS(number(2))));
  TS_TRY(ts_tracer_control(t, TS_OP_WHILE, (ts_region_id[]){condition, body}, OPERANDS(number(1)), &out, &own));
  return ts_tracer_finish(t, OPERANDS(ts_tracer_operand(t, out)));
}

static void trace_and_drop(void) {
  ts_tracer t = {0};
  ts_status_free(trace_all(&t));
  ts_tracer_deinit(&t);
}

/* ---- the local view ---- */

static ts_status set_local(ts_tracer *t) {
  TS_TRY(ts_tracer_init(t, 1));
  return ts_tracer_set_local(t, &(ts_mesh){.rank = 2, .sizes = {2, 3}});
}

/* The coordinate of a partition along the second axis, as a value of the current region. */
static ts_status coordinate(ts_tracer *t, ts_value_id *out) {
  const ts_attrs second = {.slice = {.start = {.rank = 1, .dims = {1}},
                                     .limit = {.rank = 1, .dims = {2}},
                                     .stride = {.rank = 1, .dims = {1}}}};
  TS_TRY(ts_tracer_coordinates(t, out));
  return ts_tracer_op(t, TS_OP_SLICE, OPERANDS(ts_tracer_operand(t, *out)), &second, out);
}

/* A branch that uses the coordinates; a hidden argument comes after them. */
static ts_status trace_local(ts_tracer *t, ts_buffer *hidden, ts_value_id *out_index, ts_value_id *out_result) {
  ts_region_id yes, no;
  ts_value_id held;
  size_t own;
  TS_TRY(set_local(t));
  TS_TRY(ts_tracer_open(t, (ts_types){0}, TS_NO_ID, &yes));
  TS_TRY(coordinate(t, out_index));
  TS_TRY(ts_tracer_close(t, OPERANDS(ts_tracer_operand(t, *out_index))));
  TS_TRY(ts_tracer_open(t, (ts_types){0}, yes, &no));
  TS_TRY(ts_tracer_hidden(t, 0, hidden, &held));
  TS_TRY(ts_tracer_close(t, OPERANDS(ts_tracer_operand(t, held))));
  return ts_tracer_control(t, TS_OP_COND, (ts_region_id[]){yes, no}, OPERANDS(number(1)), out_result, &own);
}

START_TEST(coordinates_are_the_last_parameter)
{
  ts_tracer t = {0};
  ts_buffer *hidden = VECTOR(TS_S32, 5);
  ts_value_id index, result;
  ts_axis_set axes;
  test_ok(trace_local(&t, hidden, &index, &result));
  test_ok(ts_tracer_varying(&t, index, &axes));
  ck_assert_int_eq(axes, 2);
  test_ok(ts_tracer_varying(&t, result, &axes));
  ck_assert_int_eq(axes, 2);
  test_ok(ts_tracer_vary(&t, result, 1));
  ts_value_id more = add_op(&t, TS_OP_NEGATE, OPERANDS(use(&t, result)));
  test_ok(ts_tracer_varying(&t, more, &axes));
  ck_assert_int_eq(axes, 3);
  check(&t, OPERANDS(use(&t, more)),
        "graph @main mesh [2,3] partitioned coordinates (%0: s32[1], %1: s32[2]) -> (s32[1]) {\n"
        "  %2 = constant 1 : s32[]\n"
        "  %3 = constant 0 : s32[]\n"
        "  %4 = not_equal %2, %3 : u8[]\n"
        "  %5 = cond %4, %1, %0 {\n"
        "    true(%6: s32[2], %7: s32[1]) {\n"
        "      %8 = slice %6 {start = [1], limit = [2], stride = [1]} : s32[1]\n"
        "      return %8\n"
        "    }\n"
        "    false(%9: s32[2], %10: s32[1]) {\n"
        "      return %10\n"
        "    }\n"
        "  } : s32[1]\n"
        "  %11 = negate %5 : s32[1]\n"
        "  return %11\n"
        "}\n");
  ts_buffer_release(hidden);
}
END_TEST

static void trace_local_and_drop(ts_buffer *hidden) {
  ts_tracer t = {0};
  ts_value_id index, result;
  ts_axis_set axes;
  ts_status status = trace_local(&t, hidden, &index, &result);
  if (!status) status = ts_tracer_varying(&t, result, &axes);
  ts_status_free(status);
  ts_tracer_deinit(&t);
}

START_TEST(every_allocation_of_a_local_view_may_fail)
{
  ts_buffer *hidden = VECTOR(TS_S32, 5);
  CK_FAIL_EACH_ALLOCATION(trace_local_and_drop(hidden));
  ts_buffer_release(hidden);
}
END_TEST

START_TEST(every_allocation_may_fail)
{
  ts_tracer t = {0};
  test_ok(trace_all(&t));
  ts_tracer_deinit(&t);
  CK_FAIL_EACH_ALLOCATION(trace_and_drop());
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("tracer");
  TCase *tc = tcase_create("tracer");
  tcase_add_checked_fixture(tc, test_leaks_begin, test_leaks_end);
  tcase_add_test(tc, ops_convert_and_broadcast_their_operands);
  tcase_add_test(tc, values_of_outer_regions_are_captured_once_for_each_region_between);
  tcase_add_test(tc, constants_are_repeated_instead);
  tcase_add_test(tc, hidden_arguments_are_parameters_in_the_order_of_their_use);
  tcase_add_test(tc, other_tensors_are_constants);
  tcase_add_test(tc, callbacks_have_results_of_the_types_that_are_given);
  tcase_add_test(tc, a_region_is_inlined_on_other_arguments);
  tcase_add_test(tc, values_of_closed_regions_are_refused);
  tcase_add_test(tc, regions_are_left_in_their_order);
  tcase_add_test(tc, regions_nest_up_to_a_limit);
  tcase_add_test(tc, combiners_capture_nothing);
  tcase_add_test(tc, predicates_are_one_scalar);
  tcase_add_test(tc, finished_programs_are_not_traced);
  tcase_add_test(tc, every_allocation_may_fail);
  tcase_add_test(tc, coordinates_are_the_last_parameter);
  tcase_add_test(tc, every_allocation_of_a_local_view_may_fail);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
