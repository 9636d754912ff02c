/* Compiled kernels against an interpreter of their descriptions, bit for bit. */
#include "kernel_case.h"
#include "lesser_isa.h"
#include "testing.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* A sanitizer sees the compiler of kernels, but not the compiled code. */
#if defined(__SANITIZE_ADDRESS__)
static const int64_t lengths[] = {0, 1, 17, 129};
#else
static const int64_t lengths[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 64, 65, 129, 300};
#endif
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* A kernel at each length of its last dim, with `rows` for the other dims. */
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

/* Parses `text` with a type's name for each T. */
static void parse_with_type(const char *text, const char *type, ts_kernel_case *out) {
  char all[512];
  size_t n = 0;
  for (; *text; text++)
    n += (size_t)snprintf(all + n, sizeof all - n, *text == 'T' ? "%s" : "%.1s", *text == 'T' ? type : text);
  ts_case_parse(all, out);
}

/* ---- MAP ---- */

START_TEST(map_rank_1)
{
  char text[512];
  const char *t = type_names[_i];
  snprintf(
      text, sizeof(text),
      "map 1\nin %s 1\nin %s s\nin %s 0\nout %s 1 6\nout %s s 4\nscalar %s\n0 %s load 0\n1 %s load 1\n2 %s load 2\n"
      "3 %s scalar 0\n4 %s multiply 0 1\n5 %s add 4 3\n6 %s subtract 5 2\n",
      t, t, t, t, t, t, t, t, t, t, t, t, t);
  test_lengths(text, 0, true);
}
END_TEST

/* Ranges of a stream begin at its 64th point (kernel_case.c), where vectors of bytes may have as many as that. */
START_TEST(map_streams)
{
  static const char *programs[] = {
      "map 1\nin T 1\nout T 1 0 stream\n0 T load 0\n",
      "map 1\nin T 1\nin T 0\nout T 1 2 stream\nout T 1 3\n0 T load 0\n1 T load 1\n2 T add 0 1\n3 T max 0 1\n",
  };
  static const int64_t points[] = {63, 64, 192, 257, 384};
  ts_kernel_case c;
  parse_with_type(programs[_i / TYPES], type_names[_i % TYPES], &c);
  ck_assert(c.desc.outputs[0].stream);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
    ts_case_check(&c, kernel, &(ts_case_run){.extents = {points[i]}, .seed = i + 1});
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(map_rank_n)
{
  char text[512];
  const char *t = type_names[_i];
  snprintf(text, sizeof(text),
           "map 3\nin %s ss1\nin %s s0s\nin %s 0s0\nout %s ss1 5\nindex ss1\n0 %s load 0\n1 %s load 1\n2 %s load 2\n"
           "3 %s index 0\n4 %s add 0 1\n5 %s max 4 2\nout %s sss 6\n6 %s multiply 3 2\n",
           t, t, t, t, t, t, t, t, t, t, t, t);
  test_lengths(text, 3, true);
}
END_TEST

/* Elements downwards: alone, among others, under reductions along and across them, and selected by an index. */
static const char *downwards[] = {
    "map 1\nin T -\nout T 1 0\n0 T load 0\n",
    "map 2\nin T s-\nin T 01\nin T 0-\nout T s1 4\nout T ss 0\n0 T load 0\n1 T load 1\n2 T load 2\n3 T add 0 1\n"
    "4 T max 3 2\n",
    "row 2\nin T s-\nout T s0 1\nout T s1 2\n0 T load 0\n1 T reduce_sum 0\n2 T subtract 0 1\n",
    "col 2\nin T s-\nout T 01 1\n0 T load 0\n1 T reduce_sum 0\n",
    "tile 2\nin T 1s\nin T s-\nout T s1 2\n0 T load 0\n1 T load 1\n2 T subtract 0 1\n",
    "map 2\nin T 0-\nin s32 s0\nout T s1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 T gather 0 at 0 limit 0 step 1\n",
    "map 2\nin T 0-\nin s32 s1\nout T s1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 T gather 0 at 0 limit 0 step 1\n",
};
#define DOWNWARDS (int)(sizeof(downwards) / sizeof(downwards[0]))

START_TEST(loads_downwards)
{
  ts_kernel_case c;
  parse_with_type(downwards[_i % DOWNWARDS], type_names[_i / DOWNWARDS], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < LENGTHS; i++) {
    ts_case_run run = {.seed = i + 1, .special = true, .index_range = c.desc.scalar_count ? 4 : 0};
    for (int32_t k = 0; k < c.desc.rank; k++) run.extents[k] = k + 1 < c.desc.rank ? 5 : lengths[i];
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Rows that are only moved, of all lengths around those of vectors, and long enough for the C library's copy. */
static const char *moved[] = {
    "map 2\nin T s1\nout T s1 0\n0 T load 0\n",
    "map 3\nin T 0s1\nout T ss1 0\n0 T load 0\n",
    "map 2\nin T s-\nin T s0\nout T s1 0\nout T s1 2\nout T s1 1\nscalar T\n0 T load 0\n1 T load 1\n2 T scalar 0\n",
    "map 1\nin T 1\nout T 1 0\n0 T load 0\n",
};
static const char *moved_types[] = {"u8", "s16", "f32", "f64", "c64"};
#define MOVED (int)(sizeof(moved) / sizeof(moved[0]))
#define MOVED_TYPES (int)(sizeof(moved_types) / sizeof(moved_types[0]))

static int64_t next_length(int64_t length) { return length < 70 ? length + 1 : length + length / 5; }

START_TEST(moves_rows)
{
  ts_kernel_case c;
  parse_with_type(moved[_i % MOVED], moved_types[_i / MOVED], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (int64_t length = 1; length < 1000; length = next_length(length)) {
    ts_case_run run = {.seed = (uint64_t)length, .special = true, .in_place = _i % MOVED == 0 && length % 2 == 0};
    for (int32_t k = 0; k < c.desc.rank; k++) run.extents[k] = k + 1 < c.desc.rank ? 3 : length;
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Vectors of narrow types are longer; the types of one kernel may differ. */
START_TEST(map_narrow)
{
  test_lengths("map 1\nin u8 1\nin s8 1\nin u8 0\nout u8 1 4\nout s8 1 1\n0 u8 load 0\n1 s8 load 1\n2 u8 load 2\n"
               "3 u8 max 0 2\n4 u8 add 3 0\n",
               0, true);
  test_lengths("map 2\nin u8 s1\nin u16 01\nout u16 s1 3\nout u8 s1 4\n0 u8 load 0\n1 u16 load 1\n2 u16 convert 0\n"
               "3 u16 subtract 1 2\n4 u8 less 2 1\n",
               3, true);
  test_lengths("map 2\nin bf16 s1\nin f16 s-\nout bf16 s1 0\nout f16 s1 1\n0 bf16 load 0\n1 f16 load 1\n", 3, true);
  test_lengths("map 2\nin f8 s1\nin s4 01\nout f8 s1 0\nout s4 s1 1\n0 f8 load 0\n1 s4 load 1\n", 3, true);
}
END_TEST

/* Heavy bodies are emitted once, with loads and stores that choose their way. */
START_TEST(map_heavy_body)
{
  char text[4096] =
      "map 2\nin f32 s1\nin u8 ss\nout f32 s1 59\nout u8 s1 60\n0 f32 load 0\n1 u8 load 1\n2 f32 convert 1\n";
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
    "map 1\nin f32 0\nin s32 1\nout f32 1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 f32 gather 0 at 0 limit 0 step "
    "1\n",
    "map 2\nin u8 01\nin u64 ss\nout u8 s1 1\nscalar s64\nscalar s64\n0 u64 load 1\n1 u8 gather 0 at 0 limit 0 step "
    "1\n",
    /* the same indices for all rows, whose elements are moved one by one where they are few */
    "map 2\nin f32 s0\nin s32 01\nout f32 s1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 f32 gather 0 at 0 limit 0 step "
    "1\n",
    "map 3\nin bf16 ss0\nin u8 001\nout bf16 ss1 1\nscalar s64\nscalar s64\n0 u8 load 1\n1 bf16 gather 0 at 0 limit 0 "
    "step 1\n",
    "map 2\nin s8 s0\nin s64 01\nout s8 s1 1\nscalar s64\nscalar s64\n0 s64 load 1\n1 s8 gather 0 at 0 limit 0 step "
    "1\n",
    "map 3\nin s16 ss0\nin s32 00s\nout s16 ss1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 s16 gather 0 at 0 limit 0 "
    "step 1\n",
    "map 2\nin f64 s0\nin s64 0-\nout f64 s1 1\nscalar s64\nscalar s64\n0 s64 load 1\n1 f64 gather 0 at 0 limit 0 step "
    "1\n",
    "map 2\nin f64 s0\nin u64 01\nout f64 s1 1\nscalar s64\nscalar s64\n0 u64 load 1\n1 f64 gather 0 at 0 limit 0 step "
    "1\n",
    /* an index for each row: contiguous, strided, and one element */
    "map 2\nin f32 01\nin s8 s0\nout f32 s1 1\nscalar s64\nscalar s64\n0 s8 load 1\n1 f32 gather 0 at 0 limit 0 step "
    "1\n",
    "map 3\nin u8 s01\nin s32 0s0\nout u8 ss1 1\nscalar s64\nscalar s64\n0 s32 load 1\n1 u8 gather 0 at 0 limit 0 step "
    "1\n",
    "map 3\nin f64 0s1\nin s64 ss0\nout f64 ss1 1\nscalar s64\nscalar s64\n0 s64 load 1\n1 f64 gather 0 at 0 limit 0 "
    "step 1\n",
    "map 2\nin s16 01\nin u64 s0\nout s16 s1 1\nscalar s64\nscalar s64\n0 u64 load 1\n1 s16 gather 0 at 0 limit 0 step "
    "1\n",
    "map 2\nin f16 0s\nin u8 s0\nout f16 s1 1\nscalar s64\nscalar s64\n0 u8 load 1\n1 f16 gather 0 at 0 limit 0 step "
    "1\n",
    "map 2\nin f64 00\nin s64 s0\nin f64 s1\nout f64 s1 3\nscalar s64\nscalar s64\n0 s64 load 1\n1 f64 load 2\n"
    "2 f64 gather 0 at 0 limit 0 step 1\n3 f64 add 1 2\n",
    /* one index for all, and rows chosen under reductions along and across them */
    "map 1\nin f32 1\nin u64 0\nout f32 1 1\nscalar s64\nscalar s64\n0 u64 load 1\n1 f32 gather 0 at 0 limit 0 step "
    "1\n",
    "row 2\nin f32 01\nin s32 s0\nout f32 s1 3\nscalar s64\nscalar s64\n0 s32 load 1\n1 f32 gather 0 at 0 limit 0 step "
    "1\n2 f32 reduce_max 1\n3 f32 subtract 1 2\n",
    "col 2\nin f32 01\nin s16 s0\nout f32 01 2\nscalar s64\nscalar s64\n0 s16 load 1\n1 f32 gather 0 at 0 limit 0 step "
    "1\n2 f32 reduce_sum 1\n",
};
#define GATHERS (sizeof(gathers) / sizeof(gathers[0]))

START_TEST(gather)
{
  ts_kernel_case c;
  ts_case_parse(gathers[_i], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < LENGTHS; i++) {
    ts_case_run run = {.seed = i, .index_range = 1 + (int64_t)i % 5};
    for (int32_t k = 0; k < c.desc.rank; k++) run.extents[k] = k + 1 < c.desc.rank ? 3 : lengths[i];
    ts_case_check(&c, kernel, &run);
  }
  ts_case_run many = {.seed = 3, .index_range = 7};
  for (int32_t k = 0; k < c.desc.rank; k++) many.extents[k] = k + 1 < c.desc.rank ? 2 : 1025;
  ts_case_check(&c, kernel, &many);
  ts_kernel_release(kernel);
}
END_TEST

/* ---- TILE ---- */

START_TEST(tile)
{
  static const int64_t rows[] = {1, 15, 16, 17, 50, 150};
  char text[512];
  const char *t = type_names[_i];
  snprintf(text, sizeof(text),
           "tile 3\nin %s s1s\nin %s ss1\nin %s 0s0\nin %s 01s\nout %s ss1 5\nout %s sss 0\n0 %s load 0\n1 %s load "
           "1\n2 %s load 2\n"
           "3 %s load 3\n4 %s add 0 1\n5 %s subtract 4 3\n6 %s multiply 5 2\n",
           t, t, t, t, t, t, t, t, t, t, t, t, t);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < (TEST_IS_SANITIZED ? 4 : 6); i++) {
    for (size_t k = 0; k < LENGTHS; k++) {
      ts_case_run run = {.extents = {2, rows[i], lengths[k]}, .seed = 5 * i + k};
      ts_case_check(&c, kernel, &run);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Rows of several dims, lines of several dims, and both. */
static const char *tiles[] = {
    "tile 4 joined 1\nin T s1ss\nin T sss1\nin T 0s00\nout T sss1 4\nindex ss00\n0 T load 0\n1 T load 1\n2 T load 2\n"
    "3 T add 0 1\n4 T subtract 3 2\n",
    "tile 5 joined 2\nin T s1sss\nin T 01sss\nout T ssss1 2\n0 T load 0\n1 T load 1\n2 T max 0 1\n",
    "tile 4 lined 1\nin T ss1s\nin T sss1\nin T s0s0\nout T sss1 4\nindex ssss\n0 T load 0\n1 T load 1\n2 T load 2\n"
    "3 T add 0 1\n4 T subtract 3 2\nout T sss1 5\n5 T index 0\n",
    "tile 5 joined 1 lined 1\nin T ss1ss\nin T ss1ss\nin T 0s0s1\nout T ssss1 4\nout T ssss1 0\n0 T load 0\n1 T load "
    "1\n"
    "2 T load 2\n3 T add 0 1\n4 T subtract 3 2\n",
    "tile 5 joined 1 lined 2\nin T ss1ss\nout T ssss1 0\n0 T load 0\n",
};
#define TILES (int)(sizeof(tiles) / sizeof(tiles[0]))

START_TEST(tile_dims)
{
  static const int64_t inner[][2] = {{1, 1}, {5, 3}, {2, 16}, {16, 1}, {3, 17}, {7, 31}, {40, 2}};
  ts_kernel_case c;
  parse_with_type(tiles[_i % TILES], type_names[_i / TILES], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  const int32_t rank = c.desc.rank;
  for (size_t i = 0; i < (TEST_IS_SANITIZED ? 4 : 7); i++) {
    for (size_t k = 0; k < (TEST_IS_SANITIZED ? 4 : 7); k++) {
      ts_case_run run = {.seed = 7 * i + k};
      for (int32_t l = 0; l < rank; l++) run.extents[l] = 2;
      run.extents[rank - 2] = inner[i][0], run.extents[rank - 1] = inner[i][1];
      if (c.desc.joined > 0) run.extents[ts_kernel_row_dim(&c.desc) - 1] = inner[k][0] * inner[k][1];
      if (c.desc.lined > 0) run.extents[ts_kernel_row_dim(&c.desc) - 2] = inner[k][0];
      if (c.desc.lined > 0) run.extents[ts_kernel_row_dim(&c.desc) - 1] = inner[k][1];
      ts_case_check(&c, kernel, &run);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Short rows are processed in strips, of which the last one may have fewer blocks than the others. */
START_TEST(tile_strips)
{
  static const int64_t rows[] = {127, 128, 129, 511, 1025, 2100}, columns[] = {2, 9, 15, 16, 17, 31, 33, 127, 128};
  char text[256];
  const char *t = type_names[_i];
  snprintf(text, sizeof(text), "tile 4\nin %s ss1s\nout %s sss1 0\n0 %s load 0\n", t, t, t);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (size_t k = i % 2; k < sizeof columns / sizeof *columns; k += TEST_IS_SANITIZED ? 4 : 2) {
      ts_case_run run = {.extents = {2, 3, rows[i], columns[k]}, .seed = 7 * i + k};
      ts_case_check(&c, kernel, &run);
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* ---- ROW and COL ---- */

static const char *reductions[] = {"reduce_sum", "reduce_product", "reduce_max",
                                   "reduce_min", "reduce_all",     "reduce_any"};

START_TEST(row_reductions)
{
  const char *t = type_names[_i / 6], *op = reductions[_i % 6], *r = _i % 6 > 3 ? "u8" : t;
  char text[256];
  snprintf(text, sizeof(text),
           "row 2\nin %s s1\nin %s ss\nout %s s0 2\nout %s s1 3\n0 %s load 0\n1 %s load 1\n2 %s %s 0\n3 %s %s 1\n", t,
           t, r, r, t, t, r, op, r, op);
  test_lengths(text, 5, true);
  test_lengths(text, 5, false);
}
END_TEST

START_TEST(col_reductions)
{
  static const int64_t rows[] = {0, 1, 2, 5, 31, 32, 33, 100, 128, 129, 290};
  const char *t = type_names[_i / 6], *op = reductions[_i % 6], *r = _i % 6 > 3 ? "u8" : t;
  char text[256];
  snprintf(
      text, sizeof(text),
      "col 3\nin %s ss1\nin %s ss0\nout %s s01 4\n0 %s load 0\n1 %s load 1\n2 %s add 0 1\n3 %s %s 2\n4 %s max 3 3\n", t,
      t, r, t, t, t, r, op, r);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (size_t k = 0; k < LENGTHS; k += 2) {
      ts_case_check(&c, kernel,
                    &(ts_case_run){.extents = {2, rows[i], lengths[k]}, .seed = i + k, .special = k % 4 == 0});
    }
  }
  ts_kernel_release(kernel);
}
END_TEST

/* ---- ROW programs ---- */

static const char *row_programs[] = {
    /* softmax: three passes, the exponentials kept */
    "row 2\nin f32 s1\nout f32 s1 5\n0 f32 load 0\n1 f32 reduce_max 0\n2 f32 subtract 0 1\n3 f32 multiply 2 2\n"
    "4 f32 reduce_sum 3\n5 f32 divide 3 4\n",
    /* layer norm in half precision, with outputs of several passes: the first could lie on the input */
    "row 3\nin bf16 ss1\nin bf16 001\nout bf16 ss1 1\nout bf16 ss1 10\nout bf16 ss0 6\nscalar bf16\n0 bf16 load 0\n"
    "1 bf16 add 0 0\n2 bf16 reduce_sum 0\n3 bf16 scalar 0\n4 bf16 multiply 2 3\n5 bf16 subtract 0 4\n6 bf16 reduce_max "
    "5\n"
    "7 bf16 load 1\n8 bf16 multiply 5 7\n9 bf16 sqrt 8\n10 bf16 divide 9 6\n",
    /* a kept value that is first wanted in the second pass, and a reduction of a row-level value */
    "row 2\nin f64 ss\nin f64 s0\nout f64 s1 8\nout f64 s0 9\n0 f64 load 0\n1 f64 load 1\n2 f64 sqrt 0\n3 f64 divide 2 "
    "1\n"
    "4 f64 reduce_sum 0\n5 f64 multiply 3 4\n6 f64 reduce_min 5\n7 f64 divide 3 6\n8 f64 add 7 5\n9 f64 reduce_sum 1\n",
    /* a truth value and a broadcast row value */
    "row 2\nin s16 s1\nin u8 01\nout u8 s1 3\nout s16 s1 4\n0 s16 load 0\n1 s16 reduce_max 0\n2 u8 load 1\n3 u8 equal "
    "0 1\n"
    "4 s16 select 2 1 0\n",
    "row 1\nin u32 1\nindex 1\nout u32 1 4\nout u8 0 5\n0 u32 load 0\n1 u32 index 0\n2 u32 multiply 0 1\n3 u32 "
    "reduce_sum 2\n"
    "4 u32 subtract 2 3\n5 u8 reduce_any 0\n",
};
#define ROW_PROGRAMS (sizeof(row_programs) / sizeof(row_programs[0]))

START_TEST(row_program)
{
  ts_kernel_case c;
  ts_case_parse(row_programs[_i], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  /* The first output lies on the first input where their maps agree. */
  bool fits = !memcmp(c.inputs[0].stride, c.outputs[0].operand.stride, (size_t)c.desc.rank);
  fits = fits && c.inputs[0].dtype == c.outputs[0].operand.dtype;
  for (size_t i = 0; i < LENGTHS; i++) {
    ts_case_run run = {.seed = i + 9, .special = i % 2 == 0, .in_place = fits && i % 3 == 0};
    for (int32_t k = 0; k < c.desc.rank; k++) run.extents[k] = k + 1 < c.desc.rank ? 3 : lengths[i];
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(map_in_place)
{
  for (int64_t n = 1; n < 70; n += 17) {
    ts_case_run run = {.extents = {3, n}, .seed = 3, .in_place = true};
    ts_case_test("map 2\nin f16 s1\nin f16 s1\nout f16 s1 2\n0 f16 load 0\n1 f16 load 1\n2 f16 subtract 1 0\n", &run);
  }
}
END_TEST

/* The longest block: all 32 lanes for long. */
START_TEST(row_longest)
{
  ts_case_run run = {.extents = {2, TS_REDUCE_BLOCK}, .seed = 8};
  ts_case_test(
      "row 2\nin f32 s1\nout f32 s0 1\nout f32 s0 2\n0 f32 load 0\n1 f32 reduce_sum 0\n2 f32 reduce_product 0\n", &run);
}
END_TEST

static const char *args[] = {"argmax_low", "argmax_high", "argmin_low", "argmin_high"};

START_TEST(arg_reductions)
{
  const char *t = type_names[_i / 4], *op = args[_i % 4];
  char text[256];
  snprintf(text, sizeof(text), "row 2\nin %s s1\nout s32 s0 1\nout %s s1 0\n0 %s load 0\n1 s32 %s 0\n", t, t, t, op);
  test_lengths(text, 4, true);
  snprintf(text, sizeof(text), "col 2\nin %s s1\nout u8 01 1\n0 %s load 0\n1 u8 %s 0\n", t, t, op);
  test_lengths(text, 7, true);
  test_lengths(text, 100, true);
}
END_TEST

/* Rows and columns of the same numbers have the same bits: a panel of columns, and a part of one. */
START_TEST(row_and_column_sums_agree)
{
  enum { ROWS = 500, COLUMNS = 165 };
  static float x[ROWS * COLUMNS], by_row[COLUMNS], by_column[COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 7919 % 10007) * 0.001f - 4;
  ts_kernel_case row, col;
  ts_case_parse("row 2\nin f32 ss\nout f32 s0 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", &row);
  ts_case_parse("col 2\nin f32 s1\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", &col);
  ts_kernel *rows = ts_case_compile(&row), *columns = ts_case_compile(&col);
  int64_t fixed, each;
  ts_kernel_scratch(&col.desc, &fixed, &each);
  void *scratch = malloc((size_t)fixed);
  int64_t row_args[] = {COLUMNS, ROWS, (intptr_t)x, 4, 4 * COLUMNS, (intptr_t)by_row, 4, 0};
  int64_t col_args[] = {ROWS, COLUMNS, (intptr_t)x, 4 * COLUMNS, 4, (intptr_t)by_column, 0, 4};
  ts_kernel_entry(rows)(row_args, 0, COLUMNS, NULL);
  ts_kernel_entry(columns)(col_args, 0, 2, scratch);
  ck_assert_mem_eq(by_row, by_column, sizeof(by_row));
  free(scratch);
  ts_kernel_release(rows);
  ts_kernel_release(columns);
}
END_TEST

/* ---- every op on every type ---- */

static bool applies(ts_opcode op, const char *type) {
  bool is_float = strchr(type, 'f') != NULL;
  switch (ts_op_get_class(op)) {
  case TS_CLASS_COMPLEX: return false; /* test_complex */
  case TS_CLASS_UNARY_FLOAT:
  case TS_CLASS_BINARY_FLOAT: return is_float;
  case TS_CLASS_UNARY_INTEGER:
  case TS_CLASS_BINARY_INTEGER: return !is_float;
  default: return true;
  }
}

/* Correctly rounded by definition; the others may be 2 units off, 1 in half precision. */
static int64_t tolerance_of(ts_opcode op, const char *type) {
  bool math = ts_op_get_class(op) == TS_CLASS_UNARY_FLOAT || op == TS_OP_ATAN2 || op == TS_OP_POW;
  if (!math || op == TS_OP_SQRT || !strchr(type, 'f')) return 0;
  return strstr(type, "f16") ? 1 : 2;
}

static void test_op(ts_opcode op, const char *type) {
  ts_op_class class = ts_op_get_class(op);
  bool to_u8 = class == TS_CLASS_COMPARE || class == TS_CLASS_PREDICATE;
  const char *first = class == TS_CLASS_SELECT ? "u8" : type, *result = to_u8 ? "u8" : type;
  char text[512], operands[16] = "0";
  if (ts_op_operands(op) > 1) strcat(operands, " 1");
  if (ts_op_operands(op) > 2) strcat(operands, " 2");
  snprintf(text, sizeof(text),
           "map 1\nin %s 1\nin %s 1\nin %s 1\nout %s 1 3\n0 %s load 0\n1 %s load 1\n2 %s load 2\n3 %s %s %s\n", first,
           type, type, result, first, type, type, result, ts_op_name(op), operands);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (uint64_t seed = 1; seed < 4; seed++) {
    ts_case_run run = {
        .extents = {seed < 3 ? 400 : 7}, .seed = seed, .special = seed != 2, .tolerance = tolerance_of(op, type)};
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}

START_TEST(every_op)
{
  for (int op = TS_OP_EXP; op <= TS_OP_CLAMP; op++) {
    if (op == TS_OP_CONVERT || op == TS_OP_BITCAST) continue;
    if (testing_takes(op + _i, 2) && applies((ts_opcode)op, type_names[_i])) test_op((ts_opcode)op, type_names[_i]);
  }
}
END_TEST

START_TEST(every_conversion)
{
  const char *from = type_names[_i];
  for (int k = 0; k < TYPES; k++) {
    char text[256];
    const char *to = type_names[k];
    if (!testing_takes(_i + k, 2)) continue;
    ts_dtype a = ts_dtype_from_name(from, strlen(from)), b = ts_dtype_from_name(to, strlen(to));
    snprintf(text, sizeof(text), "map 1\nin %s 1\nout %s 1 1\n0 %s load 0\n1 %s convert 0\n", from, to, from, to);
    ts_case_test(text, &(ts_case_run){.extents = {1000}, .seed = 1, .special = true});
    ts_case_test(text, &(ts_case_run){.extents = {1000}, .seed = 2});
    if (ts_dtype_bits(a) != ts_dtype_bits(b)) continue;
    snprintf(text, sizeof(text), "map 1\nin %s 1\nout %s 1 1\n0 %s load 0\n1 %s bitcast 0\n", from, to, from, to);
    ts_case_test(text, &(ts_case_run){.extents = {1000}, .seed = 2});
  }
}
END_TEST

static void check_remainders(double *x, double *y, int64_t count) {
  double *out;
  ts_kernel_case c;
  ck_assert_ok(TS_NEW_ARRAY((size_t)count, &out));
  ts_case_parse("map 1\nin f64 1\nin f64 1\nout f64 1 2\n0 f64 load 0\n1 f64 load 1\n2 f64 remainder 0 1\n", &c);
  ts_kernel *kernel = ts_case_compile(&c);
  ts_kernel_entry(kernel)((int64_t[]){count, (intptr_t)x, 8, (intptr_t)y, 8, (intptr_t)out, 8}, 0, count, NULL);
  for (int64_t i = 0; i < count; i++) {
    double expected = fmod(x[i], y[i]);
    ck_assert_msg(!memcmp(&out[i], &expected, 8), "fmod(%a, %a) = %a, expected %a", x[i], y[i], out[i], expected);
  }
  ts_kernel_release(kernel);
  ts_free(out);
}

/* Long remainders take many steps. */
START_TEST(remainder_far_apart)
{
  static double x[64], y[64];
  const double ends[] = {1e308, 5e-324, 0x1p1023, 3, 0x1p-1022, 1e16, 0.1, 7e200};
  for (int i = 0; i < 64; i++) x[i] = i & 1 ? -ends[i / 8] : ends[i / 8], y[i] = ends[i % 8] * (i & 2 ? -1 : 1);
  check_remainders(x, y, 64);
}
END_TEST

/* Quotients of every size, and whole or nearly whole ones: each step's rest must be exact. */
START_TEST(remainder_of_any_quotient)
{
  enum { COUNT = 20000 };
  static double x[COUNT], y[COUNT];
  uint64_t state = 1;
  for (int i = 0; i < COUNT; i++) {
    uint64_t random[2];
    for (int k = 0; k < 2; k++)
      random[k] = state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    y[i] = ldexp(1 + (double)(random[0] >> 12) * 0x1p-52, -45);
    x[i] = ldexp(1 + (double)(random[1] >> 12) * 0x1p-52, i % 160 - 50);
    if (i % 5 == 0) x[i] = y[i] * (double)(random[1] >> (11 + i % 53)); /* rounded to either side of a multiple */
    if (i % 7 == 0) x[i] = nextafter(x[i], 0);
  }
  check_remainders(x, y, COUNT);
}
END_TEST

enum { DIVIDENDS = 4096 };

/* Fills x with multiples of the divisor and their neighbours, of any size and sign. */
static void fill_dividends(ts_dtype type, int64_t divisor, char *x) {
  const size_t size = ts_dtype_size(type);
  uint64_t state = 1;
  for (int64_t i = 0; i < DIVIDENDS; i++) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t any = state >> (i % 40 + 20), value = any / (uint64_t)(divisor ? divisor : 1) * (uint64_t)divisor;
    value += (uint64_t)(i % 3 - 1);
    if (i % 16 == 0) value = UINT64_MAX << (8 * size - 1 - (size_t)(i / 16 % 2)); /* the least signed number, or more */
    if (i % 16 == 1) value = UINT64_MAX >> (i / 16 % 2);
    if (i % 5 == 0) value = -value;
    memcpy(x + (size_t)i * size, &value, size);
  }
}

static void check_quotients(ts_dtype type, ts_kernel_fn divide, int64_t divisor) {
  static char x[8 * DIVIDENDS], q[8 * DIVIDENDS], r[8 * DIVIDENDS];
  const int64_t size = (int64_t)ts_dtype_size(type);
  int64_t word = 0;
  fill_dividends(type, divisor, x);
  memcpy(&word, &divisor, (size_t)size);
  const int64_t d = ts_scalar_to_s64(type, ts_scalar_load(type, &word));
  divide((int64_t[]){DIVIDENDS, (intptr_t)x, size, (intptr_t)q, size, (intptr_t)r, size, word}, 0, DIVIDENDS, NULL);
  for (int64_t i = 0; i < DIVIDENDS; i++) {
    const int64_t a = ts_scalar_to_s64(type, ts_scalar_load(type, x + i * size));
    const int64_t expected[] = {d ? a / d : -1, d ? a % d : a};
    ck_assert_msg(!memcmp(q + i * size, &expected[0], (size_t)size), "%s: %" PRId64 " / %" PRId64, ts_dtype_name(type),
                  a, d);
    ck_assert_msg(!memcmp(r + i * size, &expected[1], (size_t)size), "%s: rest of %" PRId64 " by %" PRId64,
                  ts_dtype_name(type), a, d);
  }
}

/* A divisor that all elements share becomes a multiplication. */
START_TEST(quotients_by_one_divisor)
{
  static const ts_dtype types[] = {TS_S8, TS_U8, TS_S16, TS_U16, TS_S32, TS_U32};
  static const int64_t divisors[] = {0,   1,   2,   3,     7,     10,     49,       100,
                                     127, 255, 641, 32767, 65535, 65536,  1000003,  0x7fffffff,
                                     -1,  -2,  -3,  -100,  -128,  -32768, -1000003, -0x7fffffff - 1};
  const ts_dtype type = types[_i];
  const char *name = ts_dtype_name(type);
  char text[512];
  ts_kernel_case c;
  snprintf(text, sizeof(text),
           "map 1\nin %s 1\nout %s 1 2\nout %s 1 3\nscalar %s\n0 %s load 0\n1 %s scalar 0\n"
           "2 %s quotient 0 1\n3 %s remainder 0 1\n",
           name, name, name, name, name, name, name, name);
  ts_case_parse(text, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof(divisors) / sizeof(*divisors); i++)
    check_quotients(type, ts_kernel_entry(kernel), divisors[i]);
  ts_kernel_release(kernel);
}
END_TEST

/* ---- text, checks, faults ---- */

START_TEST(text_prints_back)
{
  for (size_t i = 0; i < ROW_PROGRAMS + GATHERS; i++) {
    const char *source = i < GATHERS ? gathers[i] : row_programs[i - GATHERS];
    ts_kernel_case c, again;
    ts_case_parse(source, &c);
    ts_text once = {0}, twice = {0};
    ck_assert_ok(ts_kernel_print(&c.desc, &once));
    ts_case_parse(once.data, &again);
    ck_assert_ok(ts_kernel_print(&again.desc, &twice));
    ck_assert_str_eq(once.data, twice.data);
    ts_text_deinit(&once);
    ts_text_deinit(&twice);
  }
}
END_TEST

static const struct {
  const char *text, *message;
} rejected[] = {
    {"map 9\nin f32 1\nout f32 1 0\n0 f32 load 0\n", "rank 9"},
    {"col 1\nin f32 1\nout f32 1 0\n0 f32 load 0\n", "rank 1"},
    {"map 1\nin f32 1\n0 f32 load 0\n", "count"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n", "no such node"},
    {"map 1\nin f32 1\nout f64 1 0\n0 f32 load 0\n", "type differs"},
    {"map 1\nin f32 1\nout f32 0 0\n0 f32 load 0\n", "does not move"},
    {"map 1\nin f32 1\nout f32 - 0\n0 f32 load 0\n", "runs downwards"},
    {"map 2\nin f32 -1\nout f32 s1 0\n0 f32 load 0\n", "runs downwards"},
    {"map 2\nin f32 1s\nout f32 s1 0\n0 f32 load 0\n", "unit stride"},
    {"tile 2\nin f32 1s\nout f32 1s 0\n0 f32 load 0\n", "unit stride"},
    {"tile 3 joined 1\nin f32 s1s\nout f32 ss1 0\n0 f32 load 0\n", "unit stride"},
    {"tile 4 joined 1\nin f32 ss01\nout f32 sss1 0\n0 f32 load 0\n", "a row that is not one"},
    {"tile 3 lined 2\nin f32 s1s\nout f32 ss1 0\n0 f32 load 0\n", "lines of 3 dims"},
    {"map 3 lined 1\nin f32 ss1\nout f32 ss1 0\n0 f32 load 0\n", "lines of 2 dims"},
    {"tile 3 joined 2\nin f32 s1s\nout f32 ss1 0\n0 f32 load 0\n", "rows that are not joined"},
    {"map 1\nin f32 1\nout f32 1 0\n0 f32 load 1\n", "no input"},
    {"map 1\nin f32 1\nout f64 1 0\n0 f64 load 0\n", "no input"},
    {"map 1\nin c64 1\nout c64 1 1\n0 c64 load 0\n1 c64 add 0 0\n", "types"},
    {"map 1\nin c64 1\nout f64 1 1\n0 c64 load 0\n1 f64 real 0\n", "types"},
    {"row 1\nin c64 1\nout c64 0 1\n0 c64 load 0\n1 c64 reduce_sum 0\n", "reduces complex"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 add 0 1\n", "earlier node"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 add 0\n", "earlier node"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 exp 0 0\n", "too many"},
    {"map 1\nin s32 1\nout s32 1 1\n0 s32 load 0\n1 s32 exp 0\n", "types"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 quotient 0 0\n", "types"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 equal 0 0\n", "types"},
    {"map 1\nin f32 1\nout u16 1 1\n0 f32 load 0\n1 u16 bitcast 0\n", "types"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 select 0 0 0\n", "types"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 reshape 0\n", "elementwise"},
    {"map 1\nin f32 1\nout f32 1 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "outside row, col and interleaved"},
    {"row 1\nin f32 1\nout f32 0 0\n0 f32 load 0\n", "varies"},
    {"row 1\nin f32 1\nout f32 0 1\n0 f32 load 0\n1 f32 reduce_all 0\n", "types"},
    {"row 1\nin f32 1\nout f32 0 1\n0 f32 load 0\n1 f32 argmax_low 0\n", "argmax"},
    {"col 2\nin f32 s1\nout f32 s1 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "reduced dim"},
    {"col 2\nin f32 s1\nout f32 01 0\n0 f32 load 0\n", "varies"},
    {"col 2\nin f32 s1\nout f32 01 2\n0 f32 load 0\n1 f32 reduce_sum 0\n2 f32 add 0 1\n", "mixes"},
    {"col 2\nin f32 s1\nout f32 01 2\n0 f32 load 0\n1 f32 reduce_sum 0\n2 f32 reduce_sum 1\n",
     "reduction of a reduction"},
    {"map 1\nin f32 1\nin f32 1\nout f32 1 1\nscalar s64\n0 f32 load 1\n1 f32 gather 0 at 0 limit 0 step 0\n",
     "indices"},
    {"map 1\nin f32 1\nin s32 1\nout f32 1 1\nscalar s32\n0 s32 load 1\n1 f32 gather 0 at 0 limit 0 step 0\n", "s64"},
};

START_TEST(check_rejects)
{ ts_case_check_rejected(rejected[_i].text, rejected[_i].message); }
END_TEST

static void make_and_free(const ts_kernel_desc *desc) {
  char *text = NULL;
  ts_kernel_source source;
  ts_status status = ts_kernel_make_source(desc, &text, &source);
  if (!status) ts_free(text);
  ts_status_free(status);
}

START_TEST(failing_allocations)
{
  ts_kernel_case c;
  ts_case_parse(row_programs[1], &c);
  CK_FAIL_EACH_ALLOCATION(make_and_free(&c.desc));
  int64_t fixed, each, cost = ts_kernel_point_cost(&c.desc), least;
  ts_kernel_scratch(&c.desc, &fixed, &least);
  ts_alloc_fail_after(1, true);
  ts_kernel_scratch(&c.desc, &fixed, &each);
  ck_assert_int_gt(ts_kernel_point_cost(&c.desc), 0);
  ts_alloc_fail_after(0, false);
  ck_assert_int_ge(each, least);
  ck_assert_int_gt(cost, 0);
}
END_TEST

static TCase *cases(void) {
  TCase *tc = tcase_create("kernel");
  tcase_set_timeout(tc, 300);
  tcase_add_loop_test(tc, map_rank_1, 0, TYPES);
  testing_add_many(tc, map_streams, 2 * TYPES);
  tcase_add_loop_test(tc, map_rank_n, 0, TYPES);
  tcase_add_test(tc, map_heavy_body);
  testing_add_many(tc, loads_downwards, TYPES * DOWNWARDS);
  testing_add_many(tc, moves_rows, MOVED * MOVED_TYPES);
  tcase_add_test(tc, map_narrow);
  tcase_add_test(tc, map_in_place);
  tcase_add_loop_test(tc, gather, 0, GATHERS);
  tcase_add_loop_test(tc, tile, 0, TYPES);
  tcase_add_loop_test(tc, tile_strips, 0, TYPES);
  tcase_add_loop_test(tc, tile_dims, 0, TILES * TYPES);
  testing_add_many(tc, row_reductions, TYPES * 6);
  testing_add_many(tc, col_reductions, TYPES * 6);
  tcase_add_loop_test(tc, row_program, 0, ROW_PROGRAMS);
  tcase_add_test(tc, row_longest);
  testing_add_many(tc, arg_reductions, TYPES * 4);
  tcase_add_test(tc, row_and_column_sums_agree);
  tcase_add_loop_test(tc, every_op, 0, TYPES);
  tcase_add_loop_test(tc, every_conversion, 0, TYPES);
  tcase_add_test(tc, remainder_far_apart);
  tcase_add_test(tc, remainder_of_any_quotient);
  tcase_add_loop_test(tc, quotients_by_one_divisor, 0, 6);
  tcase_add_test(tc, text_prints_back);
  tcase_add_loop_test(tc, check_rejects, 0, sizeof(rejected) / sizeof(rejected[0]));
  tcase_add_test(tc, failing_allocations);
  test_add_lesser_isas(tc);
  return tc;
}

int main(void) {
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  Suite *suite = suite_create("kernel");
  suite_add_tcase(suite, cases());
  return testing_run(suite);
}
