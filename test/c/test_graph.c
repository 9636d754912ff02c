/* The builder: ids from anywhere, ownership of regions, copying, memory. */
#include "graph_text.h"
#include "ir/key.h"

static const ts_shape scalar = {0};
static const ts_shape matrix = {2, {2, 3}};

static ts_graph *new_graph(void) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_create(&graph));
  return graph;
}

static ts_value_id add_param(ts_graph *graph, ts_region_id region, ts_dtype dtype, const ts_shape *shape) {
  ts_value_id value;
  ck_assert_ok(ts_graph_add_param(graph, region, dtype, shape, &value));
  return value;
}

static ts_region_id add_region(ts_graph *graph) {
  ts_region_id region;
  ck_assert_ok(ts_graph_add_region(graph, &region));
  return region;
}

/* A finished region f32[] -> f32[] that gives its parameter. */
static ts_region_id add_identity(ts_graph *graph) {
  ts_region_id region = add_region(graph);
  ts_value_id param = add_param(graph, region, TS_F32, &scalar);
  ck_assert_ok(ts_graph_set_results(graph, region, &param, 1));
  return region;
}

static ts_status add_call(ts_graph *graph, ts_region_id target, ts_value_id operand, ts_region_id body,
                          ts_value_id *out) {
  ts_attrs attrs = {.regions = {{body, TS_NO_ID}}};
  return ts_graph_add_op(graph, target, TS_OP_CALL, (ts_values){&operand, 1}, &attrs, out);
}

static ts_graph *parse(const char *text) {
  ts_graph *graph;
  ck_assert_ok(ts_graph_parse(text, strlen(text), &graph));
  return graph;
}

START_TEST(op_table)
{
  ck_assert_str_eq(ts_op_name(TS_OP_DOT), "dot_general");
  ck_assert_str_eq(ts_op_name(TS_OP_COUNT), "?");
  for (int op = 0; op < TS_OP_COUNT; op++) {
    const char *name = ts_op_name((ts_opcode)op);
    ck_assert_int_eq(ts_op_from_name(name, strlen(name)), op);
    if (ts_op_is_commutative((ts_opcode)op)) ck_assert_int_eq(ts_op_operands((ts_opcode)op), 2);
    if (ts_op_is_elementwise((ts_opcode)op)) ck_assert_int_ge(ts_op_operands((ts_opcode)op), 1);
  }
  ck_assert_int_eq(ts_op_from_name("ad", 2), TS_OP_COUNT);
  ck_assert_int_eq(ts_op_from_name("addx", 4), TS_OP_COUNT);
  ck_assert_int_eq(ts_op_from_name("addx", 3), TS_OP_ADD);
  ck_assert_int_eq(ts_op_from_name("", 0), TS_OP_COUNT);
  ck_assert(ts_op_is_elementwise(TS_OP_CLAMP) && !ts_op_is_elementwise(TS_OP_RESHAPE));
  ck_assert(ts_op_is_commutative(TS_OP_ADD) && !ts_op_is_commutative(TS_OP_SUBTRACT));
}
END_TEST

START_TEST(values_and_ops)
{
  ts_graph *graph = new_graph();
  ts_value_id x = add_param(graph, TS_ROOT, TS_F32, &matrix), y;
  ts_value_id pair[2] = {x, x};
  ck_assert_ok(ts_graph_add_op(graph, TS_ROOT, TS_OP_ADD, (ts_values){pair, 2}, NULL, &y));
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &y, 1));
  ck_assert_ok(ts_graph_verify(graph));
  const ts_value *value = ts_graph_value(graph, y);
  const ts_op *op = ts_graph_op(graph, value->op);
  ck_assert_int_eq(value->dtype, TS_F32);
  ck_assert(ts_shape_equal(value->shape, &matrix));
  ck_assert_uint_eq(ts_graph_value(graph, x)->op, TS_NO_ID);
  ck_assert_int_eq(op->code, TS_OP_ADD);
  ck_assert_uint_eq(op->first_result, y);
  ck_assert_ptr_null(op->attrs);
  uint32_t *uses;
  ck_assert_ok(ts_graph_count_uses(graph, &uses));
  ck_assert_uint_eq(uses[x], 2);
  ck_assert_uint_eq(uses[y], 1);
  ts_free(uses);
  ts_graph_destroy(graph);
  ts_graph_destroy(NULL);
}
END_TEST

START_TEST(ids_from_anywhere)
{
  ts_graph *graph = new_graph();
  ts_value_id x = add_param(graph, TS_ROOT, TS_F32, &matrix), out;
  ts_value_id bad[2] = {x, 99}, none[2] = {TS_NO_ID, x};
  size_t values = graph->values.count, ops = graph->ops.count;
  ck_assert_error(ts_graph_add_op(graph, TS_ROOT, TS_OP_ADD, (ts_values){bad, 2}, NULL, &out), TS_INVALID_ARGUMENT,
                  "add: operand 1 is no value of the graph");
  ck_assert_error(ts_graph_add_op(graph, TS_ROOT, TS_OP_ADD, (ts_values){none, 2}, NULL, &out), TS_INVALID_ARGUMENT,
                  "operand 0");
  ck_assert_error(ts_graph_add_op(graph, 7, TS_OP_ADD, (ts_values){bad, 2}, NULL, &out), TS_INVALID_ARGUMENT,
                  "no region 7");
  ck_assert_error(ts_graph_add_op(graph, TS_ROOT, (ts_opcode)1000, (ts_values){&x, 1}, NULL, &out), TS_INVALID_ARGUMENT,
                  "op number 1000");
  ck_assert_error(ts_graph_add_op(graph, TS_ROOT, TS_OP_TRANSPOSE, (ts_values){&x, 1}, NULL, &out), TS_INVALID_ARGUMENT,
                  "transpose(f32[2,3]): expected attributes");
  ck_assert_error(ts_graph_add_op(graph, TS_ROOT, TS_OP_LITERAL, (ts_values){0}, &(ts_attrs){0}, &out),
                  TS_INVALID_ARGUMENT, "there is no data, expected a buffer");
  ck_assert_error(ts_graph_set_results(graph, TS_ROOT, bad, 2), TS_INVALID_ARGUMENT, "return: result 1");
  ck_assert_error(ts_graph_set_results(graph, TS_NO_ID, bad, 2), TS_INVALID_ARGUMENT, "no region");
  ck_assert_error(ts_graph_add_param(graph, 12, TS_F32, &matrix, &out), TS_INVALID_ARGUMENT, "no region 12");
  ck_assert_error(ts_graph_convert(graph, TS_ROOT, 50, TS_F32, &out), TS_INVALID_ARGUMENT, "convert: operand 0");
  ck_assert_error(ts_graph_broadcast_to(graph, TS_ROOT, 50, &matrix, &out), TS_INVALID_ARGUMENT,
                  "broadcast: operand 0");
  ck_assert_uint_eq(graph->values.count, values);
  ck_assert_uint_eq(graph->ops.count, ops);
  ck_assert_uint_eq(ts_graph_region(graph, TS_ROOT)->ops.count, 0);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(types_from_anywhere)
{
  ts_graph *graph = new_graph();
  ts_value_id x = add_param(graph, TS_ROOT, TS_F32, &matrix), out;
  ts_shape negative = {1, {-1}}, deep = {.rank = TS_MAX_RANK + 1}, huge = {2, {INT64_C(1) << 40, INT64_C(1) << 40}};
  ck_assert_error(ts_graph_add_param(graph, TS_ROOT, (ts_dtype)77, &matrix, &out), TS_INVALID_ARGUMENT,
                  "type number 77");
  ck_assert(!ts_status_consume_ok(ts_graph_add_param(graph, TS_ROOT, TS_F32, &negative, &out)));
  ck_assert(!ts_status_consume_ok(ts_graph_add_param(graph, TS_ROOT, TS_F32, &deep, &out)));
  ck_assert(!ts_status_consume_ok(ts_graph_add_param(graph, TS_ROOT, TS_F32, &huge, &out)));
  ts_attrs attrs = {.constant = {.dtype = TS_F32, .shape = huge}};
  ck_assert(!ts_status_consume_ok(ts_graph_add_op(graph, TS_ROOT, TS_OP_CONSTANT, (ts_values){0}, &attrs, &out)));
  static const ts_opcode with_dims[] = {TS_OP_RESHAPE,    TS_OP_BROADCAST, TS_OP_TRANSPOSE, TS_OP_REVERSE, TS_OP_SLICE,
                                        TS_OP_REDUCE_SUM, TS_OP_IOTA,      TS_OP_EYE,       TS_OP_CONSTANT};
  for (size_t i = 0; i < sizeof with_dims / sizeof with_dims[0]; i++) {
    int operands = ts_op_operands(with_dims[i]);
    ts_attrs garbage;
    memset(&garbage, 0x7f, sizeof garbage);
    ck_assert(!ts_status_consume_ok(
        ts_graph_add_op(graph, TS_ROOT, with_dims[i], (ts_values){&x, (size_t)operands}, &garbage, &out)));
    memset(&garbage, 0xff, sizeof garbage);
    ck_assert(!ts_status_consume_ok(
        ts_graph_add_op(graph, TS_ROOT, with_dims[i], (ts_values){&x, (size_t)operands}, &garbage, &out)));
  }
  for (int type = 0; type < TS_DTYPE_COUNT; type++) {
    ts_status status = ts_graph_convert(graph, TS_ROOT, x, (ts_dtype)type, &out);
    ck_assert_int_eq(ts_status_code(status), ts_dtype_supported((ts_dtype)type) ? TS_OK : TS_UNIMPLEMENTED);
    ts_status_free(status);
  }
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(attributes_are_canonical)
{
  ts_graph *graph = new_graph();
  ts_value_id out[2], x = add_param(graph, TS_ROOT, TS_F32, &matrix);
  ts_attrs attrs[2];
  for (int i = 0; i < 2; i++) {
    memset(&attrs[i], i ? 0xab : 0, sizeof attrs[i]);
    attrs[i].axes.rank = 2;
    attrs[i].axes.dims[0] = i;
    attrs[i].axes.dims[1] = !i;
    ck_assert_ok(ts_graph_add_op(graph, TS_ROOT, TS_OP_REDUCE_MAX, (ts_values){&x, 1}, &attrs[i], &out[i]));
  }
  const ts_op *a = ts_graph_op(graph, 0), *b = ts_graph_op(graph, 1);
  ck_assert_ptr_eq(a->attrs, b->attrs);
  ts_value_id constant;
  ck_assert_ok(ts_graph_constant(graph, TS_ROOT, TS_S8, &scalar, (ts_scalar){.s64 = -1}, &constant));
  ts_scalar value;
  ck_assert(ts_graph_is_constant(graph, constant, &value));
  ck_assert_uint_eq(value.bits, 0xff);
  ck_assert(!ts_graph_is_constant(graph, x, &value));
  ck_assert(!ts_graph_is_constant(graph, out[0], &value));
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(regions_have_one_owner)
{
  ts_graph *graph = new_graph();
  ts_value_id x = add_param(graph, TS_ROOT, TS_F32, &scalar), out;
  ts_region_id body = add_identity(graph), open = add_region(graph);
  ts_value_id param = ts_graph_region(graph, body)->params.data[0];
  ck_assert_error(add_call(graph, TS_ROOT, x, open, &out), TS_INVALID_ARGUMENT, "expected a finished region");
  ck_assert_error(add_call(graph, TS_ROOT, x, TS_ROOT, &out), TS_INVALID_ARGUMENT, "expected a region as its body");
  ck_assert_error(add_call(graph, TS_ROOT, x, 1234, &out), TS_INVALID_ARGUMENT, "expected a region as its body");
  ck_assert_error(add_call(graph, TS_ROOT, x, TS_NO_ID, &out), TS_INVALID_ARGUMENT, "expected a region as its body");
  ck_assert_error(add_call(graph, body, param, body, &out), TS_INVALID_ARGUMENT, "has an owner already");
  ck_assert_error(add_call(graph, TS_ROOT, param, body, &out), TS_INVALID_ARGUMENT, "belongs to another region");
  ts_attrs twice = {.regions = {{body, body}}};
  ts_value_id predicate = add_param(graph, TS_ROOT, TS_U8, &scalar), operands[2] = {predicate, x};
  ck_assert_error(ts_graph_add_op(graph, TS_ROOT, TS_OP_COND, (ts_values){operands, 2}, &twice, &out),
                  TS_INVALID_ARGUMENT, "has an owner already");
  ck_assert_ok(add_call(graph, TS_ROOT, x, body, &out));
  ck_assert_error(add_call(graph, TS_ROOT, x, body, &out), TS_INVALID_ARGUMENT, "has an owner already");
  ck_assert_error(ts_graph_add_param(graph, body, TS_F32, &scalar, &out), TS_FAILED_PRECONDITION, "an op holds it");
  ck_assert_error(ts_graph_set_results(graph, body, &param, 1), TS_FAILED_PRECONDITION, "an op holds it");
  ck_assert_error(ts_graph_add_op(graph, body, TS_OP_EXP, (ts_values){&param, 1}, NULL, &out), TS_FAILED_PRECONDITION,
                  "an op holds it");
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &out, 1));
  ck_assert_ok(ts_graph_verify(graph));
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(nesting_is_bounded)
{
  ts_graph *graph = new_graph();
  ts_region_id inner = add_identity(graph);
  ts_status status = TS_SUCCESS;
  int depth = 1;
  for (; depth <= TS_MAX_NESTING; depth++) {
    ts_region_id outer = depth < TS_MAX_NESTING ? add_region(graph) : TS_ROOT;
    ts_value_id param = add_param(graph, outer, TS_F32, &scalar), result;
    ck_assert_ok(add_call(graph, outer, param, inner, &result));
    ck_assert_ok(ts_graph_set_results(graph, outer, &result, 1));
    inner = outer;
  }
  ck_assert_ok(ts_graph_verify(graph));
  char *text = graph_text(graph);
  ts_graph *again = parse(text), *copy;
  ck_assert_ok(ts_graph_clone(again, &copy));
  char *copied = graph_text(copy);
  ck_assert_str_eq(text, copied);
  ts_free(text);
  ts_free(copied);
  ts_graph_destroy(graph);
  ts_graph_destroy(again);
  ts_graph_destroy(copy);

  graph = new_graph();
  inner = add_identity(graph);
  for (depth = 1; !status; depth++) {
    ts_region_id outer = add_region(graph);
    ts_value_id param = add_param(graph, outer, TS_F32, &scalar), result;
    status = add_call(graph, outer, param, inner, &result);
    if (!status) ck_assert_ok(ts_graph_set_results(graph, outer, &result, 1));
    inner = outer;
  }
  ck_assert_error(status, TS_OUT_OF_RANGE, "call: regions are nested more than 1008 deep");
  ck_assert_int_eq(depth - 1, TS_MAX_LEVELS + 1);
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(shorthands)
{
  ts_graph *graph = new_graph();
  ts_value_id s = add_param(graph, TS_ROOT, TS_F32, &scalar), m = add_param(graph, TS_ROOT, TS_F32, &matrix), out;
  ck_assert_ok(ts_graph_broadcast_to(graph, TS_ROOT, m, &matrix, &out));
  ck_assert_uint_eq(out, m);
  ck_assert_ok(ts_graph_broadcast_to(graph, TS_ROOT, s, &matrix, &out));
  ck_assert(ts_shape_equal(ts_graph_value(graph, out)->shape, &matrix));
  ts_shape cube = {3, {4, 2, 3}}, other = {3, {4, 2, 5}};
  ck_assert_ok(ts_graph_broadcast_to(graph, TS_ROOT, m, &cube, &out));
  ck_assert(ts_shape_equal(ts_graph_value(graph, out)->shape, &cube));
  ck_assert_error(ts_graph_broadcast_to(graph, TS_ROOT, m, &other, &out), TS_INVALID_ARGUMENT,
                  "broadcast(f32[2,3]): dimension 1 has size 3, expected 1 or 5");
  ck_assert_error(ts_graph_broadcast_to(graph, TS_ROOT, m, &scalar, &out), TS_INVALID_ARGUMENT,
                  "the result f32[] has a smaller rank, expected at least 2");
  ck_assert_ok(ts_graph_convert(graph, TS_ROOT, m, TS_F32, &out));
  ck_assert_uint_eq(out, m);
  ck_assert_ok(ts_graph_convert(graph, TS_ROOT, m, TS_S16, &out));
  ck_assert_int_eq(ts_graph_value(graph, out)->dtype, TS_S16);
  ts_graph_destroy(graph);
}
END_TEST

static const char nested_text[] = "graph @nested(%0: f32[], %1: u8[]) -> (f32[]) {\n"
                                  "  %2 = literal \"0000803f\" : f32[1]\n"
                                  "  %3 = reduce %2, %0 {axes = [0]} {\n"
                                  "    combine(%4: f32[], %5: f32[]) {\n"
                                  "      %6 = call %4 {\n"
                                  "        body(%7: f32[]) {\n"
                                  "          %8 = exp %7 : f32[]\n"
                                  "          return %8\n"
                                  "        }\n"
                                  "      } : f32[]\n"
                                  "      return %6\n"
                                  "    }\n"
                                  "  } : f32[]\n"
                                  "  return %3\n"
                                  "}\n";

/* A parameter, its transpose and a reshape of that, in a graph made from `from`, or of its own when NULL. */
static ts_graph *transposed(const ts_graph *from, ts_value_id out[3]) {
  ts_graph *graph;
  ck_assert_ok(from ? ts_graph_create_from(from, &graph) : ts_graph_create(&graph));
  ts_attrs axes = {.axes = {2, {1, 0}}}, shape = {.shape = {1, {6}}};
  out[0] = add_param(graph, TS_ROOT, TS_F32, &matrix);
  ck_assert_ok(ts_graph_add_op(graph, TS_ROOT, TS_OP_TRANSPOSE, (ts_values){&out[0], 1}, &axes, &out[1]));
  ck_assert_ok(ts_graph_add_op(graph, TS_ROOT, TS_OP_RESHAPE, (ts_values){&out[1], 1}, &shape, &out[2]));
  return graph;
}

static const ts_op *maker(const ts_graph *graph, ts_value_id value) {
  return ts_graph_op(graph, ts_graph_value(graph, value)->op);
}

START_TEST(what_is_equal_is_kept_once)
{
  ts_value_id made[3] = {0}, again[3] = {0}, copy;
  ts_graph *first = transposed(NULL, made), *second = transposed(first, again), *third = new_graph();
  const ts_shape *shape = ts_graph_value(first, made[1])->shape;
  ts_shape tall = {2, {3, 2}};
  ck_assert_ptr_eq(ts_graph_value(first, add_param(first, TS_ROOT, TS_S8, &tall))->shape, shape);
  for (int i = 0; i < 3; i++)
    ck_assert_ptr_eq(ts_graph_value(first, made[i])->shape, ts_graph_value(second, again[i])->shape);
  for (int i = 1; i < 3; i++) ck_assert_ptr_eq(maker(first, made[i])->attrs, maker(second, again[i])->attrs);
  /* an unrelated graph has its own */
  ts_value_id operand = add_param(third, TS_ROOT, TS_F32, &matrix);
  ck_assert_ok(ts_graph_add_like(third, TS_ROOT, first, ts_graph_value(first, made[1])->op, &operand, &copy));
  ck_assert_ptr_ne(ts_graph_value(third, copy)->shape, shape);
  ck_assert_ptr_ne(maker(third, copy)->attrs, maker(first, made[1])->attrs);
  ts_value_id second_copy;
  ck_assert_ok(ts_graph_add_like(third, TS_ROOT, second, ts_graph_value(second, again[1])->op, &operand, &second_copy));
  ck_assert_ptr_eq(ts_graph_value(third, second_copy)->shape, ts_graph_value(third, copy)->shape);
  ck_assert_ptr_eq(maker(third, second_copy)->attrs, maker(third, copy)->attrs);
  /* the graph that others were made from may be destroyed first */
  ck_assert_ok(ts_graph_set_results(second, TS_ROOT, &again[2], 1));
  ck_assert_ok(ts_graph_set_results(third, TS_ROOT, &copy, 1));
  ts_graph_destroy(first);
  ck_assert(ts_shape_equal(ts_graph_value(third, copy)->shape, &tall));
  ck_assert_ok(ts_graph_verify(second));
  ck_assert_ok(ts_graph_verify(third));
  ts_graph_destroy(second);
  ts_graph_destroy(third);
}
END_TEST

START_TEST(clone_is_equal)
{
  ts_graph *graph = parse(nested_text), *copy;
  ck_assert_ok(ts_graph_clone(graph, &copy));
  ts_graph_destroy(graph); /* the literal's buffer has another reference */
  ck_assert_ok(ts_graph_verify(copy));
  char *text = graph_text(copy);
  ck_assert_str_eq(text, nested_text);
  ts_free(text);
  ts_graph_destroy(copy);
}
END_TEST

START_TEST(copy_within_a_graph)
{
  ts_graph *graph = parse(nested_text);
  ts_value_id *map;
  size_t values = graph->values.count;
  ck_assert_ok(TS_NEW_ARRAY(values, &map));
  const ts_region *root = ts_graph_region(graph, TS_ROOT);
  ts_value_id old = root->results.data[0];
  for (size_t i = 0; i < root->params.count; i++) map[root->params.data[i]] = root->params.data[i];
  ck_assert_ok(ts_graph_copy_ops(graph, TS_ROOT, graph, TS_ROOT, map));
  ck_assert_uint_ne(map[old], old);
  ts_value_id results[2] = {old, map[old]};
  ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, results, 2));
  ck_assert_ok(ts_graph_verify(graph));
  ck_assert_uint_eq(ts_graph_region(graph, TS_ROOT)->ops.count, 4);
  ck_assert_uint_eq(graph->values.count, 2 * values - 2);
  ts_free(map);
  ts_graph_destroy(graph);
}
END_TEST

/* Builds, prints, clones and verifies, in the face of failing allocations. */
static ts_status build_all(ts_graph *graph, ts_graph **out_copy) {
  ts_value_id x, y, pair[2];
  ts_region_id body;
  TS_TRY(ts_graph_add_param(graph, TS_ROOT, TS_F32, &scalar, &x));
  TS_TRY(ts_graph_add_region(graph, &body));
  TS_TRY(ts_graph_add_param(graph, body, TS_F32, &scalar, &y));
  pair[0] = pair[1] = y;
  TS_TRY(ts_graph_set_results(graph, body, pair, 2));
  TS_TRY(add_call(graph, TS_ROOT, x, body, &y));
  TS_TRY(ts_graph_broadcast_to(graph, TS_ROOT, y + 1, &matrix, &y));
  TS_TRY(ts_graph_set_results(graph, TS_ROOT, &y, 1));
  TS_TRY(ts_graph_verify(graph));
  return ts_graph_clone(graph, out_copy);
}

static void try_all(void) {
  ts_graph *graph = NULL, *copy = NULL;
  ts_status status = ts_graph_create(&graph);
  if (!status) status = build_all(graph, &copy);
  if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
  ts_status_free(status);
  ts_graph_destroy(copy);
  ts_graph_destroy(graph);
}

START_TEST(every_allocation_fails)
{ CK_FAIL_EACH_ALLOCATION(try_all()); }
END_TEST

/* After a failed ts_graph_add_op the graph is as before, wherever it failed. */
START_TEST(failed_op_leaves_no_trace)
{
  for (int64_t n = 1;; n++) {
    ts_graph *graph = new_graph();
    ts_value_id x = add_param(graph, TS_ROOT, TS_F32, &scalar), out;
    ts_region_id body = add_identity(graph);
    ts_alloc_fail_after(n, false);
    ts_status status = add_call(graph, TS_ROOT, x, body, &out);
    ts_alloc_fail_after(0, false);
    bool failed = status != NULL;
    ts_status_free(status);
    if (failed) {
      ck_assert_uint_eq(graph->ops.count, 0);
      ck_assert_uint_eq(graph->values.count, 2);
      ck_assert_uint_eq(ts_graph_region(graph, TS_ROOT)->ops.count, 0);
      ck_assert_ok(add_call(graph, TS_ROOT, x, body, &out));
    }
    ck_assert_ok(ts_graph_set_results(graph, TS_ROOT, &out, 1));
    ck_assert_ok(ts_graph_verify(graph));
    ts_graph_destroy(graph);
    if (!failed) break;
  }
}
END_TEST

/* ---- verify: graphs that only a wrong pass could make */

static void check_broken(ts_graph *graph, const char *message) {
  ck_assert_error(ts_graph_verify(graph), TS_INTERNAL, message);
  char *text = graph_text(graph); /* must not crash */
  ts_free(text);
  ts_graph_destroy(graph);
}

static const char small_text[] =
    "graph @small(%0: f32[2,1], %1: f32[2,1]) -> (f32[2,1]) {\n"
    "  %2 = add %0, %1 : f32[2,1]\n"
    "  %3 = call %2 { body(%4: f32[2,1]) { %5 = exp %4 : f32[2,1] return %5 } } : f32[2,1]\n"
    "  %6 = reverse %3 {axes = [0]} : f32[2,1]\n"
    "  return %6\n"
    "}\n";
/* Value ids as the parser assigns them: the body's ids come before the call's result. */
enum { SMALL_SUM = 2, SMALL_BODY_PARAM = 3, SMALL_CALL = 5, SMALL_REVERSE = 6 };

START_TEST(verify_values)
{
  ts_graph *graph = parse(small_text);
  ck_assert_ok(ts_graph_verify(graph));
  graph->values.data[SMALL_SUM].dtype = TS_F64;
  check_broken(graph, "result 0 is f64[2,1], inferred f32[2,1]");
  graph = parse(small_text);
  graph->values.data[SMALL_CALL].shape = &(ts_shape){1, {3}};
  check_broken(graph, "op 2, call: result 0 is f32[3], inferred f32[2,1]");
  graph = parse(small_text);
  graph->values.data[SMALL_SUM].op = 2;
  check_broken(graph, "a value does not know who defines it");
  graph = parse(small_text);
  graph->ops.data[0].first_result = 1000;
  check_broken(graph, "defines no value of the graph");
  graph = parse(small_text);
  graph->ops.data[0].first_result = 0;
  check_broken(graph, "defines a value twice");
  graph = parse(small_text);
  graph->values.data[0].dtype = TS_DTYPE_COUNT;
  ck_assert_error(ts_graph_verify(graph), TS_UNIMPLEMENTED, "type ? is not supported yet");
  ts_graph_destroy(graph);
}
END_TEST

START_TEST(verify_uses)
{
  ts_graph *graph = parse(small_text);
  graph->ops.data[0].operands[1] = 1000;
  check_broken(graph, "op 0, add: uses no value of the graph");
  graph = parse(small_text);
  graph->ops.data[0].operands[1] = SMALL_BODY_PARAM;
  check_broken(graph, "op 0, add: uses a value of another region");
  graph = parse(small_text);
  graph->ops.data[0].operands[1] = SMALL_REVERSE;
  check_broken(graph, "op 0, add: uses a value before it is defined");
  graph = parse(small_text);
  graph->regions.data[TS_ROOT].results.data[0] = 77;
  check_broken(graph, "result 0: uses no value of the graph");
  graph = parse(small_text);
  graph->ops.data[0].operand_count = 1;
  ck_assert_error(ts_graph_verify(graph), TS_INVALID_ARGUMENT, "1 operands, expected 2");
  ts_graph_destroy(graph);
}
END_TEST

/* Keys of several lengths, some the beginning of others, and more of them than there are slots at first. */
static void begin_key(ts_keys *keys, uint64_t n) {
  ts_keys_begin(keys);
  for (uint64_t i = 0; i <= n % 5; i++) ck_assert_ok(ts_keys_put(keys, i < n % 5 ? i : n / 5 * 64));
}

START_TEST(keys_are_found)
{
  ts_keys keys = {0};
  static char kept[500];
  for (uint64_t n = 0; n < sizeof(kept); n++) {
    begin_key(&keys, n);
    ck_assert_ptr_null(ts_keys_find(&keys));
    ck_assert_ok(ts_keys_keep(&keys, &kept[n]));
  }
  for (uint64_t n = 0; n < 2 * sizeof(kept); n++) {
    begin_key(&keys, n);
    ck_assert_ptr_eq(ts_keys_find(&keys), n < sizeof(kept) ? &kept[n] : NULL);
  }
  ts_keys_deinit(&keys);
}
END_TEST

START_TEST(verify_structure)
{
  ts_graph *graph = parse(small_text);
  graph->regions.data[TS_ROOT].ops.data[1] = graph->regions.data[TS_ROOT].ops.data[0];
  check_broken(graph, "add: is listed twice");
  graph = parse(small_text);
  graph->regions.data[TS_ROOT].ops.data[1] = 1000;
  check_broken(graph, "a region lists no op of the graph");
  graph = parse(small_text);
  graph->regions.data[1].parent = 0;
  check_broken(graph, "a region does not know its owner");
  graph = parse(small_text);
  graph->regions.data[1].finished = false;
  check_broken(graph, "a region has no results yet");
  graph = parse(small_text);
  ((ts_attrs *)(uintptr_t)graph->ops.data[2].attrs)->regions.regions[0] = TS_ROOT;
  check_broken(graph, "a region has two owners");
  graph = parse(small_text);
  graph->ops.data[0].code = (ts_opcode)1000;
  check_broken(graph, "an op has no opcode");
  graph = parse(small_text);
  graph->ops.data[3].attrs = NULL;
  check_broken(graph, "op 3, reverse: attributes and op do not fit");
  graph = parse(small_text);
  *(ts_attrs *)(uintptr_t)graph->ops.data[3].attrs = (ts_attrs){.axes = {2, {1, 0}}};
  check_broken(graph, "attributes are not in canonical form");
  graph = parse(small_text);
  graph->ops.data[0].result_count = 0;
  check_broken(graph, "op 0, add: has no results");
  graph = new_graph();
  check_broken(graph, "a region has no results yet");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("graph");
  TCase *tests = tcase_create("graph");
  tcase_add_test(tests, op_table);
  tcase_add_test(tests, values_and_ops);
  tcase_add_test(tests, ids_from_anywhere);
  tcase_add_test(tests, types_from_anywhere);
  tcase_add_test(tests, attributes_are_canonical);
  tcase_add_test(tests, regions_have_one_owner);
  tcase_add_test(tests, keys_are_found);
  tcase_add_test(tests, nesting_is_bounded);
  tcase_add_test(tests, shorthands);
  tcase_add_test(tests, what_is_equal_is_kept_once);
  tcase_add_test(tests, clone_is_equal);
  tcase_add_test(tests, copy_within_a_graph);
  tcase_add_test(tests, every_allocation_fails);
  tcase_add_test(tests, failed_op_leaves_no_trace);
  tcase_add_test(tests, verify_values);
  tcase_add_test(tests, verify_uses);
  tcase_add_test(tests, verify_structure);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
