/* Products that read their operands without packing. Narrow elements are widened before. The sizes have every height of
 * a tile, widths around those of vectors, and several blocks of k. The tests compare results with the plain sum, bit
 * for bit. */
#include "gemm_check.h"
#include "kernel/gemm/gemm_internal.h"
#include "lesser_isa.h"

static const ts_dtype types[] = {TS_F32, TS_F64, TS_S32, TS_U64, TS_BF16, TS_F16};
#define TYPE_COUNT ((int)(sizeof(types) / sizeof(*types)))

typedef struct extents {
  int64_t batch, m, n, k;
} extents;

/* Checks a product. It has to be computed without packing, unless the second cache is too small. */
static void check_small(const ts_gemm *gemm, ts_dtype type, const extents *e, layout lhs, layout rhs) {
  product p = make_product(type, e->batch, e->m, e->n, e->k, lhs, rhs);
  const int64_t most = gemm->native ? ts_target_host()->l2_bytes / 16 : 64 << 10; /* what is widened is less */
  if (!gemm->own && e->k * 64 * 8 <= most) ck_assert_int_eq(ts_gemm_pick_kernel(gemm, &p.shape), TS_GEMM_SMALL);
  ck_assert_ok(run_product(gemm, &p, &threaded));
  check_product(type, &p, 1);
  free_product(&p);
}

START_TEST(heights)
{
  static const int64_t n[] = {9, 12, 16, 17, 33, 64}, k[] = {1, 2, 129, 300};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (int64_t m = 9; m <= 26; m++)
    for (size_t a = 0; a < sizeof n / sizeof *n; a++) {
      const extents e = {1, m, n[a], k[(m + (int64_t)a) % 4]};
      check_small(gemm, types[_i], &e, NORMAL, NORMAL);
    }
  ts_gemm_release(gemm);
}
END_TEST

START_TEST(layouts)
{
  static const layout lhs[] = {NORMAL, TRANSPOSED, PADDED, STRIDED, REVERSED, ROW_REPEATED, COL_REPEATED};
  static const layout rhs[] = {NORMAL, TRANSPOSED, PADDED, STRIDED, REVERSED, ROW_REPEATED};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (size_t l = 0; l < sizeof lhs / sizeof *lhs; l++)
    for (size_t r = 0; r < sizeof rhs / sizeof *rhs; r++) {
      const extents e = {1 + (int64_t)(l + r) % 3, 15, 20, 40};
      check_small(gemm, types[_i], &e, lhs[l], rhs[r]);
    }
  ts_gemm_release(gemm);
}
END_TEST

/* Few columns take short vectors; there, a vector may be chosen that runs along the rows. */
START_TEST(few_columns)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (int64_t n = 1; n <= 40; n++)
    for (int64_t m = 1; m <= 26; m += 1 + n % 4)
      check(gemm, types[_i], 1 + m % 2, m, n, 1 + 13 * (m + n) % 7, n % 5 ? NORMAL : STRIDED, n % 3 ? NORMAL : PADDED,
            &ts_parallel_serial, 1);
  ts_gemm_release(gemm);
}
END_TEST

/* So few steps that the columns of a few rows are computed in their order. */
START_TEST(few_steps)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (int64_t k = 1; k <= 9; k += 2)
    for (int64_t m = 1; m <= 14; m++)
      check(gemm, types[_i], 2, m, 250 + 17 * k + m, k, m % 2 ? NORMAL : TRANSPOSED, NORMAL, &threaded, 1);
  ts_gemm_release(gemm);
}
END_TEST

/* Rows of rhs that are whole pages apart: low tiles of many rows of lhs have it packed. */
START_TEST(pages)
{
  ts_gemm *gemm;
  const int64_t n = 4096 / (int64_t)ts_dtype_size(types[_i]);
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (int64_t k = 7; k <= 33; k += 13)
    for (int64_t m = 6; m <= 30; m += 8) check(gemm, types[_i], 1, m, n, k, NORMAL, NORMAL, &threaded, 7);
  ts_gemm_release(gemm);
}
END_TEST

/* Several vectors by rows, whose results become rows again: some are narrowed, or lie apart. */
START_TEST(few_vectors)
{
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (int64_t n = 2; n <= 8; n++)
    for (int64_t m = 32; m <= 101; m += 23)
      check(gemm, types[_i], 2, m + n, n, 70, NORMAL, n % 2 ? NORMAL : TRANSPOSED, &threaded, 1);
  ts_gemm_release(gemm);
}
END_TEST

enum { JOINED_ROWS = 21, JOINED_WORDS = JOINED_ROWS * 10 * 2 };

/* The word that stands for part `word` of result `row` of an item. */
static uint32_t word_of(int64_t item, int64_t row, int64_t word) {
  return (uint32_t)(1 + item + 100 * row + 10000 * word);
}

static void check_joined(int64_t words, int64_t items, int64_t count, int64_t pitch) {
  static uint32_t from[TS_GEMM_MAX_ITEMS][TS_GEMM_ITEM_BYTES / 4];
  uint32_t out[JOINED_WORDS] = {0};
  for (int64_t i = 0; i < TS_GEMM_MAX_ITEMS; i++)
    for (int64_t w = 0; w < JOINED_ROWS * words; w++) from[i][w] = word_of(i, w / words, w % words);
  ts_gemm_join_items((int)words * 4, (const char *)from, items, count, (char *)out, pitch * words * 4);
  for (int64_t w = 0; w < JOINED_WORDS; w++) {
    const int64_t row = w / words / pitch, item = w / words % pitch;
    ck_assert_int_eq(out[w], row < count && item < items ? word_of(item, row, w % words) : 0);
  }
}

/* Rows one behind the other, and apart. */
START_TEST(joined_items)
{
  for (int64_t items = 1; items <= TS_GEMM_MAX_ITEMS; items++)
    for (int64_t count = 0; count < JOINED_ROWS; count++)
      for (int64_t words = 1; words <= 2; words++) {
        check_joined(words, items, count, items);
        check_joined(words, items, count, items + 2);
      }
}
END_TEST

/* Each sum is one chain. Its columns of a tile do not fit into the first cache. */
START_TEST(one_chain)
{
  enum { M = 40, N = 24, K = 900 };
  ts_gemm *gemm;
  product p = make_product(TS_F32, 1, M, N, K, NORMAL, NORMAL);
  ck_assert_ok(ts_gemm_get(TS_F32, NULL, &gemm));
  ck_assert_ok(ts_gemm_run(gemm, &p.shape,
                           &(ts_gemm_call){.lhs = p.lhs.origin,
                                           .rhs = p.rhs.origin,
                                           .out = p.out,
                                           .one_chain = true,
                                           .parallel = &ts_parallel_serial,
                                           .pool = ts_pool_default()}));
  const float *lhs = (const float *)(const void *)p.lhs.origin, *rhs = (const float *)(const void *)p.rhs.origin;
  for (int64_t i = 0; i < M; i += 3)
    for (int64_t j = 0; j < N; j++) {
      float sum = 0;
      for (int64_t k = 0; k < K; k++) sum = step_f32(lhs[i * K + k], rhs[k * N + j], sum);
      ck_assert(((const float *)(const void *)p.out)[i * p.shape.out_row + j] == sum);
    }
  ts_gemm_release(gemm);
  free_product(&p);
}
END_TEST

/* A task has many batches, or several tasks share the rows, or the columns where rows are few. */
START_TEST(tasks)
{
  static const extents cases[] = {{300, 9, 12, 10},  {3, 200, 40, 33},  {1, 1100, 24, 40},
                                  {40, 14, 100, 90}, {1, 12, 701, 100}, {1, 16, 301, 100}};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(types[_i], NULL, &gemm));
  for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
    const extents *e = &cases[c];
    check(gemm, types[_i], e->batch, e->m, e->n, e->k, NORMAL, NORMAL, &threaded, 7);
    check(gemm, types[_i], e->batch, e->m, e->n, e->k, PADDED, c % 2 ? TRANSPOSED : STRIDED, &threaded, 7);
  }
  ts_gemm_release(gemm);
}
END_TEST

/* Notes how often each result was shown. */
typedef struct shown {
  int64_t m, n;
  _Atomic int *times;
} shown;

static void show(void *context, const ts_epilogue_part *part, int worker) {
  const shown *s = context;
  (void)worker;
  for (int64_t i = part->row; i < part->row + part->rows; i++)
    for (int64_t j = part->col; j < part->col + part->cols; j++) s->times[(part->batch * s->m + i) * s->n + j]++;
}

static void check_epilogues(const ts_gemm_shape *of) {
  const ts_gemm_shape shape = *of;
  const int64_t count = shape.batch * shape.m * shape.n;
  float *lhs = calloc((size_t)(shape.batch * shape.lhs_batch), 4),
        *rhs = calloc((size_t)(shape.batch * shape.rhs_batch), 4);
  float *out = calloc((size_t)count, 4);
  shown s = {shape.m, shape.n, calloc((size_t)count, sizeof(int))};
  ts_gemm *gemm;
  ck_assert_ok(ts_gemm_get(TS_F32, &shape, &gemm));
  for (int whole = 0; whole < 2; whole++) {
    const ts_epilogue epilogue = {.context = &s, .run = show, .whole_rows = whole};
    ck_assert_ok(ts_gemm_run(gemm, &shape,
                             &(ts_gemm_call){.lhs = lhs,
                                             .rhs = rhs,
                                             .out = out,
                                             .epilogue = &epilogue,
                                             .parallel = &threaded,
                                             .pool = ts_pool_default()}));
    for (int64_t i = 0; i < count; i++) ck_assert_int_eq(s.times[i], whole + 1);
  }
  ts_gemm_release(gemm);
  free(lhs);
  free(rhs);
  free(out);
  free((void *)s.times);
}

/* Tasks of rows, and of columns of a few rows. */
START_TEST(epilogues)
{
  static const ts_gemm_shape shapes[] = {{3, 150, 40, 30, 150 * 30, 30, 1, 30 * 40, 40, 1, 150 * 40, 40},
                                         {1, 12, 701, 100, 1200, 100, 1, 70100, 701, 1, 12 * 701, 701},
                                         {1, 16, 301, 100, 1600, 100, 1, 30100, 301, 1, 16 * 301, 301}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_epilogues(&shapes[i]);
}
END_TEST

/* Tasks have all rows, one after the other, and become smaller toward the end. */
START_TEST(cuts)
{
  for (int64_t rows = 1; rows <= 300; rows++)
    for (int64_t threads = 1; threads <= 5; threads++)
      for (int64_t most = 1; most <= rows; most += 1 + most / 3) {
        const gemm_cut cut = {rows, most, 1 + rows % most, threads};
        const int64_t count = gemm_cut_tasks(&cut);
        int64_t before = most, row = 0;
        for (int64_t task = 0; task < count; task++) {
          const int64_t size = gemm_cut_next(&cut, row) - row;
          ck_assert_int_eq(gemm_cut_first(&cut, task), row);
          ck_assert(size >= 1 && size <= before && (size >= cut.least || task == count - 1));
          before = size;
          row += size;
        }
        ck_assert_int_eq(row, rows);
        if (most < rows) ck_assert_int_le(before, gemm_max(cut.least, gemm_ceil_div(rows, 2 * threads)));
      }
}
END_TEST

static Suite *suite(void) {
  Suite *s = suite_create("gemm_small");
  TCase *t = tcase_create("gemm_small");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, heights, 0, TYPE_COUNT);
  tcase_add_loop_test(t, layouts, 0, TYPE_COUNT);
  tcase_add_loop_test(t, tasks, 0, TYPE_COUNT);
  tcase_add_loop_test(t, few_columns, 0, TYPE_COUNT);
  tcase_add_loop_test(t, few_steps, 0, TYPE_COUNT);
  tcase_add_loop_test(t, pages, 0, TYPE_COUNT);
  tcase_add_loop_test(t, few_vectors, 0, TYPE_COUNT);
  tcase_add_test(t, cuts);
  tcase_add_test(t, joined_items);
  tcase_add_test(t, one_chain);
  tcase_add_test(t, epilogues);
  test_add_lesser_isas(t);
  suite_add_tcase(s, t);
  return s;
}

int main(void) { return testing_run(suite()); }
