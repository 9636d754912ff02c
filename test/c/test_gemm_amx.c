/* Products of bf16 and of integers of 8 bits around the sizes of the tiles of AMX, and of numbers that AMX takes for
 * zeros. Other classes of machines compute the same sums by other kernels. */
#include "gemm_check.h"
#include "kernel/gemm/gemm_internal.h"
#include "lesser_isa.h"

/* Rows, columns and steps on both sides of one tile, of two, and of the steps that are packed together. */
START_TEST(sizes_around_tiles)
{
  static const int64_t sizes[] = {9, 15, 16, 17, 31, 32, 33, 48, 65},
                       steps[] = {1, 2, 15, 16, 17, 33, 100, 383, 385, 800};
  enum { SIZES = sizeof sizes / sizeof *sizes, STEPS = sizeof steps / sizeof *steps };
  static const ts_dtype types[] = {TS_BF16, TS_S8, TS_U8};
  const ts_dtype type = types[_i];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int m = 0; m < SIZES; m++)
    for (int n = 0; n < SIZES; n++) {
      const int64_t k = steps[(m * SIZES + n) % STEPS];
      const layout lhs = (layout)((m + n) % LAYOUT_COUNT), rhs = (layout)((m + 3 * n) % LAYOUT_COUNT);
      check(gemm, type, 1 + (m + n) % 2, sizes[m], sizes[n], k, lhs, rhs, n % 2 ? &threaded : &ts_parallel_serial, 1);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* Products of several blocks of k, whose rhs exceeds L2 or fits into it, on one thread and on several. */
START_TEST(several_blocks)
{
  static const struct {
    int64_t batch, m, n, k;
  } sizes[] = {{1, 70, 300, 2100}, {1, 33, 40, 8192}, {2, 65, 530, 1030}, {1, 300, 70, 1500}, {1, 64, 257, 3001}};
  static const ts_dtype types[] = {TS_BF16, TS_S8};
  const ts_dtype type = types[_i % 2];
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int i = 0; i < 5; i++) {
    const layout lhs = (layout)((i + _i) % LAYOUT_COUNT), rhs = (layout)((i + 2 * _i) % LAYOUT_COUNT);
    check(gemm, type, sizes[i].batch, sizes[i].m, sizes[i].n, sizes[i].k, lhs, rhs,
          i % 2 == _i / 2 ? &threaded : &ts_parallel_serial, 1);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* A matrix of 8 bits and a few vectors, as left and as right sides. From three vectors on, tiles compute them where
 * quads are multiplied. */
START_TEST(vectors_of_quads)
{
  static const int64_t lengths[] = {1, 3, 4, 5, 63, 64, 65, 129, 1025, 2050};
  static const int64_t results[] = {15, 16, 33, 65, 300};
  const ts_dtype type = _i ? TS_U8 : TS_S8;
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int i = 0; i < 100; i++) {
    const int64_t items = 1 + random_bits() % 9, k = lengths[random_bits() % 10], count = results[random_bits() % 5];
    const layout lhs = (layout)(random_bits() % LAYOUT_COUNT), rhs = (layout)(random_bits() % LAYOUT_COUNT);
    check(gemm, type, 1 + i % 2, i % 4 < 2 ? items : count, i % 4 < 2 ? count : items, k, lhs, rhs,
          i % 2 ? &threaded : &ts_parallel_serial, 1);
  }
  for (int64_t items = 3; items <= 8 && ts_gemm_has_quads(gemm); items++) {
    const ts_gemm_shape rows = {1, items, 300, 300, 0, 300, 1, 0, 300, 1, 0, 300},
                        columns = {1, 300, items, 300, 0, 300, 1, 0, items, 1, 0, items};
    ck_assert_int_eq(ts_gemm_pick_kernel(gemm, &rows), TS_GEMM_TILE);
    ck_assert_int_eq(ts_gemm_pick_kernel(gemm, &columns), TS_GEMM_TILE);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* A matrix and a few vectors, as left and as right sides. The lengths are around those of chains and of loads. */
START_TEST(vectors_of_bf16)
{
  static const int64_t lengths[] = {1, 2, 7, 8, 31, 32, 33, 63, 65, 511, 513, 1025, 2047, 2049, 8193};
  static const int64_t results[] = {1, 15, 16, 17, 31, 32, 33, 65, 300};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_BF16, NULL, &gemm));
  for (int i = 0; i < 120; i++) {
    const int64_t items = 1 + (i % 3 ? 0 : random_bits() % 9), k = lengths[random_bits() % 15];
    const int64_t count = results[random_bits() % 9];
    const layout lhs = (layout)(random_bits() % LAYOUT_COUNT), rhs = (layout)(random_bits() % LAYOUT_COUNT);
    check(gemm, TS_BF16, 1 + i % 2, i % 4 < 2 ? items : count, i % 4 < 2 ? count : items, k, lhs, rhs,
          i % 2 ? &threaded : &ts_parallel_serial, 1);
  }
  ts_gemm_release(gemm);
}
END_TEST

static void set_some(operand *o, int64_t count, int64_t every, double magnitude);

/* A rhs that is packed once for many runs: of bf16 perhaps with numbers that AMX takes for zeros. */
START_TEST(packed_once)
{
  static const int64_t steps[] = {130, 515, 1024, 9000};
  static const ts_dtype types[] = {TS_S8, TS_U8, TS_BF16};
  const ts_dtype type = types[_i % 3];
  const int64_t batch = 1 + _i % 3, m = _i % 5 ? 40 : 12, k = steps[_i % 4];
  product p = make_product(type, batch, m, 70, k, NORMAL, _i % 4 < 2 ? NORMAL : TRANSPOSED);
  ts_gemm *gemm;
  ts_prepared_key key;
  int64_t bytes;
  ck_assert_ok(ts_gemm_get(type, &p.shape, &gemm));
  const bool packs = ts_gemm_packs_weights(gemm, &p.shape, &key, &bytes);
  ck_assert_int_eq(packs, gemm->own != GEMM_AMX_NONE);
  if (type == TS_BF16 && _i % 2) set_some(&p.rhs, batch * 70 * k, 1000, 0x1p-90);
  ts_gemm_call call = {
      .lhs = p.lhs.origin, .rhs = p.rhs.origin, .out = p.out, .parallel = &threaded, .pool = ts_pool_default()};
  char *packed = malloc(packs ? (size_t)bytes : 1);
  if (packs) ck_assert_ok(ts_gemm_pack_weights(gemm, &p.shape, &call, packed));
  if (packs && type != TS_BF16) call.rhs = NULL; /* blocks of a long k begin at an address in it */
  if (packs) call.packed = packed;
  ck_assert_ok(ts_gemm_run(gemm, &p.shape, &call));
  check_product(type, &p, 1);
  free(packed);
  ts_gemm_release(gemm);
  free_product(&p);
}
END_TEST

/* Sets every `every`-th element of an operand of count elements to a number of about this magnitude. */
static void set_some(operand *o, int64_t count, int64_t every, double magnitude) {
  for (int64_t i = random_bits() % 7; i < count; i += every) {
    const double value = (1 + (double)(random_bits() % 128) / 128) * magnitude;
    ts_scalar_store(TS_BF16, ts_scalar_from_f64(TS_BF16, random_bits() % 2 ? value : -value), o->memory + 2 * i);
  }
}

/* Products of operands with `lhs` and `rhs` among their elements; every: how many are. */
static void check_sizes(int64_t m, int64_t n, layout how, double lhs, double rhs, int64_t every) {
  enum { K = 77 };
  ts_gemm *gemm;
  product p = make_product(TS_BF16, 1, m, n, K, how, how);
  set_some(&p.lhs, m * K, every, lhs);
  set_some(&p.rhs, K * n, every, rhs);
  ck_assert_ok(ts_gemm_get(TS_BF16, NULL, &gemm));
  ck_assert_ok(run_product(gemm, &p, &ts_parallel_serial));
  check_product(TS_BF16, &p, 1);
  ts_gemm_release(gemm);
  free_product(&p);
}

/* By tiles, and of a matrix and vectors. */
static void check_with(double lhs, double rhs, int64_t every) {
  check_sizes(70, 90, TRANSPOSED, lhs, rhs, every);
  check_sizes(33, 50, NORMAL, lhs, rhs, every);
  check_sizes(35, 3, NORMAL, lhs, rhs, every);
  check_sizes(1, 50, NORMAL, lhs, rhs, every);
  check_sizes(2, 50, TRANSPOSED, lhs, rhs, every);
}

/* Threads that begin with columns of their own, pack them once, and go on with columns of others: also where few
 * columns have numbers that the instructions take for zeros. */
START_TEST(kept_columns)
{
  static const int64_t sizes[][3] = {{70, 300, 77}, {330, 800, 130}, {128, 1000, 64}, {65, 97, 515}};
  static const ts_dtype types[] = {TS_BF16, TS_BF16, TS_S8, TS_U8};
  const ts_dtype type = types[_i % 4];
  const int64_t *size = sizes[_i / 4];
  ts_gemm *gemm;
  product p = make_product(type, 1, size[0], size[1], size[2], NORMAL, _i % 3 ? NORMAL : TRANSPOSED);
  if (_i % 4 == 1) set_some(&p.rhs, size[1] * size[2], size[1] * size[2] / 3, 0x1p-130);
  ck_assert_ok(ts_gemm_get(type, NULL, &gemm));
  for (int run = 0; run < 3; run++) {
    memset(p.out, OUT_FILL, (size_t)p.out_bytes);
    ck_assert_ok(run_product(gemm, &p, &threaded));
    check_product(type, &p, 7);
  }
  ts_gemm_release(gemm);
  free_product(&p);
}
END_TEST

/* Sums, products and elements below the normal numbers, and the least elements whose sums are never there. */
START_TEST(numbers_near_zero)
{
  const double least = 0x1p-56;
  check_with(least, least, 1);
  check_with(least / 2, least / 2, 1);
  check_with(least, least / 256, 1);
  check_with(0x1p-70, 0x1p-62, 1);
  check_with(0x1p-66, 0x1p-66, 1);
  check_with(0x1p-130, 1, 1);
  check_with(0x1p-133, 0x1p100, 1);
  check_with(1, 0x1p-130, 1);
  check_with(0x1p-130, 0x1p-3, 1000);
  check_with(1, 0x1p-127, 1000);
}
END_TEST

/* A product of zeros, whose rhs may have no batch. */
static product make_zeros(int64_t batch, int64_t m, int64_t n, int64_t k, bool is_shared) {
  product p = {.shape = {batch, m, n, k, m * k, k, 1, is_shared ? 0 : k * n, n, 1, m * n, n}};
  p.lhs.memory = p.lhs.origin = calloc((size_t)(batch * m * k), 2);
  p.rhs.memory = p.rhs.origin = calloc((size_t)((is_shared ? 1 : batch) * k * n), 2);
  p.out = calloc((size_t)(batch * m * n), 2);
  return p;
}

/* Runs a product whose first row and last row have one term each, lhs * rhs and its opposite. They are in two blocks of
 * k. */
static void check_terms(product *p, const ts_gemm *gemm, const ts_parallel *parallel, double lhs, double rhs) {
  const ts_gemm_shape *s = &p->shape;
  const int64_t later = gemm_min(s->k, TS_CONTRACT_BLOCK) * 2 / 3;
  for (int64_t b = 0; b < s->batch; b++) {
    char *rows = p->lhs.memory + 2 * b * s->lhs_batch;
    ts_scalar_store(TS_BF16, ts_scalar_from_f64(TS_BF16, lhs), rows);
    ts_scalar_store(TS_BF16, ts_scalar_from_f64(TS_BF16, -lhs), rows + 2 * ((s->m - 1) * s->k + later));
    for (int64_t j = 0; j < 2 * s->n; j++)
      ts_scalar_store(TS_BF16, ts_scalar_from_f64(TS_BF16, rhs),
                      p->rhs.memory + 2 * (b * s->rhs_batch + (j < s->n ? j : (later - 1) * s->n + j)));
  }
  ck_assert_ok(run_product(gemm, p, parallel));
  for (int64_t at = 0; at < s->batch * s->m * s->n; at++) {
    const int64_t row = at / s->n % s->m;
    const double want = row == 0 ? lhs * rhs : row == s->m - 1 ? -lhs * rhs : 0;
    ck_assert_double_eq(ts_scalar_to_f64(TS_BF16, ts_scalar_load(TS_BF16, p->out + 2 * at)), want);
  }
}

/* AMX would take the sums of the first block of k for 0 when later blocks add to them. There are tasks of many rows and
 * of few rows. The last sizes pack rhs in several parts, and in several phases. */
START_TEST(sums_near_zero)
{
  static const struct {
    int64_t batch, m, n, k;
    bool is_shared;
  } sizes[] = {{1, 40, 40, 1030, false},  {1, 20, 40, 1030, false},  {1, 20, 700, 1100, false},
               {1, 70, 300, 1030, false}, {1, 70, 300, 2100, false}, {1, 40, 500, 8300, false},
               {2, 20, 500, 8300, true}};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_BF16, NULL, &gemm));
  product p = make_zeros(sizes[_i].batch, sizes[_i].m, sizes[_i].n, sizes[_i].k, sizes[_i].is_shared);
  for (int i = 0; i < 4; i++)
    check_terms(&p, gemm, i % 2 ? &threaded : &ts_parallel_serial, i < 2 ? 0x1p-80 : 0x1p-50,
                i < 2 ? 0x1p-50 : 0x1p-80);
  free_product(&p);
  ts_gemm_release(gemm);
}
END_TEST

START_TEST(numbers_near_infinity)
{
  check_with(0x1.8p+127, 0x1p-10, 1);
  check_with(0x1.8p+100, 0x1p+27, 2000);
  check_with((double)INFINITY, 1, 3000);
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("gemm_amx");
  TCase *t = tcase_create("gemm_amx");
  tcase_set_timeout(t, 60);
  tcase_add_loop_test(t, sizes_around_tiles, 0, 3);
  tcase_add_loop_test(t, several_blocks, 0, 4);
  tcase_add_test(t, vectors_of_bf16);
  tcase_add_loop_test(t, vectors_of_quads, 0, 2);
  tcase_add_loop_test(t, packed_once, 0, 24);
  test_add_avx512(t);
  tcase_add_loop_test(t, kept_columns, 0, 16);
  tcase_add_test(t, numbers_near_zero);
  tcase_add_loop_test(t, sums_near_zero, 0, 7);
  tcase_add_test(t, numbers_near_infinity);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
