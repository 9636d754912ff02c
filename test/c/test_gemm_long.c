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

/* A matrix times 1 to 8 vectors: chains that are tasks, columns that are, several vectors at once with parts behind
 * them, rows that are transposed in whole lines and pieces. */
START_TEST(few_vectors)
{
  static const struct {
    int64_t batch, m, n, k;
    layout lhs, rhs;
  } cases[] = {
      {1, 1, 1503, 1030, NORMAL, NORMAL},     {2, 1, 709, 1100, STRIDED, NORMAL},
      {1, 3, 1021, 1290, NORMAL, NORMAL},     {1, 8, 517, 1200, NORMAL, PADDED},
      {1, 2, 2309, 300, NORMAL, NORMAL},      {1, 4, 2006, 201, REVERSED, PADDED},
      {1, 1003, 1, 1300, TRANSPOSED, NORMAL}, {1, 701, 6, 1300, TRANSPOSED, NORMAL},
      {1, 203, 1, 301, NORMAL, NORMAL},       {1, 2, 101, 333, NORMAL, TRANSPOSED},
      {1, 4, 90, 205, NORMAL, TRANSPOSED},    {3, 7, 77, 146, NORMAL, TRANSPOSED},
  };
  static const ts_dtype all[] = {TS_F32, TS_F64, TS_F16, TS_BF16, TS_S32};
  const ts_dtype type = all[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
    for (int serial = 0; serial < (TEST_IS_SANITIZED ? 1 : 2); serial++)
      if (testing_in_share((int64_t)c + _i))
        check(gemm, type, cases[c].batch, cases[c].m, cases[c].n, cases[c].k, cases[c].lhs, cases[c].rhs,
              serial ? &ts_parallel_serial : &threaded, 7);
  ts_gemm_release(gemm);
}
END_TEST

/* A vector times 1 to 17 columns, or as many rows times a vector: around the first length with chains in lanes, the
 * ends of chains, of groups of them and of blocks, with a short and with a long last part of a block. */
START_TEST(few_results)
{
  static const int64_t lengths[] = {511, 512, 513, 639, 1000, 2048, 2049, 3000, 8192, 8193, 8292, 8192 + 641, 17000};
  enum { LENGTHS = sizeof lengths / sizeof *lengths };
  static const ts_dtype floats[] = {TS_F32, TS_F64, TS_F16, TS_BF16};
  const ts_dtype type = floats[_i / LENGTHS];
  const int64_t k = lengths[_i % LENGTHS];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int64_t few = 1; few <= 17; few++) {
    const int64_t batch = few % 5 == 2 ? 2 : 1;
    const ts_parallel *const parallel = few % 2 ? &threaded : &ts_parallel_serial;
    if (!testing_in_share(few + _i)) continue;
    check(gemm, type, batch, 1, few, k, NORMAL, NORMAL, parallel, 1);
    check(gemm, type, batch, few, 1, k, NORMAL, NORMAL, parallel, 1);
    check(gemm, type, 1, few, 1, k, PADDED, NORMAL, parallel, 1);
    check(gemm, type, 1, 1, few, k, STRIDED, TRANSPOSED, parallel, 1);
    check(gemm, type, 1, few, 1, k, TRANSPOSED, STRIDED, parallel, 1);
    check(gemm, type, 1, 1, few, k, NORMAL, PADDED, parallel, 1);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* Rows times a vector, with rows in the lanes of vectors: groups of them with rows behind them, ends of chains that are
 * no whole pieces, and rows that share sets of the first cache, whose last chains have rows in lanes as well. */
START_TEST(many_rows)
{
  static const int64_t lengths[] = {4, 5, 127, 130, 512, 1024, 1025, 1160, 2051, 8192 + 1, 8192 + 1030};
  enum { LENGTHS = sizeof lengths / sizeof *lengths };
  static const ts_dtype floats[] = {TS_F32, TS_F64};
  const ts_dtype type = floats[_i / LENGTHS];
  const int64_t k = lengths[_i % LENGTHS];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int64_t rows = 8; rows < 60; rows += 3) {
    const ts_parallel *const parallel = rows % 2 ? &threaded : &ts_parallel_serial;
    if (!testing_in_share(rows + _i)) continue;
    check(gemm, type, rows % 5 == 1 ? 2 : 1, rows, 1, k, NORMAL, NORMAL, parallel, 1);
    check(gemm, type, 1, rows, 1, k, PADDED, STRIDED, parallel, 1);
    check(gemm, type, 1, 1, rows, k, NORMAL, TRANSPOSED, parallel, 1);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* Sums that are -0: of products that are too small. One column or row has NaN and infinities. */
START_TEST(special_sums)
{
  static const ts_dtype floats[] = {TS_F32, TS_F64};
  static const int64_t lengths[] = {513, 700, 1024, 8192 + 3};
  const ts_dtype type = floats[_i % 2];
  const double tiny = type == TS_F32 ? 0x1p-100 : 0x1p-700;
  const int64_t few = 3, size = (int64_t)ts_dtype_size(type), k = lengths[_i / 2 % 4];
  const bool rows = _i / 8;
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  product p = make_product(type, 1, rows ? few : 1, rows ? 1 : few, k, NORMAL, NORMAL);
  const operand *const x = rows ? &p.lhs : &p.rhs, *const v = rows ? &p.rhs : &p.lhs;
  for (int64_t i = 0; i < k * few; i++) {
    const int64_t which = rows ? i / k : i % few, at = rows ? i % k : i / few;
    const double special = at == 77 ? (double)INFINITY : at == k - 1 ? (double)NAN : 1;
    ts_scalar_store(type, ts_scalar_from_f64(type, which == 1 ? special : -tiny), x->memory + i * size);
  }
  for (int64_t i = 0; i < k; i++) ts_scalar_store(type, ts_scalar_from_f64(type, tiny), v->memory + i * size);
  ck_assert_ok(run_product(gemm, &p, &threaded));
  check_elements(type, &p, &p.shape, 1);
  const double first = ts_scalar_to_f64(type, ts_scalar_load(type, p.out));
  ck_assert(!ts_target_host()->fma || (first == 0 && signbit(first)));
  free_product(&p);
  ts_gemm_release(gemm);
}
END_TEST

/* As threads would, one after the other. */
static void run_in_turn(const ts_parallel *self, int64_t tasks, ts_task_fn fn, void *arg) {
  for (int64_t i = 0; i < tasks; i++) fn(arg, i, (int)(i % self->width));
}

/* Where chains are tasks, the results of all of them are in memory: of many threads and vectors these would be several
 * times the operands. */
START_TEST(memory_of_chains)
{
  const ts_parallel many = {.width = 32, .run = run_in_turn};
  const int64_t k = 8 * TS_CONTRACT_BLOCK;
  ts_gemm *gemm;
  ts_pool *pool;
  ts_pool_stats stats;
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  ck_assert_ok(ts_pool_create(INT64_C(1) << 30, &pool));
  product p = make_product(TS_F32, 1, 8, 32, k, NORMAL, NORMAL);
  ck_assert_ok(ts_gemm_run(
      gemm, &p.shape,
      &(ts_gemm_call){.lhs = p.lhs.origin, .rhs = p.rhs.origin, .out = p.out, .parallel = &many, .pool = pool}));
  check_product(TS_F32, &p, 7);
  ts_pool_get_stats(pool, &stats);
  ck_assert_int_le(stats.peak, k * (8 + 32) * (int64_t)sizeof(float));
  free_product(&p);
  ts_pool_destroy(pool);
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
  tcase_add_loop_test(t, few_vectors, 0, 5);
  tcase_add_loop_test(t, few_results, 0, 4 * 13);
  tcase_add_loop_test(t, many_rows, 0, 2 * 11);
  tcase_add_loop_test(t, special_sums, 0, 16);
  tcase_add_test(t, memory_of_chains);
  tcase_add_test(t, errors_of_long_sums);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
