/* Front ends without a VM: the types that operands and plain numbers have together, eager calls, and expressions made
 * of rules, as programs and as bytes. */
#include "front/call.h"
#include "front/expr_kept.h"
#include "front/promote.h"

#include "tensors.h"
#include "testing.h"

/* ---- numbers and operands ---- */

static ts_operand of_type(ts_dtype dtype) { return (ts_operand){.dtype = dtype, .shape = &ts_shape_scalar}; }

static ts_operand of_integer(int64_t number) {
  return (ts_operand){.is_number = true, .number = {TS_NUMBER_SIGNED, .s = number}, .shape = &ts_shape_scalar};
}

static ts_operand of_float(double number) {
  return (ts_operand){.is_number = true, .number = {TS_NUMBER_FLOAT, .f = number}, .shape = &ts_shape_scalar};
}

static void check_types(ts_opcode code, const ts_operand *operands, size_t count, const ts_dtype *expected) {
  ts_dtype types[4];
  test_ok(ts_op_operand_types(code, (ts_operands){operands, count}, types));
  for (size_t i = 0; i < count; i++) ck_assert_str_eq(ts_dtype_name(types[i]), ts_dtype_name(expected[i]));
}

#define CHECK_TYPES(code, expected, ...)                                                                   \
  check_types(code, (ts_operand[]){__VA_ARGS__}, sizeof((ts_operand[]){__VA_ARGS__}) / sizeof(ts_operand), \
              (ts_dtype[4]){expected, expected, expected})

START_TEST(numbers_widen_integers_until_they_fit)
{
  CHECK_TYPES(TS_OP_ADD, TS_U8, of_type(TS_U8), of_integer(255));
  CHECK_TYPES(TS_OP_ADD, TS_U16, of_type(TS_U8), of_integer(256));
  CHECK_TYPES(TS_OP_ADD, TS_S16, of_type(TS_U8), of_integer(-1));
  CHECK_TYPES(TS_OP_CLAMP, TS_S16, of_type(TS_U8), of_integer(300), of_integer(-1));
  CHECK_TYPES(TS_OP_CLAMP, TS_S16, of_type(TS_U8), of_integer(-1), of_integer(300));
  CHECK_TYPES(TS_OP_ADD, TS_S64, of_type(TS_S32), of_integer(INT64_C(1) << 31));
  CHECK_TYPES(TS_OP_ADD, TS_S32, of_integer(1), of_integer(2));
}
END_TEST

START_TEST(numbers_take_the_type_of_floats)
{
  CHECK_TYPES(TS_OP_ADD, TS_BF16, of_type(TS_BF16), of_float(1e300));
  CHECK_TYPES(TS_OP_ADD, TS_F32, of_type(TS_U8), of_float(0.5));
  CHECK_TYPES(TS_OP_ADD, TS_F16, of_type(TS_F16), of_integer(100000));
  CHECK_TYPES(TS_OP_DIVIDE, TS_F32, of_type(TS_S64), of_integer(2));
}
END_TEST

START_TEST(operands_keep_types_of_their_own)
{
  check_types(TS_OP_SELECT, (ts_operand[]){of_type(TS_F64), of_type(TS_U8), of_type(TS_S8)}, 3,
              (ts_dtype[]){TS_F64, TS_S16, TS_S16});
  check_types(TS_OP_REDUCE_SUM, (ts_operand[]){of_type(TS_U8)}, 1, (ts_dtype[]){ts_dtype_aggregate(TS_U8)});
}
END_TEST

START_TEST(numbers_of_one_class_fit_in_the_same_types)
{
  for (int64_t a = -70000; a < 70000; a += 97) {
    for (int64_t b = -300; b < 300; b += 7) {
      ts_number x = {TS_NUMBER_SIGNED, .s = a}, y = {TS_NUMBER_SIGNED, .s = b};
      if (ts_number_class(&x) != ts_number_class(&y)) continue;
      for (int t = 0; t < TS_DTYPE_COUNT; t++)
        if (ts_dtype_supported((ts_dtype)t))
          ck_assert_int_eq(ts_number_fits(&x, (ts_dtype)t), ts_number_fits(&y, (ts_dtype)t));
    }
  }
}
END_TEST

START_TEST(numbers_that_do_not_fit_are_errors)
{
  ts_scalar scalar;
  ts_number large = {TS_NUMBER_SIGNED, .s = 300}, half = {TS_NUMBER_FLOAT, .f = 0.5};
  ck_assert_error(ts_number_scalar(&large, TS_U8, &scalar), TS_OUT_OF_RANGE,
                  "300 does not fit in u8, which has 0 to 255");
  ck_assert_error(ts_number_scalar(&half, TS_S32, &scalar), TS_INVALID_ARGUMENT, "0.5 is not an integer");
}
END_TEST

static ts_status build_op(ts_opcode code, const ts_operand *operands, size_t count) {
  ts_graph *graph = test_graph();
  ts_value_id result;
  ts_status status = ts_op_build(graph, TS_ROOT, code, (ts_operands){operands, count}, NULL, &result);
  ts_graph_destroy(graph);
  return status;
}

START_TEST(calls_that_fail_name_the_op_and_its_operands)
{
  const ts_shape two = SHAPE(2), three = SHAPE(3);
  ts_operand a = {.dtype = TS_F32, .shape = &two}, b = {.dtype = TS_S8, .shape = &three};
  ck_assert_error(build_op(TS_OP_ADD, (ts_operand[]){a, b}, 2), TS_INVALID_ARGUMENT, "add(f32[2], s8[3])");
  ck_assert_error(build_op(TS_OP_ADD, (ts_operand[]){a}, 1), TS_INVALID_ARGUMENT, "add takes 2 operands, got 1");
  ck_assert_error(build_op(TS_OP_AND, (ts_operand[]){of_integer(1), of_float(1)}, 2), TS_INVALID_ARGUMENT,
                  "expected integer types");
}
END_TEST

/* ---- eager calls ---- */

static const ts_number twenty = {TS_NUMBER_SIGNED, .s = 20}, more = {TS_NUMBER_SIGNED, .s = 21},
                       many = {TS_NUMBER_SIGNED, .s = 1000};

/* Of a tensor and a number; the caller keeps both. */
static ts_call binary_call(ts_opcode code, ts_buffer *const buffers[2], const ts_number *numbers) {
  return (ts_call){.code = code, .device = ts_device_default(), .buffers = buffers, .numbers = numbers, .count = 2};
}

static bool same_key(const ts_call *a, const ts_call *b) {
  ts_call_key x, y;
  test_ok(ts_call_key_init(a, &x));
  test_ok(ts_call_key_init(b, &y));
  bool same = x.words == y.words && memcmp(x.data, y.data, x.words * sizeof *x.data) == 0;
  ts_call_key_deinit(&x);
  ts_call_key_deinit(&y);
  return same;
}

START_TEST(calls_with_other_values_have_the_same_key)
{
  ts_buffer *a = VECTOR(TS_U8, 1, 2), *b = VECTOR(TS_U8, 3, 4), *c = VECTOR(TS_U8, 1, 2, 3), *d = VECTOR(TS_S8, 1, 2);
  ts_buffer *args[][2] = {{a, NULL}, {b, NULL}, {c, NULL}, {d, NULL}, {NULL, a}};
  ts_number numbers[][2] = {{twenty, twenty}, {more, more}, {many, many}};
  ts_call call = binary_call(TS_OP_ADD, args[0], numbers[0]), other = binary_call(TS_OP_ADD, args[1], numbers[1]);
  ck_assert(same_key(&call, &other));
  other.code = TS_OP_SUBTRACT;
  ck_assert(!same_key(&call, &other));
  other = binary_call(TS_OP_ADD, args[0], numbers[2]); /* does not fit in u8 */
  ck_assert(!same_key(&call, &other));
  for (int i = 2; i < 5; i++) {
    other = binary_call(TS_OP_ADD, args[i], numbers[0]);
    ck_assert(!same_key(&call, &other));
  }
  ts_buffer_release(a);
  ts_buffer_release(b);
  ts_buffer_release(c);
  ts_buffer_release(d);
}
END_TEST

START_TEST(keys_of_many_operands_are_whole)
{
  enum { COUNT = 40 };
  ts_buffer *a = VECTOR(TS_U8, 1, 2), *b = VECTOR(TS_U8, 1), *x[COUNT], *y[COUNT];
  for (int i = 0; i < COUNT; i++) x[i] = y[i] = a;
  y[COUNT - 1] = b;
  ts_call call = {.code = TS_OP_CONCATENATE, .device = ts_device_default(), .buffers = x, .count = COUNT}, other = call;
  ck_assert(same_key(&call, &other));
  other.buffers = y;
  ck_assert(!same_key(&call, &other));
  ts_buffer_release(a);
  ts_buffer_release(b);
}
END_TEST

START_TEST(a_call_is_compiled_for_its_types)
{
  ts_buffer *a = VECTOR(TS_U8, 250, 251), *args[2] = {a, NULL}, *given[2] = {a, SCALAR(TS_U8, 3)}, *result;
  ts_number numbers[2] = {twenty, twenty};
  ts_call call = binary_call(TS_OP_ADD, args, numbers);
  ts_loaded *loaded;
  test_ok(ts_call_compile(&call, NULL, &loaded));
  test_ok(ts_loaded_run(loaded, (ts_run_args){given, 2}, &(ts_run_options){0}, &result));
  test_equal(result, VECTOR(TS_U8, 253, 254));
  ts_loaded_release(loaded);
  ts_buffer_release(a);
  ts_buffer_release(given[1]);
}
END_TEST

static void compile_and_drop(const ts_call *call) {
  ts_loaded *loaded;
  if (ts_status_consume_ok(ts_call_compile(call, NULL, &loaded))) ts_loaded_release(loaded);
}

START_TEST(every_allocation_of_a_call_may_fail)
{
  ts_buffer *a = VECTOR(TS_U8, 1, 2), *args[2] = {a, NULL};
  ts_number numbers[2] = {twenty, twenty};
  ts_call call = binary_call(TS_OP_ADD, args, numbers);
  compile_and_drop(&call); /* kernels stay in their cache */
  CK_FAIL_EACH_ALLOCATION(compile_and_drop(&call));
  ts_buffer_release(a);
}
END_TEST

START_TEST(only_valid_reshapes_are_views)
{
  ts_buffer *a = VECTOR(TS_F32, 1, 2, 3, 4);
  ts_call call = {.code = TS_OP_RESHAPE, .buffers = &a, .count = 1, .attrs = {.shape = SHAPE(2, 2)}};
  ck_assert(ts_call_is_view(&call));
  call.attrs.shape = SHAPE(2, 3);
  ck_assert(!ts_call_is_view(&call));
  call.attrs.shape = SHAPE(-2, -2);
  ck_assert(!ts_call_is_view(&call));
  call.code = TS_OP_NEGATE;
  ck_assert(!ts_call_is_view(&call));
  ts_buffer_release(a);
}
END_TEST

/* ---- expressions ---- */

/* (x + x) * 2 of f32[3], by two rules and a constant. */
typedef struct fixture {
  ts_expr e;
  ts_graph *program; /* of the rules */
  ts_expr_rule rules[3];
} fixture;

static ts_region_id add_rule(ts_graph *graph, ts_opcode code, const ts_type *form) {
  ts_region_id region;
  ts_value_id operands[2], result;
  test_ok(ts_graph_add_region(graph, &region));
  for (size_t i = 0; i < 2; i++) test_ok(ts_graph_add_param(graph, region, form->dtype, &form->shape, &operands[i]));
  test_ok(ts_graph_add_op(graph, region, code, (ts_values){operands, 2}, NULL, &result));
  test_ok(ts_graph_set_results(graph, region, &result, 1));
  return region;
}

static void add_value(ts_expr *e, ts_expr_value value) { test_ok(TS_VEC_PUSH(&e->values, value)); }

static void setup(fixture *f) {
  const ts_type form = {TS_F32, SHAPE(3)};
  const uint32_t uses[] = {0, 0, 1, 2};
  ts_expr_table by_form = {0};
  uint32_t number;
  ts_region_id constant;
  memset(f, 0, sizeof *f);
  f->program = test_graph();
  f->rules[0] = (ts_expr_rule){f->program, add_rule(f->program, TS_OP_ADD, &form)};
  f->rules[2] = (ts_expr_rule){f->program, add_rule(f->program, TS_OP_MULTIPLY, &form)};
  test_ok(ts_expr_add_form(&f->e, &by_form, &form, &number));
  test_ok(ts_expr_add_form(&f->e, &by_form, &form, &number));
  ck_assert_uint_eq(number, 0);
  ts_expr_table_deinit(&by_form);
  test_ok(ts_expr_add_constant(&f->e, &form, ts_scalar_from_f64(TS_F32, 2), &constant));
  f->rules[1] = (ts_expr_rule){f->e.constants, constant};
  f->e.rule_count = 3;
  for (uint32_t i = 0; i < 3; i++) {
    test_ok(TS_VEC_PUSH(&f->e.arities, 1));
    test_ok(TS_VEC_PUSH(&f->e.origins, ((ts_expr_origin){.constant = i == 1 ? constant : 0})));
  }
  for (size_t i = 0; i < 4; i++) test_ok(TS_VEC_PUSH(&f->e.uses, uses[i]));
  test_ok(TS_VEC_PUSH(&f->e.params, 0));
  add_value(&f->e, (ts_expr_value){TS_NO_ID, 0, 0, 0});
  add_value(&f->e, (ts_expr_value){0, 0, 0, 2});
  add_value(&f->e, (ts_expr_value){1, 0, 0, 0});
  add_value(&f->e, (ts_expr_value){2, 0, 2, 2});
  test_ok(TS_VEC_PUSH(&f->e.results, 3));
}

static void teardown(fixture *f) {
  ts_expr_deinit(&f->e);
  ts_graph_destroy(f->program);
}

static void check_text(ts_graph *graph) {
  ts_text text = {0};
  char *string;
  test_ok(ts_graph_verify(graph));
  test_ok(ts_graph_print(graph, &text));
  test_ok(ts_text_finish(&text, &string));
  ck_assert_ptr_nonnull(strstr(string, "add %0, %0"));
  ck_assert_ptr_nonnull(strstr(string, "multiply"));
  ts_free(string);
  ts_graph_destroy(graph);
}

START_TEST(a_program_is_copies_of_its_rules)
{
  fixture f;
  ts_graph *graph;
  setup(&f);
  test_ok(ts_expr_check_rules(&f.e, f.rules));
  test_ok(ts_expr_make(&f.e, f.rules, &graph));
  check_text(graph);
  teardown(&f);
}
END_TEST

START_TEST(rules_that_make_other_types_are_refused)
{
  fixture f;
  const ts_type other = {TS_S32, SHAPE(3)};
  setup(&f);
  f.rules[2].region = add_rule(f.program, TS_OP_MULTIPLY, &other);
  ck_assert_error(ts_expr_check_rules(&f.e, f.rules), TS_INTERNAL, "a rule makes s32[3], expected f32[3]");
  f.rules[2].region = TS_ROOT;
  ck_assert_error(ts_expr_check_rules(&f.e, f.rules), TS_INTERNAL,
                  "a rule takes 0 values and makes 0, expected 2 and 1");
  teardown(&f);
}
END_TEST

static void pack(fixture *f, const ts_expr_owner *owner, ts_text *out) {
  *out = (ts_text){0};
  test_ok(ts_expr_pack(&f->e, f->rules, owner, out));
}

START_TEST(packed_programs_come_back)
{
  fixture f;
  ts_text packed;
  ts_graph *graph;
  setup(&f);
  pack(&f, NULL, &packed);
  test_ok(ts_expr_unpack(packed.data, packed.length, &graph));
  check_text(graph);
  ts_text_deinit(&packed);
  teardown(&f);
}
END_TEST

static void unpack_and_drop(const ts_text *packed) {
  ts_graph *graph;
  if (ts_status_consume_ok(ts_expr_unpack(packed->data, packed->length, &graph))) ts_graph_destroy(graph);
}

/* A mesh with names, how the parameter and the result are cut. */
static void set_mesh(fixture *f) {
  const ts_root_sharding cut = {true, {.count = 1, .cuts = {{0, 0}}}};
  f->e.mesh = (ts_mesh){.rank = 2, .sizes = {3, 2}, .name = "m", .axis_names = {"data", "the model"}};
  test_ok(TS_VEC_PUSH(&f->e.cuts[TS_PARAMS], cut));
  test_ok(TS_VEC_PUSH(&f->e.cuts[TS_RESULTS], cut));
}

START_TEST(packed_programs_have_their_mesh)
{
  fixture f;
  ts_text packed, text = {0};
  ts_graph *graph;
  char *string;
  setup(&f);
  set_mesh(&f);
  pack(&f, NULL, &packed);
  test_ok(ts_expr_unpack(packed.data, packed.length, &graph));
  test_ok(ts_graph_print(graph, &text));
  test_ok(ts_text_finish(&text, &string));
  ck_assert_ptr_nonnull(strstr(string, "mesh @m [\"data\"=3,\"the model\"=2] (%0: f32[3] sharded [[0]]"));
  ck_assert_ptr_nonnull(strstr(string, "-> (f32[3] sharded [[0]])"));
  ts_free(string);
  check_text(graph);
  CK_FAIL_EACH_ALLOCATION(unpack_and_drop(&packed));
  ts_text_deinit(&packed);
  teardown(&f);
}
END_TEST

/* Of each length, and with each byte changed: an error, or a graph that verifies. */
static void unpack_damaged(const char *bytes, size_t size) {
  ts_graph *graph;
  if (!ts_status_consume_ok(ts_expr_unpack(bytes, size, &graph))) return;
  test_ok(ts_graph_verify(graph));
  ts_graph_destroy(graph);
}

START_TEST(every_allocation_may_fail)
{
  fixture f;
  ts_text packed;
  setup(&f);
  pack(&f, NULL, &packed);
  CK_FAIL_EACH_ALLOCATION(unpack_and_drop(&packed));
  ts_text_deinit(&packed);
  teardown(&f);
}
END_TEST

START_TEST(damaged_programs_are_refused)
{
  fixture f;
  ts_text packed;
  ts_graph *graph;
  int64_t live = ts_alloc_live();
  setup(&f);
  pack(&f, NULL, &packed);
  size_t without_mesh = packed.length;
  ts_text_deinit(&packed);
  if (_i) set_mesh(&f);
  pack(&f, NULL, &packed);
  for (size_t size = 0; size < packed.length; size++)
    if (size != without_mesh)
      ck_assert_error(ts_expr_unpack(packed.data, size, &graph), TS_INVALID_ARGUMENT, "a packed program");
  for (size_t i = 0; i < packed.length; i++) {
    for (int bit = 0; bit < 8; bit++) {
      packed.data[i] = (char)(packed.data[i] ^ 1 << bit);
      unpack_damaged(packed.data, packed.length);
      packed.data[i] = (char)(packed.data[i] ^ 1 << bit);
    }
  }
  ts_text_deinit(&packed);
  teardown(&f);
  ck_assert_int_eq(ts_alloc_live(), live);
}
END_TEST

static int references;
static void retain(void *object) { references += object == &references; }
static void release(void *object) { references -= object == &references; }

START_TEST(cached_rules_keep_their_owner)
{
  const ts_expr_owner owner = {&references, retain, release};
  const uint64_t key = 12345;
  fixture f;
  ts_text packed;
  setup(&f);
  test_ok(TS_VEC_PUSH(&f.e.keys, key));
  f.e.origins.data[0].key_words = 1;
  pack(&f, &owner, &packed);
  ck_assert_int_eq(references, 1);
  ts_expr_kept *kept = ts_expr_kept_find(&key, sizeof key);
  ck_assert_ptr_nonnull(kept);
  ck_assert_uint_eq(kept->rule.region, f.rules[0].region);
  ck_assert_ptr_null(ts_expr_kept_find(&(uint64_t){54321}, sizeof key));
  ts_expr_kept_clear();
  ck_assert_int_eq(references, 1);
  ck_assert_ptr_null(ts_expr_kept_find(&key, sizeof key));
  ts_expr_kept_release(kept);
  ck_assert_int_eq(references, 0);
  ts_text_deinit(&packed);
  teardown(&f);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("front");
  TCase *tc = tcase_create("front");
  tcase_add_test(tc, numbers_widen_integers_until_they_fit);
  tcase_add_test(tc, numbers_take_the_type_of_floats);
  tcase_add_test(tc, operands_keep_types_of_their_own);
  tcase_add_test(tc, numbers_of_one_class_fit_in_the_same_types);
  tcase_add_test(tc, numbers_that_do_not_fit_are_errors);
  tcase_add_test(tc, calls_that_fail_name_the_op_and_its_operands);
  tcase_add_test(tc, calls_with_other_values_have_the_same_key);
  tcase_add_test(tc, keys_of_many_operands_are_whole);
  tcase_add_test(tc, a_call_is_compiled_for_its_types);
  tcase_add_test(tc, every_allocation_of_a_call_may_fail);
  tcase_add_test(tc, only_valid_reshapes_are_views);
  tcase_add_test(tc, a_program_is_copies_of_its_rules);
  tcase_add_test(tc, rules_that_make_other_types_are_refused);
  tcase_add_test(tc, packed_programs_come_back);
  tcase_add_test(tc, packed_programs_have_their_mesh);
  tcase_add_test(tc, every_allocation_may_fail);
  tcase_add_loop_test(tc, damaged_programs_are_refused, 0, 2);
  tcase_add_test(tc, cached_rules_keep_their_owner);
  suite_add_tcase(s, tc);
  return s;
}

int main(void) { return testing_run(suite()); }
