/* Numbers that are picked, and bounds for the least k, against loops, for every instruction set. */
#include "kernel/pick.h"
#include "lesser_isa.h"
#include "testing.h"

enum { MOST = 1030 };

static uint64_t state = 1;
static uint64_t random_bits(void) {
  state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return state >> 29 ^ state << 31;
}

/* Many equal numbers, or few; every bit is used by some. */
static uint64_t number_of_kind(int kind) {
  const uint64_t bits = random_bits();
  if (kind == 0) return bits % 5;
  if (kind == 1) return ~(bits % 7);
  return kind == 2 ? bits : UINT64_C(0x80000000) - 50 + bits % 100;
}

typedef struct range {
  uint64_t first, span;
} range;
static const range ranges[] = {{0, 0},  {1, 2},          {0, UINT64_MAX},
                               {3, 0},  {0, UINT32_MAX}, {UINT64_C(0x80000000), 20},
                               {~7, 6}, {100, 1u << 31}, {UINT64_C(0x7fffffff), UINT64_C(1) << 63}};

#define DEFINE_CHECKS(BITS)                                                                                        \
  static void check_pick##BITS(const uint##BITS##_t *x, int64_t n, const range *r) {                               \
    uint##BITS##_t values[MOST + TS_PICK_SLACK], first = (uint##BITS##_t)r->first, span = (uint##BITS##_t)r->span; \
    uint32_t places[MOST + TS_PICK_SLACK];                                                                         \
    int64_t count = ts_pick_host()->pick##BITS(x, n, first, span, values, places), expected = 0;                   \
    for (int64_t i = 0; i < n; i++) {                                                                              \
      if ((uint##BITS##_t)(x[i] - first) > span) continue;                                                         \
      ck_assert_int_lt(expected, count);                                                                           \
      ck_assert_uint_eq(values[expected], x[i]);                                                                   \
      ck_assert_uint_eq(places[expected++], (uint32_t)i);                                                          \
    }                                                                                                              \
    ck_assert_int_eq(count, expected);                                                                             \
  }                                                                                                                \
  static void check_bound##BITS(const uint##BITS##_t *x, int64_t n, int64_t k) {                                   \
    const uint##BITS##_t bound = ts_pick_host()->bound##BITS(x, n, k);                                             \
    int64_t within = 0;                                                                                            \
    for (int64_t i = 0; i < n; i++) within += x[i] <= bound;                                                       \
    ck_assert_int_ge(within, k);                                                                                   \
  }                                                                                                                \
  static void check##BITS(int kind, int64_t n) {                                                                   \
    static const int64_t ks[] = {1, 2, 10, 16, 17, 64, 65, 300};                                                   \
    uint##BITS##_t x[MOST];                                                                                        \
    for (int64_t i = 0; i < n; i++) x[i] = (uint##BITS##_t)number_of_kind(kind);                                   \
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) check_pick##BITS(x, n, &ranges[r]);                \
    for (size_t k = 0; k < sizeof ks / sizeof *ks; k++)                                                            \
      if (ks[k] <= n) check_bound##BITS(x, n, ks[k]);                                                              \
  }
DEFINE_CHECKS(32)
DEFINE_CHECKS(64)

static const int64_t lengths[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 63, 64, 65, 100, 255, 256, 257, 511, 1000, MOST};

START_TEST(as_loops_have_it)
{
  for (size_t n = 0; n < sizeof lengths / sizeof *lengths; n++) {
    check32(_i, lengths[n]);
    check64(_i, lengths[n]);
  }
}
END_TEST

/* A bound that too many do not exceed is of no use. */
START_TEST(bounds_are_near)
{
  uint32_t x[MOST];
  for (int64_t k = 1; k <= 64; k++) {
    int64_t within = 0;
    for (int64_t i = 0; i < MOST; i++) x[i] = (uint32_t)random_bits();
    const uint32_t bound = ts_pick_host()->bound32(x, MOST, k);
    for (int64_t i = 0; i < MOST; i++) within += x[i] <= bound;
    ck_assert_int_le(within, 2 * k + 8);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("pick");
  TCase *tests = tcase_create("pick");
  tcase_set_timeout(tests, 60);
  tcase_add_loop_test(tests, as_loops_have_it, 0, 4);
  tcase_add_test(tests, bounds_are_near);
  test_add_lesser_isas(tests);
  suite_add_tcase(suite, tests);
  return testing_run(suite);
}
