/* Compiled kernels against an interpreter of their descriptions, bit for bit. */
#include "kernel_case.h"
#include "testing.h"

#include <stdio.h>

static const int64_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 65, 129, 300};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* A kernel at each length of its last dim, with `rows` for those before. */
static void test_lengths(const char *text, int64_t rows, bool special) {
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < LENGTHS; i++) {
    ts_case_run run = {.seed = i + 1, .special = special};
    for (int32_t k = 0; k < c.desc.rank; k++) run.extents[k] = k + 1 < c.desc.rank ? rows : lengths[i];
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}

static const char *type_names[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"};
#define TYPES 12

/* ---- MAP ---- */

START_TEST(map_rank_1) {
  char text[512];
  const char *t = type_names[_i];
  snprintf(text, sizeof(text),
           "map 1\nin %s 1\nin %s s\nin %s 0\nout %s 1 6\nout %s s 4\nscalar %s\n0 %s load 0\n1 %s load 1\n2 %s load 2\n"
           "3 %s scalar 0\n4 %s multiply 0 1\n5 %s add 4 3\n6 %s subtract 5 2\n",
           t, t, t, t, t, t, t, t, t, t, t, t, t);
  test_lengths(text, 0, true);
}
END_TEST

START_TEST(map_rank_n) {
  char text[512];
  const char *t = type_names[_i];
  snprintf(text, sizeof(text),
           "map 3\nin %s ss1\nin %s s0s\nin %s 0s0\nout %s ss1 5\nindex ss1\n0 %s load 0\n1 %s load 1\n2 %s load 2\n"
           "3 %s index 0\n4 %s add 0 1\n5 %s max 4 2\nout %s sss 6\n6 %s multiply 3 2\n",
           t, t, t, t, t, t, t, t, t, t, t, t);
  test_lengths(text, 3, true);
}
END_TEST

/* Heavy bodies are emitted once, with loads and stores that choose their way. */
START_TEST(map_heavy_body) {
  char text[4096] = "map 2\nin f32 s1\nin u8 ss\nout f32 s1 59\nout u8 s1 60\n0 f32 load 0\n1 u8 load 1\n2 f32 convert 1\n";
  for (int i = 3; i < 60; i++) {
    char line[64];
    snprintf(line, sizeof(line), "%d f32 %s %d %d\n", i, i % 3 ? "subtract" : "max", i - 1, i % 5 ? 0 : 2);
    strcat(text, line);
  }
  strcat(text, "60 u8 not_equal 59 2\n");
  ck_assert_uint_lt(strlen(text), sizeof(text));
  test_lengths(text, 3, true);
}
END_TEST

/* ---- gathers ---- */

static const char *gathers[] = {
    /* an index for each point: of a table, and of rows of a table by columns */
    "map 1\nin f32 0\nin s32 1\nout f32 1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 f32 gather 0 at 0 limit 0 step 1\n",
    "map 2\nin u8 01\nin u64 ss\nout u8 s1 1\nscalar s64\nscalar s64\n0 u64 load 1\n1 u8 gather 0 at 0 limit 0 step 1\n",
    /* an index for each row: contiguous, strided, and one element */
    "map 2\nin f32 01\nin s8 s0\nout f32 s1 1\nscalar s64\nscalar s64\n0 s8 load 1\n1 f32 gather 0 at 0 limit 0 step 1\n",
    "map 2\nin f16 0s\nin u8 s0\nout f16 s1 1\nscalar s64\nscalar s64\n0 u8 load 1\n1 f16 gather 0 at 0 limit 0 step 1\n",
    "map 2\nin f64 00\nin s64 s0\nin f64 s1\nout f64 s1 3\nscalar s64\nscalar s64\n0 s64 load 1\n1 f64 load 2\n"
    "2 f64 gather 0 at 0 limit 0 step 1\n3 f64 add 1 2\n",
};

START_TEST(map_gather) {
  ts_kernel_case c;
  ts_case_parse(gathers[_i], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < LENGTHS; i++) {
    ts_case_run run = {.seed = i, .index_range = 1 + (int64_t)i % 5};
    for (int32_t k = 0; k < c.desc.rank; k++) run.extents[k] = k + 1 < c.desc.rank ? 3 : lengths[i];
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* ---- TILE ---- */

START_TEST(tile) {
  static const int64_t rows[] = {1, 15, 16, 17, 50, 150};
  char text[512];
  const char *t = type_names[_i];
  snprintf(text, sizeof(text),
           "tile 3\nin %s s1s\nin %s ss1\nin %s 0s0\nin %s 01s\nout %s ss1 5\nout %s sss 0\n0 %s load 0\n1 %s load 1\n2 %s load 2\n"
           "3 %s load 3\n4 %s add 0 1\n5 %s subtract 4 3\n6 %s multiply 5 2\n",
           t, t, t, t, t, t, t, t, t, t, t, t, t);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < 6; i++) {
    for (size_t k = 0; k < LENGTHS; k++) {
      ts_case_run run = {.extents = {2, rows[i], lengths[k]}, .seed = 5 * i + k};
      ts_case_check(&c, kernel, &run);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* ---- ROW and COL ---- */

static const char *reductions[] = {"reduce_sum", "reduce_product", "reduce_max", "reduce_min", "reduce_all", "reduce_any"};

START_TEST(row_reductions) {
  const char *t = type_names[_i / 6], *op = reductions[_i % 6], *r = _i % 6 > 3 ? "u8" : t;
  char text[256];
  snprintf(text, sizeof(text), "row 2\nin %s s1\nin %s ss\nout %s s0 2\nout %s s1 3\n0 %s load 0\n1 %s load 1\n2 %s %s 0\n3 %s %s 1\n",
           t, t, r, r, t, t, r, op, r, op);
  test_lengths(text, 5, true);
  test_lengths(text, 5, false);
}
END_TEST

START_TEST(col_reductions) {
  static const int64_t rows[] = {0, 1, 2, 5, 31, 32, 33, 100};
  const char *t = type_names[_i / 6], *op = reductions[_i % 6], *r = _i % 6 > 3 ? "u8" : t;
  char text[256];
  snprintf(text, sizeof(text), "col 3\nin %s ss1\nin %s ss0\nout %s s01 4\n0 %s load 0\n1 %s load 1\n2 %s add 0 1\n3 %s %s 2\n4 %s max 3 3\n",
           t, t, r, t, t, t, r, op, r);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < 8; i++) {
    for (size_t k = 0; k < LENGTHS; k += 2) {
      ts_case_check(&c, kernel, &(ts_case_run){.extents = {2, rows[i], lengths[k]}, .seed = i + k, .special = k % 4 == 0});
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

int main(void) {
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  Suite *suite = suite_create("kernel");
  TCase *tc = tcase_create("kernel");
  tcase_set_timeout(tc, 120);
  tcase_add_loop_test(tc, map_rank_1, 0, TYPES);
  tcase_add_loop_test(tc, map_rank_n, 0, TYPES);
  tcase_add_test(tc, map_heavy_body);
  tcase_add_loop_test(tc, map_gather, 0, 5);
  tcase_add_loop_test(tc, tile, 0, TYPES);
  tcase_add_loop_test(tc, row_reductions, 0, TYPES * 6);
  tcase_add_loop_test(tc, col_reductions, 0, TYPES * 6);
  suite_add_tcase(suite, tc);
  return testing_run(suite);
}
