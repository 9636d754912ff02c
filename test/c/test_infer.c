/* Inference of every op: its results, and its errors on wrong operands and attributes. */
#include "infer_case.h"

/* ---- elementwise */

typedef struct elementwise_rule {
  ts_op_class op_class;
  int operands;
  const char *operand, *other_shape, *result;
  const char *wrong, *wrong_type, *expected; /* NULL: every type will do */
} elementwise_rule;

static const elementwise_rule elementwise_rules[] = {
    {TS_CLASS_UNARY_FLOAT, 1, "%f", NULL, "f32[2,3]", "%i", "s32[2,3]", "expected a floating-point type"},
    {TS_CLASS_UNARY, 1, "%u", NULL, "u8[2,3]", NULL, NULL, NULL},
    {TS_CLASS_UNARY_INTEGER, 1, "%i", NULL, "s32[2,3]", "%d", "f64[2,3]", "expected an integer type"},
    {TS_CLASS_PREDICATE, 1, "%d", NULL, "u8[2,3]", NULL, NULL, NULL},
    {TS_CLASS_BINARY, 2, "%f", "%w", "f32[2,3]", NULL, NULL, NULL},
    {TS_CLASS_BINARY_FLOAT, 2, "%f", "%w", "f32[2,3]", "%i", "s32[2,3]", "expected a floating-point type"},
    {TS_CLASS_BINARY_INTEGER, 2, "%i", "%i1", "s32[2,3]", "%f", "f32[2,3]", "expected an integer type"},
    {TS_CLASS_COMPARE, 2, "%f", "%w", "u8[2,3]", NULL, NULL, NULL},
};

static void check_elementwise(const elementwise_rule *rule, const char *name) {
  char line[200], message[200];
  const char *x = rule->operand;
  bool binary = rule->operands == 2;
  snprintf(line, sizeof line, binary ? "%%r = %s %s, %s : %s" : "%%r = %s %s%.0s : %s", name, x, x, rule->result);
  check_ok(line);
  snprintf(line, sizeof line, binary ? "%%r = %s %s : %s" : "%%r = %s %s, %%s : %s", name, x, rule->result);
  snprintf(message, sizeof message, "%d operands, expected %d", binary ? 1 : 2, rule->operands);
  check_error(line, message);
  if (rule->wrong) {
    snprintf(line, sizeof line, binary ? "%%r = %s %s, %s : %s" : "%%r = %s %s%.0s : %s", name, rule->wrong,
             rule->wrong, rule->wrong_type);
    snprintf(message, sizeof message, binary ? "%s(%s, %s): %s" : "%s(%s%.0s): %s", name, rule->wrong_type,
             rule->wrong_type, rule->expected);
    check_error(line, message);
  }
  if (!binary) return;
  snprintf(line, sizeof line, "%%r = %s %s, %%d : f32[2,3]", name, x);
  check_error(line, "f64[2,3]): the operands' types differ, expected equal types");
  snprintf(line, sizeof line, "%%r = %s %s, %s : f32[2,3]", name, x, rule->other_shape);
  check_error(line, "the operands' shapes differ, expected equal shapes");
}

START_TEST(elementwise_by_class)
{
  int checked = 0;
  for (int op = 0; op < TS_OP_COUNT; op++) {
    for (int i = 0; i < COUNT(elementwise_rules); i++) {
      if (ts_op_get_class((ts_opcode)op) != elementwise_rules[i].op_class) continue;
      check_elementwise(&elementwise_rules[i], ts_op_name((ts_opcode)op));
      checked++;
    }
  }
  ck_assert_int_gt(checked, 50);
}
END_TEST

START_TEST(elementwise_others)
{
  static const char *const good[] = {
      "%r = complex %f, %g : c64[2,3]", "%r = complex %d, %d : c128[2,3]",   "%r = real %h : f32[2,3]",
      "%r = imag %h : f32[2,3]",        "%r = convert %f : s8[2,3]",         "%r = convert %u : bf16[2,3]",
      "%r = bitcast %f : s32[2,3]",     "%r = select %u, %f, %g : f32[2,3]", "%r = clamp %f, %g, %f : f32[2,3]",
      "%r = clamp %n, %n, %n : s32[]",
  };
  static const error_case bad[] = {
      {"%r = real %f : f32[2,3]", "real(f32[2,3]): expected a complex type"},
      {"%r = imag %i : f32[2,3]", "imag(s32[2,3]): expected a complex type"},
      {"%r = complex %i, %j : c64[2,3]", "complex(s32[2,3], s32[2,3]): expected parts of type f32 or f64"},
      {"%r = complex %f, %d : c64[2,3]", "complex(f32[2,3], f64[2,3]): the operands' types differ"},
      {"%r = complex %f, %w : c64[2,3]", "complex(f32[2,3], f32[3,2]): the operands' shapes differ"},
      {"%r = bitcast %f : f64[2,3]", "bitcast(f32[2,3]): f64 has 64 bits, expected a type of 32"},
      {"%r = convert %f : s8[3,2]", "said to be s8[3,2], expected s8[2,3]"},
      {"%r = select %i, %f, %g : f32[2,3]", "select(s32[2,3], f32[2,3], f32[2,3]): expected a predicate of type u8"},
      {"%r = select %u, %f, %d : f32[2,3]", "select(u8[2,3], f32[2,3], f64[2,3]): the choices' types differ"},
      {"%r = select %u, %w, %w : f32[3,2]", "select(u8[2,3], f32[3,2], f32[3,2]): the operands' shapes differ"},
      {"%r = select %p, %f, %f : f32[3,2]", "select(u8[], f32[2,3], f32[2,3]): the operands' shapes differ"},
      {"%r = clamp %f, %s, %s : f32[2,3]", "clamp(f32[2,3], f32[], f32[]): the operands' shapes differ"},
      {"%r = clamp %f, %d, %d : f32[2,3]", "clamp(f32[2,3], f64[2,3], f64[2,3]): the operands' types differ"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
  check_code("%r = erf %h : c64[2,3]", TS_UNIMPLEMENTED, "erf is not implemented for complex numbers");
}
END_TEST

/* ---- sources */

START_TEST(sources)
{
  static const char *const good[] = {
      "%r = constant 1.0 : f32[4,0]",  "%r = literal \"0001\" : u8[2]", "%r = iota {axis = 1} : bf16[2,3]",
      "%r = iota {axis = -1} : f64[]", "%r = eye : u8[4,2,3]",
  };
  static const error_case bad[] = {
      {"%r = parameter : f32[]", "parameter(): a region declares its parameters"},
      {"%r = constant %f : f32[]", "expected a number"},
      {"%r = constant 300 : u8[]", "expected a number of type u8"},
      {"%r = literal \"000\" : u8[2]", "expected 2 bytes, two digits each, for u8[2]"},
      {"%r = literal \"00zz\" : u8[2]", "expected hexadecimal digits"},
      {"%r = iota {axis = 2} : f32[2,3]", "iota(): axis 2 is out of range, expected one of [-1, 2) for rank 2"},
      {"%r = iota {axis = -2} : f32[2,3]", "axis -2 is out of range"},
      {"%r = eye : f32[3]", "eye(): the result has rank 1, expected at least 2"},
      {"%r = eye : f32[3,-1]", "f32[3,-1]"},
  };
  check_all_ok(good, COUNT(good));
  check_all_errors(bad, COUNT(bad));
}
END_TEST

/* ---- all ops */

/* Runs in one process with all others: see main(). */
START_TEST(every_op_was_tried)
{ check_every_op_was_tried(); }
END_TEST

START_TEST(long_operand_lists_are_cut)
{
  check_error("%r = concatenate %f, %f, %f, %f, %f, %f, %f, %s {axis = 0} : f32[1]",
              "f32[2,3], ... 8 in all): operand 7 is f32[]");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("infer");
  TCase *tests = tcase_create("infer");
  tcase_add_test(tests, elementwise_by_class);
  tcase_add_test(tests, elementwise_others);
  tcase_add_test(tests, sources);
  infer_add_shapes(tests);
  infer_add_reductions(tests);
  infer_add_control(tests);
  tcase_add_test(tests, long_operand_lists_are_cut);
  tcase_add_test(tests, every_op_was_tried);
  suite_add_tcase(suite, tests);
  setenv("CK_FORK", "no", 1); /* so that every_op_was_tried sees the other tests */
  return testing_run(suite);
}
