/* A matrix of complex numbers times a few vectors (kernel/gemm/complex), compared with the plain sum, bit for bit. The
 * sizes are around the sizes of vectors and of chains. Some chains are computed side by side. */
#include "gemm_check.h"
#include "kernel/gemm/complex/complex_vector.h"
#include "lesser_isa.h"

static const ts_dtype types[] = {TS_C64, TS_C128};
#define TYPE_COUNT ((int)(sizeof types / sizeof *types))

typedef struct extents {
  int64_t batch, m, n, k;
} extents;

static ts_gemm *get_gemm(ts_dtype type) {
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  return gemm;
}

static void check_numbers(const ts_gemm *gemm, ts_dtype type, const extents *e, layout lhs, layout rhs) {
  product p = make_product(type, e->batch, e->m, e->n, e->k, lhs, rhs);
  const ts_gemm_shape s = p.shape;
  p.shape = ts_gemm_shape_of_parts(&s);
  ck_assert_ok(run_product(gemm, &p, &threaded));
  check_elements(type, &p, &s, 1);
  free_product(&p);
}

static int64_t draw(int64_t below) { return (int64_t)(random_bits() % (uint64_t)below); }

START_TEST(layouts)
{
  static const int64_t k[] = {1, 2, 7, 31, 64, 65, 200};
  ts_gemm *gemm = get_gemm(types[_i]);
  for (int lhs = 0; lhs < LAYOUT_COUNT; lhs++)
    for (int rhs = 0; rhs < LAYOUT_COUNT; rhs++)
      for (size_t c = 0; c < sizeof k / sizeof *k; c++) {
        const extents wide = {1 + draw(3), 1 + draw(13), 1 + draw(150), k[c]},
                      high = {1 + draw(3), 1 + draw(150), 1 + draw(8), k[c]};
        check_numbers(gemm, types[_i], &wide, (layout)lhs, (layout)rhs);
        check_numbers(gemm, types[_i], &high, (layout)lhs, (layout)rhs);
      }
  ts_gemm_release(gemm);
}
END_TEST

/* Every number of results up to that of all vectors, with every number of chains side by side. */
START_TEST(few_results)
{
  ts_gemm *gemm = get_gemm(types[_i]);
  for (int64_t results = 1; results <= 66; results++) {
    const layout how = results % 3 == 0 ? PADDED : results % 3 == 1 ? NORMAL : TRANSPOSED;
    const extents wide = {1, 1 + draw(13), results, 1 + draw(900)}, high = {1, results, 1 + draw(8), 1 + draw(900)};
    check_numbers(gemm, types[_i], &wide, NORMAL, how);
    check_numbers(gemm, types[_i], &high, how, NORMAL);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* Rows of neighbouring numbers by one vector, on either side: every number of rows around those of vectors, with any
 * number of chains, and of numbers that are prepared at once. */
START_TEST(rows_by_vector)
{
  static const int64_t k[] = {1,   2,   3,   17,  63,  64,  65,  127,  128,  129,
                              255, 256, 320, 511, 512, 513, 577, 1023, 1024, 1100};
  ts_gemm *gemm = get_gemm(types[_i]);
  for (int64_t rows = 1; rows <= 41; rows++)
    for (size_t c = 0; c < sizeof k / sizeof *k; c++) {
      const extents left = {1, rows, 1, k[c]}, right = {1 + draw(2), 1, rows, k[c]};
      if (!testing_in_share(rows + (int64_t)c)) continue;
      check_numbers(gemm, types[_i], &left, c % 2 ? NORMAL : PADDED, rows % 3 ? NORMAL : TRANSPOSED);
      check_numbers(gemm, types[_i], &right, NORMAL, TRANSPOSED);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* Small products by tiles, of every layout. A gemm for their shape has the kernel for it. Of few rows or columns some
 * are computed without packing. */
START_TEST(small)
{
  for (int round = 0; round < 150; round++) {
    const extents e = {1 + draw(3), 4 + draw(30), 2 + draw(40), round % 8 ? 1 + draw(80) : 1 + draw(600)};
    product p = make_product(types[_i], e.batch, e.m, e.n, e.k, (layout)draw(LAYOUT_COUNT), (layout)draw(LAYOUT_COUNT));
    const ts_gemm_shape s = p.shape;
    ts_gemm *gemm;
    p.shape = ts_gemm_shape_of_parts(&s);
    ck_assert_ok(ts_gemm_get(types[_i], &p.shape, &gemm));
    if (e.k <= 80 && e.m > 8 && e.n > 3) ck_assert_int_eq(ts_gemm_pick_kernel(gemm, &p.shape), TS_GEMM_SMALL);
    ck_assert_ok(run_product(gemm, &p, &threaded));
    check_elements(types[_i], &p, &s, 1);
    ts_gemm_release(gemm);
    free_product(&p);
  }
}
END_TEST

/* Several blocks of k, several tasks. */
START_TEST(large)
{
  static const extents cases[] = {{1, 1, 4, 8191},   {1, 3, 2, 9000},   {2, 1, 1, 4097}, {1, 2, 3000, 70},
                                  {1, 2100, 1, 90},  {1, 4, 1500, 130}, {300, 3, 40, 9}, {40, 70, 2, 40},
                                  {1, 11, 1003, 33}, {1, 12, 260, 300}};
  ts_gemm *gemm = get_gemm(types[_i]);
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int l = 0; l < 3; l++) check_numbers(gemm, types[_i], &cases[c], (layout)l, (layout)((l + c) % 3));
  ts_gemm_release(gemm);
}
END_TEST

/* Runs the product of c64, compares every element, and frees it. */
static void check_parts(ts_gemm *gemm, product *p) {
  const ts_gemm_shape s = p->shape;
  p->shape = ts_gemm_shape_of_parts(&s);
  ck_assert_ok(run_product(gemm, p, &ts_parallel_serial));
  check_elements(TS_C64, p, &s, 1);
  free_product(p);
}

/* Infinities, NaN and zeros of both signs in some places. */
START_TEST(special_values)
{
  static const float values[] = {INFINITY, -INFINITY, NAN, 0.0f, -0.0f, 1e-44f, 3e38f};
  ts_gemm *gemm = get_gemm(TS_C64);
  for (int round = 0; round < 60; round++) {
    const bool wide = round % 2;
    const int64_t few = 1 + draw(8), many = 1 + draw(40), k = 1 + draw(150);
    product p = make_product(TS_C64, 1, wide ? few : many, wide ? many : few, k, (layout)draw(2), (layout)draw(2));
    const ts_gemm_shape s = p.shape;
    for (int i = 0; i < 6; i++) {
      ((float *)(void *)p.lhs.origin)[draw(2 * s.m * k)] = values[draw(7)];
      ((float *)(void *)p.rhs.origin)[draw(2 * s.n * k)] = values[draw(7)];
    }
    check_parts(gemm, &p);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* Products that underflow to zeros, most of one sign, in rows whose chains are in the lanes: what is past the end of a
 * chain adds nothing to the sign of its sum. */
START_TEST(signs_of_zeros)
{
  ts_gemm *gemm = get_gemm(TS_C64);
  for (int round = 0; round < 60; round++) {
    product p = make_product(TS_C64, 1, 1 + draw(10), 1, 512 + draw(700), NORMAL, NORMAL);
    const ts_gemm_shape s = p.shape;
    float *lhs = (float *)(void *)p.lhs.origin, *rhs = (float *)(void *)p.rhs.origin;
    for (int64_t i = 0; i < 2 * s.m * s.k; i++) lhs[i] = round % 2 && i % 2 ? -1e-30f : 1e-30f;
    for (int64_t i = 0; i < 2 * s.k; i++) rhs[i] = draw(300) ? -1e-30f : 1e-30f;
    if (round % 8 == 0) lhs[draw(2 * s.m * s.k)] = INFINITY;
    check_parts(gemm, &p);
  }
  ts_gemm_release(gemm);
}
END_TEST

START_TEST(allocations_fail)
{
  ts_gemm *gemm = get_gemm(TS_C64);
  product p = make_product(TS_C64, 2, 3, 30, 9000, NORMAL, NORMAL);
  const ts_gemm_shape s = p.shape;
  p.shape = ts_gemm_shape_of_parts(&s);
  CK_FAIL_EACH_ALLOCATION({
    ts_status status = run_product(gemm, &p, &threaded);
    if (status) ck_assert_int_eq(ts_status_code(status), TS_RESOURCE_EXHAUSTED);
    ts_status_free(status);
  });
  check_elements(TS_C64, &p, &s, 1);
  free_product(&p);
  ts_gemm_release(gemm);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("gemm_complex");
  TCase *t = tcase_create("numbers");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, layouts, 0, TYPE_COUNT);
  tcase_add_loop_test(t, few_results, 0, TYPE_COUNT);
  tcase_add_loop_test(t, rows_by_vector, 0, TYPE_COUNT);
  tcase_add_loop_test(t, small, 0, TYPE_COUNT);
  tcase_add_loop_test(t, large, 0, TYPE_COUNT);
  tcase_add_test(t, special_values);
  tcase_add_test(t, signs_of_zeros);
  tcase_add_test(t, allocations_fail);
  test_add_lesser_isas(t);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
