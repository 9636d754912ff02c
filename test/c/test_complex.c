/* Complex functions at recorded points against mpmath, and at special values against the C library: the bounds of
 * docs/complex.md. */
#include "complex_check.h"
#include "lesser_isa.h"
#include "testing.h"

static complex_table table;

static void read_table(void) { ck_assert_ok(complex_table_read(&table)); }
static void drop_table(void) { complex_table_free(&table); }

/* The bound of the error. c64 is the exact number rounded, 0.5 for each part, except exp. */
static double bound_of(ts_opcode op, ts_dtype type) {
  if (type == TS_C64) return op == TS_OP_EXP ? 2.2 : 0.75;
  return 4;
}

static void check_function(const complex_function *f, ts_dtype type) {
  complex_worst worst;
  ck_assert_ok(complex_measure(&table, f, type, &worst));
  ck_assert_msg(worst.error <= bound_of(f->op, type), "%s of %s at (%.17g, %.17g): %g units", ts_op_name(f->op),
                ts_dtype_name(type), worst.re, worst.im, worst.error);
}

START_TEST(functions_are_accurate)
{
  ck_assert_int_eq(table.function_count, 22);
  for (int i = 0; i < table.function_count; i++) check_function(&table.functions[i], _i == 0 ? TS_C64 : TS_C128);
}
END_TEST

START_TEST(specials_are_those_of_annex_g)
{
  for (int i = 0; i < complex_special_function_count; i++) {
    complex_specials s;
    ck_assert_ok(complex_check_specials(i, _i == 0 ? TS_C64 : TS_C128, &s));
    ck_assert_int_eq(s.points, COMPLEX_SPECIALS * COMPLEX_SPECIALS);
    ck_assert_msg(s.wrong == 0, "%s: %d special values, the first at (%g, %g)", ts_op_name(s.op), (int)s.wrong, s.re,
                  s.im);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("complex");
  TCase *tests = tcase_create("complex");
  tcase_set_timeout(tests, 120);
  tcase_add_checked_fixture(tests, read_table, drop_table);
  tcase_add_loop_test(tests, functions_are_accurate, 0, 2);
  tcase_add_loop_test(tests, specials_are_those_of_annex_g, 0, 2);
  test_add_lesser_isas(tests);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
