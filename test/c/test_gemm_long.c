/* Sums of many products: chains, blocks, and the order in which blocks are added. */
#include "gemm_check.h"

/* Around the ends of chains and blocks; enough blocks that some wait for others; a few steps in the last one, for each
 * kernel; batches one by one and together; results that are too large to be computed together. */
START_TEST(long_sums)
{
  enum { CHAIN = TS_CONTRACT_CHAIN, BLOCK = TS_CONTRACT_BLOCK };
  static const struct {
    int64_t batch, m, n, k;
    layout lhs, rhs;
  } cases[] = {
      {1, 16, 33, CHAIN, NORMAL, NORMAL},
      {1, 16, 33, CHAIN + 1, NORMAL, NORMAL},
      {1, 3, 5, BLOCK, NORMAL, NORMAL},
      {1, 4, 4, BLOCK + 1, NORMAL, NORMAL},
      {1, 2, 17, 13 * BLOCK + 77, TRANSPOSED, STRIDED},
      {1, 1, 1, 7 * BLOCK + 1, NORMAL, NORMAL},
      {1, 1, 37, 3 * BLOCK + 130, NORMAL, NORMAL},
      {1, 1, 37, 3 * BLOCK + 1, STRIDED, TRANSPOSED},
      {1, 33, 1, 2 * BLOCK + 1, NORMAL, REVERSED},
      {1, 3, 50, BLOCK + 2, NORMAL, TRANSPOSED},
      {1, 70, 5, BLOCK + 3, NORMAL, TRANSPOSED},
      {2, 3, 4, 3 * BLOCK, NORMAL, PADDED},
      {9, 2, 3, BLOCK + CHAIN, NORMAL, NORMAL},
      {9, 1, 20, BLOCK + 5, NORMAL, TRANSPOSED},
      {1, 600, 500, BLOCK + 200, NORMAL, ROW_REPEATED},
      {1, 40, 50, 2 * BLOCK, COL_REPEATED, NORMAL},
  };
  static const ts_dtype floats[] = {TS_F32, TS_F64, TS_F16, TS_BF16};
  const ts_dtype type = floats[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int serial = 0; serial < 2; serial++) {
      const int64_t stride = cases[c].m * cases[c].n > 10000 ? 997 : 3;
      if (TEST_IS_SANITIZED && (stride > 3 || serial)) continue;
      check(gemm, type, cases[c].batch, cases[c].m, cases[c].n, cases[c].k, cases[c].lhs, cases[c].rhs,
            serial ? &ts_parallel_serial : &threaded, stride);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* A chain in f32 ends at 2^24, and has an error of n / 2 units in the last place with equal terms. */
START_TEST(errors_of_long_sums)
{
  static const int64_t lengths[] = {1000, 10000, 100000, 1000000};
  const float tenth = 0.1f;
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
    const int64_t k = lengths[l];
    product p = make_product(TS_F32, 1, 1, 1, k, NORMAL, NORMAL);
    for (int64_t i = 0; i < k; i++) {
      ((float *)(void *)p.lhs.memory)[i] = 1;
      ((float *)(void *)p.rhs.memory)[i] = tenth;
    }
    ck_assert_ok(run_product(gemm, &p, &threaded));
    const double want = (double)k * (double)tenth, got = (double)*(float *)(void *)p.out;
    ck_assert_msg(fabs(got - want) <= 0x1p-24 * 100 * want, "%d terms: %.9g, expected %.9g", (int)k, got, want);
    free_product(&p);
  }
  ts_gemm_release(gemm);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("gemm_long");
  TCase *t = tcase_create("gemm_long");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, long_sums, 0, 4);
  tcase_add_test(t, errors_of_long_sums);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
