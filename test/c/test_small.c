/* Types of fewer than 8 bits and floats of 8 bits: every value of them, and for ops of two operands every pair. */
#include "ir/syntax.h"
#include "kernel/ref/ref.h"
#include "tensors.h"
#include "testing.h"
#include "tool/compare.h"

#include <math.h>

static const ts_dtype small[] = {TS_S2, TS_S4, TS_U2, TS_U4, TS_F8, TS_F8E4M3FN};
enum { SMALL = sizeof small / sizeof *small, FLOATS = 4 /* the first of the floats */ };

static int values_of(ts_dtype type) { return 1 << ts_dtype_bits(type); }

/* The value with the bits `bits`. */
static ts_scalar value_of(ts_dtype type, int bits) {
  return ts_dtype_is_float(type) ? (ts_scalar){.bits = (uint64_t)bits} : ts_scalar_from_s64(type, bits);
}

/* ---- scalars ---- */

/* The nearest value of the format, of equally near ones the even one; by looking at all of them. `above` is the end of
 * the numbers: a value nearer to it than to the largest number overflows. */
static ts_scalar nearest(ts_dtype type, double x, double above) {
  int largest = type == TS_F8 ? 0x7B : 0x7E, overflow = type == TS_F8 ? 0x7C : 0x7F, best = 0;
  double distance = INFINITY, magnitude = fabs(x);
  for (int bits = 0; bits <= largest + 1; bits++) {
    double value = bits > largest ? above : ts_scalar_to_f64(type, (ts_scalar){.bits = (uint64_t)bits});
    double d = fabs(value - magnitude);
    if (d > distance || (d == distance && bits % 2)) continue;
    distance = d;
    best = bits;
  }
  if (magnitude >= above || best > largest) best = overflow;
  return (ts_scalar){.bits = (uint64_t)best | (signbit(x) ? 0x80u : 0)};
}

static void check_rounding(ts_dtype type, double above, double x) {
  uint64_t got = ts_scalar_from_f64(type, x).bits, expected = nearest(type, x, above).bits;
  ck_assert_msg(got == expected, "%a to %s: 0x%llx, expected 0x%llx", x, ts_dtype_name(type), (unsigned long long)got,
                (unsigned long long)expected);
}

START_TEST(floats_round_once)
{
  ts_dtype type = small[FLOATS + _i];
  double above = _i == 0 ? 65536 : 480;
  for (int a = 0; a < 0x7F; a++) {
    double low = ts_scalar_to_f64(type, (ts_scalar){.bits = (uint64_t)a}), high = above;
    if (a + 1 <= (_i == 0 ? 0x7B : 0x7E)) high = ts_scalar_to_f64(type, (ts_scalar){.bits = (uint64_t)a + 1});
    double middle = (low + high) / 2;
    const double around[] = {low, middle, nextafter(middle, 0), nextafter(middle, INFINITY),
                             nextafterf((float)middle, 0)};
    for (size_t i = 0; i < sizeof around / sizeof *around; i++) {
      if (!isfinite(around[i]) || around[i] >= above) continue;
      check_rounding(type, above, around[i]);
      check_rounding(type, above, -around[i]);
    }
  }
  check_rounding(type, above, INFINITY);
  check_rounding(type, above, 1e300);
  check_rounding(type, above, 5e-324);
  ck_assert(isnan(ts_scalar_to_f64(type, ts_scalar_from_f64(type, NAN))));
}
END_TEST

START_TEST(values_keep)
{
  ts_dtype type = small[_i];
  for (int i = 0; i < values_of(type); i++) {
    ts_scalar x = value_of(type, i);
    ts_scalar back = ts_scalar_from_f64(type, ts_scalar_to_f64(type, x));
    if (isnan(ts_scalar_to_f64(type, x)))
      ck_assert(isnan(ts_scalar_to_f64(type, back)));
    else
      ck_assert_uint_eq(back.bits, x.bits);
  }
}
END_TEST

START_TEST(limits)
{
  ck_assert_int_eq(ts_scalar_to_s64(TS_S4, ts_dtype_lowest(TS_S4)), -8);
  ck_assert_int_eq(ts_scalar_to_s64(TS_S4, ts_dtype_highest(TS_S4)), 7);
  ck_assert_int_eq(ts_scalar_to_s64(TS_U2, ts_dtype_highest(TS_U2)), 3);
  ck_assert_int_eq(ts_scalar_to_s64(TS_S2, ts_scalar_from_s64(TS_S2, 2)), -2);
  ck_assert_uint_eq(ts_scalar_from_s64(TS_S4, -1).bits, 0xFF);
  ck_assert_uint_eq(ts_scalar_from_s64(TS_S4, 7 + 1).bits, 0xF8);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_S4, 100).bits, 7);
  ck_assert_uint_eq(ts_scalar_from_f64(TS_U4, 100).bits, 15);
  ck_assert_double_eq(ts_scalar_to_f64(TS_F8E4M3FN, ts_dtype_highest(TS_F8E4M3FN)), 448);
  ck_assert_double_eq(ts_scalar_to_f64(TS_F8, ts_dtype_highest(TS_F8)), INFINITY);
}
END_TEST

/* ---- ops ---- */

/* All values, or all pairs of them as the first or the second operand. */
static ts_buffer *operand(ts_dtype type, int index, int count) {
  int n = values_of(type), total = 1;
  for (int i = 0; i < count; i++) total *= n;
  ts_shape shape = SHAPE(total);
  ts_buffer *out;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &out));
  for (int i = 0; i < total; i++)
    ts_scalar_store(type, value_of(type, index == 0 ? i % n : i / n % n), (uint8_t *)out->data + i);
  return out;
}

typedef struct op_case {
  ts_opcode code;
  const ts_attrs *attrs;
  ts_buffer *args[3];
  size_t count;
  int64_t ulps;
} op_case;

/* Takes the arguments. Compares the compiled op with the interpreter's, also without simplification. */
static void check_op(const op_case *c) {
  ts_graph *graph = test_graph();
  ts_value_id params[3], out;
  ts_buffer *expected[TS_MAX_RESULTS], *got[TS_MAX_RESULTS];
  char message[TS_COMPARE_TEXT];
  for (size_t i = 0; i < c->count; i++)
    ck_assert_ok(ts_graph_add_param(graph, TS_ROOT, c->args[i]->dtype, &c->args[i]->shape, &params[i]));
  ck_assert_ok(ts_graph_add_op(graph, TS_ROOT, c->code, (ts_values){params, c->count}, c->attrs, &out));
  size_t results = ts_graph_op(graph, ts_graph_value(graph, out)->op)->result_count;
  ts_value_id outs[TS_MAX_RESULTS] = {out, out + 1, out + 2, out + 3};
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, outs, results));
  ts_buffer *args[3];
  memcpy(args, c->args, sizeof args);
  ck_assert_ok(ts_ref_run(graph, args, c->count, ts_pool_default(), expected));
  for (int plain = 0; plain < 2; plain++) {
    ts_executable *exe;
    ts_compile_options options = {.no_simplify = plain, .no_fusion = plain};
    ts_run_options run = {0};
    ck_assert_ok(ts_executable_create(graph, &options, &exe));
    ck_assert_ok(ts_executable_run(exe, args, c->count, &run, got));
    for (size_t i = 0; i < results; i++) {
      bool same = ts_compare_buffers(got[i], expected[i], c->ulps, message);
      ck_assert_msg(same, "%s%s: %s", ts_op_name(c->code), plain ? ", plain" : "", message);
      ts_buffer_release(got[i]);
    }
    ts_executable_release(exe);
  }
  for (size_t i = 0; i < results; i++) ts_buffer_release(expected[i]);
  for (size_t i = 0; i < c->count; i++) ts_buffer_release(c->args[i]);
  ts_graph_destroy(graph);
}

static bool takes(ts_op_class class, ts_dtype type) {
  if (class == TS_CLASS_UNARY_FLOAT || class == TS_CLASS_BINARY_FLOAT) return ts_dtype_is_float(type);
  if (class == TS_CLASS_UNARY_INTEGER || class == TS_CLASS_BINARY_INTEGER) return ts_dtype_is_integer(type);
  return class != TS_CLASS_CONVERT && class != TS_CLASS_SELECT && class != TS_CLASS_COMPLEX;
}

static bool is_math(ts_opcode code) {
  ts_op_class class = ts_op_get_class(code);
  return (class == TS_CLASS_UNARY_FLOAT && code != TS_OP_SQRT) || code == TS_OP_ATAN2 || code == TS_OP_POW;
}

START_TEST(elementwise)
{
  ts_dtype type = small[_i];
  for (int code = 0; code < TS_OP_COUNT; code++) {
    ts_op_class class = ts_op_get_class((ts_opcode)code);
    if (!ts_op_is_elementwise((ts_opcode)code) || !takes(class, type)) continue;
    op_case c = {.code = (ts_opcode)code, .count = (size_t)ts_op_operands((ts_opcode)code)};
    if (c.count == 3 && ts_dtype_is_float(type)) continue; /* min and max are checked on pairs */
    c.ulps = is_math(c.code) && ts_dtype_is_float(type) ? 1 : 0;
    for (size_t i = 0; i < c.count; i++) {
      c.args[i] = operand(type, (int)i, (int)c.count);
      if (i < 2) continue;
      for (int64_t e = 0; e < c.args[i]->bytes; e++)
        ((uint8_t *)c.args[i]->data)[e] = value_of(type, (int)e / 3).bits & 0xFF;
    }
    check_op(&c);
  }
}
END_TEST

static ts_buffer *numbers(ts_dtype type) {
  static const double values[] = {0,     -0.0,  1,       -1,       1.5,      2.5,    -2.5,    7,    8,    -8,
                                  -9,    15,    16,      100,      -100,     0.0078, 0.03125, 448,  463,  464,
                                  464.5, 480,   1e3,     61439,    61440,    65504,  1e9,     -1e9, 1e-3, 1e-9,
                                  0.1,   -0.07, 0.00195, 0.000977, 0.000976, NAN,    INFINITY};
  return test_vector(type, values, ts_dtype_is_float(type) ? sizeof values / sizeof *values : 35);
}

START_TEST(conversions)
{
  ts_dtype type = small[_i];
  for (int other = 0; other < TS_DTYPE_COUNT; other++) {
    ts_dtype t = (ts_dtype)other;
    if (!ts_dtype_supported(t) || ts_dtype_get_kind(t) == TS_KIND_COMPLEX) continue;
    check_op(&(op_case){TS_OP_CONVERT, &(ts_attrs){.dtype = t}, {operand(type, 0, 1)}, 1, 0});
    ts_buffer *from = ts_dtype_is_small(t) ? operand(t, 0, 1) : numbers(t);
    check_op(&(op_case){TS_OP_CONVERT, &(ts_attrs){.dtype = type}, {from}, 1, 0});
    if (ts_dtype_bits(t) != ts_dtype_bits(type)) continue;
    check_op(&(op_case){TS_OP_BITCAST, &(ts_attrs){.dtype = t}, {operand(type, 0, 1)}, 1, 0});
    if (ts_dtype_is_integer(type))
      test_equal(RUN(TS_OP_BITCAST, &(ts_attrs){.dtype = t}, operand(type, 0, 1)), operand(t, 0, 1));
  }
}
END_TEST

/* From f64, just beside the midpoints: a conversion by way of f32 would round twice. */
START_TEST(conversions_round_once)
{
  ts_dtype type = small[FLOATS + _i];
  double values[4 * 256];
  size_t count = 0;
  for (int a = 0; a < (_i == 0 ? 0x7B : 0x7E); a++) {
    double low = ts_scalar_to_f64(type, (ts_scalar){.bits = (uint64_t)a});
    double middle = (low + ts_scalar_to_f64(type, (ts_scalar){.bits = (uint64_t)a + 1})) / 2;
    values[count++] = nextafter(middle, 0);
    values[count++] = -nextafter(middle, INFINITY);
    values[count++] = middle;
  }
  check_op(&(op_case){TS_OP_CONVERT, &(ts_attrs){.dtype = type}, {test_vector(TS_F64, values, count)}, 1, 0});
}
END_TEST

static ts_buffer *grid(ts_dtype type, ts_shape shape) {
  ts_buffer *out;
  ck_assert_ok(ts_buffer_create(ts_pool_default(), type, &shape, &out));
  for (int64_t i = 0; i < out->bytes; i++) {
    int64_t small_number = i * 7 % 11 - 4;
    ((uint8_t *)out->data)[i] = (uint8_t)ts_scalar_from_s64(type, small_number).bits;
  }
  return out;
}

START_TEST(reductions)
{
  ts_dtype type = small[_i];
  for (int code = TS_FIRST_REDUCE; code <= TS_LAST_REDUCE; code++) {
    if (code == TS_OP_REDUCE) continue;
    ts_attrs rows = {.axes = {.rank = 1, .dims = {1}}}, columns = {.axes = {.rank = 1, .dims = {0}}};
    check_op(&(op_case){(ts_opcode)code, &rows, {grid(type, SHAPE(7, 70))}, 1, 0});
    check_op(&(op_case){(ts_opcode)code, &columns, {grid(type, SHAPE(7, 70))}, 1, 0});
    check_op(&(op_case){(ts_opcode)code, &rows, {grid(type, SHAPE(3, 0))}, 1, 0});
    check_op(&(op_case){(ts_opcode)code, &columns, {operand(type, 0, 1)}, 1, 0});
  }
  for (int t = 0; t < 2; t++) {
    ts_attrs arg = {.arg = {.axis = 1, .dtype = t ? TS_S4 : TS_S32}}, scan = {.scan = {.axis = t}};
    for (int code = TS_FIRST_ARG_REDUCE; code <= TS_LAST_ARG_REDUCE; code++)
      check_op(&(op_case){(ts_opcode)code, &arg, {grid(type, SHAPE(5, 40))}, 1, 0});
    for (int code = TS_FIRST_SCAN; code <= TS_LAST_SCAN; code++)
      check_op(&(op_case){(ts_opcode)code, &scan, {grid(type, SHAPE(5, 40))}, 1, 0});
  }
}
END_TEST

START_TEST(order)
{
  ts_dtype type = small[_i];
  for (int descending = 0; descending < 2; descending++) {
    ts_attrs sort = {.sort = {.axis = 0, .descending = descending}};
    check_op(&(op_case){TS_OP_SORT, &sort, {operand(type, 0, 1)}, 1, 0});
    check_op(&(op_case){TS_OP_SORT, &sort, {grid(type, SHAPE(40, 3))}, 1, 0});
    for (int t = 0; t < 2; t++) {
      ts_attrs argsort = {.argsort = {.axis = 0, .descending = descending, .dtype = t ? TS_U4 : TS_S32}};
      check_op(&(op_case){TS_OP_ARGSORT, &argsort, {operand(type, 0, 1)}, 1, 0});
    }
  }
  check_op(&(op_case){TS_OP_TOP_K, &(ts_attrs){.top_k = {.k = 5}}, {grid(type, SHAPE(4, 30))}, 1, 0});
}
END_TEST

START_TEST(products)
{
  ts_dtype type = small[_i];
  ts_attrs dot = {.dot = {.lhs_contract = {.rank = 1, .dims = {1}}, .rhs_contract = {.rank = 1, .dims = {0}}}};
  check_op(&(op_case){TS_OP_DOT, &dot, {grid(type, SHAPE(9, 33)), grid(type, SHAPE(33, 17))}, 2, 0});
  check_op(&(op_case){TS_OP_DOT, &dot, {grid(type, SHAPE(1, 5)), grid(type, SHAPE(5, 1))}, 2, 0});
}
END_TEST

START_TEST(indices)
{
  ts_dtype type = small[_i];
  ts_buffer *target[3], *rows = TENSOR(TS_S32, SHAPE(5, 1), 0, 2, 0, 9, 3);
  for (int k = 0; k < 2; k++) {
    target[0] = grid(type, SHAPE(4, 6)), target[1] = k ? TENSOR(TS_U4, SHAPE(5, 1), 0, 2, 0, 9, 3) : rows;
    target[2] = grid(type, SHAPE(5, 6));
    ts_attrs axes = {.axes = {.rank = 1, .dims = {0}}};
    check_op(&(op_case){k ? TS_OP_INDEXED_PUT : TS_OP_INDEXED_ADD, &axes, {target[0], target[1], target[2]}, 3, 0});
  }
  ts_dtype index = ts_dtype_is_integer(type) ? type : TS_S2;
  ts_attrs axis = {.axis = 0};
  check_op(&(op_case){TS_OP_TAKE, &axis, {grid(type, SHAPE(4, 6)), operand(index, 0, 1)}, 2, 0});
  check_op(
      &(op_case){TS_OP_DYNAMIC_SLICE, &(ts_attrs){.shape = SHAPE(3)}, {grid(type, SHAPE(9)), SCALAR(TS_U4, 8)}, 2, 0});
  check_op(&(op_case){TS_OP_PUT_SLICE, NULL, {grid(type, SHAPE(9)), grid(type, SHAPE(2)), SCALAR(TS_S4, 3)}, 3, 0});
}
END_TEST

START_TEST(sources)
{
  ts_dtype type = small[_i];
  ts_attrs iota = {.iota = {.dtype = type, .shape = SHAPE(700), .axis = 0}};
  ts_attrs eye = {.shaped = {.dtype = type, .shape = SHAPE(5, 6)}};
  check_op(&(op_case){TS_OP_IOTA, &iota, {0}, 0, 0});
  check_op(&(op_case){TS_OP_EYE, &eye, {0}, 0, 0});
}
END_TEST

/* Text has the value, and parses to it. */
START_TEST(text)
{
  ts_dtype type = small[_i];
  for (int i = 0; i < values_of(type); i++) {
    ts_scalar x = value_of(type, i), back;
    ts_text printed = {0};
    ts_scalar_print(&printed, type, x);
    ck_assert_msg(ts_scalar_parse(type, printed.data, printed.length, &back), "%s", printed.data);
    ck_assert_uint_eq(back.bits, x.bits);
    ts_text_deinit(&printed);
  }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("small");
  TCase *t = tcase_create("small");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, floats_round_once, 0, SMALL - FLOATS);
  tcase_add_loop_test(t, values_keep, 0, SMALL);
  tcase_add_test(t, limits);
  tcase_add_loop_test(t, elementwise, 0, SMALL);
  tcase_add_loop_test(t, conversions, 0, SMALL);
  tcase_add_loop_test(t, conversions_round_once, 0, SMALL - FLOATS);
  tcase_add_loop_test(t, reductions, 0, SMALL);
  tcase_add_loop_test(t, order, 0, SMALL);
  tcase_add_loop_test(t, products, 0, SMALL);
  tcase_add_loop_test(t, indices, 0, SMALL);
  tcase_add_loop_test(t, sources, 0, SMALL);
  tcase_add_loop_test(t, text, 0, SMALL);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
