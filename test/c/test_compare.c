/* The comparer that differential tests trust: it has to see differences. */
#include "tool/compare.h"

#include "tensors.h"
#include "testing.h"

#include <math.h>

/* Takes both. */
static bool agree(ts_buffer *a, ts_buffer *b, int64_t ulp_tolerance, const char *expected_message) {
  char message[TS_COMPARE_TEXT] = "";
  bool same = ts_compare_buffers(a, b, ulp_tolerance, message);
  if (expected_message) ck_assert_ptr_nonnull(strstr(message, expected_message));
  ts_buffer_release(a);
  ts_buffer_release(b);
  return same;
}

START_TEST(types_and_shapes)
{
  ck_assert(!agree(VECTOR(TS_S8, 1), VECTOR(TS_U8, 1), 0, "s8[1] and u8[1]"));
  ck_assert(!agree(VECTOR(TS_S8, 1), TENSOR(TS_S8, SHAPE(1, 1), 1), 0, "s8[1] and s8[1,1]"));
  ck_assert(agree(TENSOR(TS_F32, SHAPE(0)), TENSOR(TS_F32, SHAPE(0)), 0, NULL));
}
END_TEST

START_TEST(bits)
{
  ck_assert(agree(VECTOR(TS_F32, NAN, -0.0), VECTOR(TS_F32, -NAN, -0.0), 0, NULL));
  ck_assert(!agree(VECTOR(TS_F32, 1, -0.0), VECTOR(TS_F32, 1, 0.0), 0, "1 of 2 elements differ, first at 1"));
  ck_assert(!agree(VECTOR(TS_F16, NAN), VECTOR(TS_F16, 1), 1000000, NULL));
  ck_assert(!agree(VECTOR(TS_F64, 1), VECTOR(TS_F64, 1 + 0x1p-52), 0, "1 ulp"));
  ck_assert(!agree(VECTOR(TS_S64, 7, 8, 9), VECTOR(TS_S64, 7, 7, 8), 5, "2 of 3 elements differ, first at 1: 8 and 7"));
}
END_TEST

START_TEST(ulps)
{
  ck_assert(agree(VECTOR(TS_F32, 1), VECTOR(TS_F32, 1 + 0x1p-22), 2, NULL));
  ck_assert(!agree(VECTOR(TS_F32, 1), VECTOR(TS_F32, 1 + 0x1.8p-22), 2, "3 ulp"));
  ck_assert(agree(VECTOR(TS_F16, -0.0), VECTOR(TS_F16, 0.0), 1, NULL));
  ck_assert(agree(VECTOR(TS_F64, 5e-324), VECTOR(TS_F64, -5e-324), 2, NULL));
  ck_assert(!agree(VECTOR(TS_F64, 5e-324), VECTOR(TS_F64, -5e-324), 1, NULL));
  ck_assert(agree(VECTOR(TS_F16, 65504), VECTOR(TS_F16, INFINITY), 1, NULL));
  ck_assert(!agree(VECTOR(TS_F64, INFINITY), VECTOR(TS_F64, -INFINITY), INT64_MAX - 1, NULL));
}
END_TEST

static Suite *suite(void) {
  Suite *all = suite_create("compare");
  TCase *cases = tcase_create("compare");
  tcase_add_checked_fixture(cases, test_leaks_begin, test_leaks_end);
  tcase_add_test(cases, types_and_shapes);
  tcase_add_test(cases, bits);
  tcase_add_test(cases, ulps);
  suite_add_tcase(all, cases);
  return all;
}

int main(void) { return testing_run(suite()); }
