/* Kernels for shapes of their own against an interpreter of their descriptions, bit for bit: groups of interleaved
 * members (INTERLEAVED), short rows that are joined (JOINED), columns that take turns in a ROW, rows in pieces, wide
 * columns (COL), and columns whose rows lie one behind the other. */
#include "kernel_case.h"
#include "lesser_isa.h"
#include "testing.h"

#include <stdio.h>
#include <string.h>

static const char *type_names[] = {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64"};
#define TYPES 12

/* Parses `text` with a type's name for each T, and a number for each N. */
static void parse_with(const char *text, const char *type, int number, ts_kernel_case *out) {
  char all[1024], digits[8];
  size_t n = 0;
  snprintf(digits, sizeof digits, "%d", number);
  for (; *text; text++) {
    char one[2] = {*text, 0};
    n += (size_t)snprintf(all + n, sizeof all - n, "%s", *text == 'T' ? type : *text == 'N' ? digits : one);
  }
  ts_case_parse(all, out);
}

/* ---- JOINED ---- */

typedef struct joined_case {
  const char *text;
  int64_t outer; /* the extent of a dim before the rows */
} joined_case;

/* One type's name stands for T: moves. */
static const joined_case joined_moves[] = {
    /* the last axes exchanged */
    {"joined 3 of 4 by 2 2 rows 4\nin T nnn,4,1,2\nout T nnn,4,2,1 0\n0 T load 0\n", 1},
    {"joined 4 of 30 by 3 10 rows 8\nin T snnn,30,1,3\nout T snnn,30,10,1 0\n0 T load 0\n", 2},
    {"joined 3 of 35 by 7 5 rows 1\nin T nnn,35,1,7\nout T nnn,35,5,1 0\n0 T load 0\n", 1},
    /* every second and third element, also downwards; a part of each row */
    {"joined 1 of 1 rows 64\nin T n,2\nout T n,1 0\n0 T load 0\n", 1},
    {"joined 2 of 1 rows 32\nin T sn,-3\nout T sn,1 0\n0 T load 0\n", 2},
    {"joined 2 of 5 by 5 rows 16\nin T nn,9,1\nout T nn,5,1 0\n0 T load 0\n", 1},
    {"joined 2 of 3 by 3 rows 8\nin T nn,-127,-1\nout T nn,3,1 0\n0 T load 0\n", 1},
    /* pieces that are far from each other: of points, of rows, and of both */
    {"joined 3 of 12 by 3 4 rows 16\nin T nsn,4,1\nout T nnn,12,4,1 0\n0 T load 0\n", 1},
    {"joined 3 of 12 by 3 4 rows 4\nin T snn,1,3\nout T nnn,12,4,1 0\n0 T load 0\n", 1},
    {"joined 2 of 2 by 2 rows 2\nin T ss\nout T nn,2,1 0\n0 T load 0\n", 1},
    {"joined 4 of 60 by 3 4 5 rows 4\nin T nnsn,5,50,1\nout T nnnn,60,20,5,1 0\n0 T load 0\n", 1},
};
#define JOINED_MOVES (int)(sizeof(joined_moves) / sizeof(joined_moves[0]))

static const joined_case joined_programs[] = {
    /* a value of each row, of each point, of each outer index, and of all; and two results */
    {"joined 3 of 3 by 3 rows 8\nin T snn,5,1\nin T sn0,1\nin T 00n,1\nin T s00\nin T 000\nscalar T\n"
     "out T snn,3,1 8\nout T snn,3,1 9\n"
     "0 T load 0\n1 T load 1\n2 T load 2\n3 T load 3\n4 T load 4\n5 T scalar 0\n6 T add 0 1\n7 T multiply 2 3\n"
     "8 T subtract 6 7\n9 T max 4 5\n",
     2},
    /* types of several sizes */
    {"joined 3 of 6 by 2 3 rows 16\nin T nnn,6,1,2\nin u8 nnn,6,3,1\nout f32 nnn,6,3,1 4\nout u8 nnn,6,3,1 1\n"
     "0 T load 0\n1 u8 load 1\n2 f32 convert 0\n3 f32 convert 1\n4 f32 add 2 3\n",
     1},
    {"joined 1 of 1 rows 64\nin T n,2\nin T n,-1\nin T n,4\nout T n,1 4\n0 T load 0\n1 T load 1\n2 T load 2\n"
     "3 T multiply 0 1\n4 T add 3 2\n",
     1},
};
#define JOINED_PROGRAMS (int)(sizeof(joined_programs) / sizeof(joined_programs[0]))

/* Rows on both sides of blocks and of units. */
static void check_joined(const joined_case *one, const char *type) {
  static const int64_t more[] = {0, 1, 3, 40, 450, 512, 1030};
  ts_kernel_case c;
  parse_with(one->text, type, 0, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  const int32_t row = ts_kernel_row_dim(&c.desc);
  for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
    ts_case_run run = {.seed = i + 1, .special = i % 2 == 0};
    for (int32_t k = 0; k < row; k++) run.extents[k] = one->outer;
    run.extents[row] = c.desc.rows + more[i];
    for (int32_t k = 0; k < c.desc.joined; k++) run.extents[row + 1 + k] = c.desc.few[k];
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}

START_TEST(joined_rows_move)
{
  static const char *sized[] = {"u8", "bf16", "f32", "c64"};
  check_joined(&joined_moves[_i % JOINED_MOVES], sized[_i / JOINED_MOVES]);
}
END_TEST

START_TEST(joined_rows_compute)
{ check_joined(&joined_programs[_i % JOINED_PROGRAMS], type_names[_i / JOINED_PROGRAMS]); }
END_TEST

/* ---- INTERLEAVED ---- */

static const int members[] = {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 15, 16};
#define MEMBERS (int)(sizeof(members) / sizeof(members[0]))

/* Groups counted from 1 to more than a block has, on both sides of whole vectors. */
static const int64_t group_counts[] = {1, 3, 15, 16, 17, 64, 65, 513, 1100};
#define GROUP_COUNTS (sizeof(group_counts) / sizeof(group_counts[0]))

/* Of `which` of many kernels; with a sanitizer a third of the counts: the interpreter takes the time, and kernels are
 * not instrumented. */
static void check_groups(const ts_kernel_case *c, int which, bool in_place) {
  ts_kernel *kernel = ts_case_compile(c);
  for (size_t i = 0; i < GROUP_COUNTS; i++) {
    if (TEST_IS_SANITIZED && !testing_every_case() && (i + (size_t)which) % 3 != 0) continue;
    ts_case_run run = {.seed = i + 1, .special = i % 2 == 0, .in_place = in_place};
    for (int32_t k = 0; k < c->desc.rank; k++) run.extents[k] = 2;
    run.extents[c->desc.rank - 2] = c->desc.members;
    run.extents[c->desc.rank - 1] = group_counts[i];
    ts_case_check(c, kernel, &run);
  }
  ts_kernel_release(kernel);
}

static const char *moves[] = {
    "interleaved 3 of N\nin T ss1\nout T s1g 0\n0 T load 0\n",
    "interleaved 3 of N\nin T s1g\nout T ss1 0\n0 T load 0\n",
    "interleaved 2 of N\nin T 1G\nout T 1g 0\n0 T load 0\n",
    "interleaved 2 of N\nin T -g\nout T 1g 0\n0 T load 0\n",
    "interleaved 2 of N\nin T -G\nin T 01\nin T s0\nout T s1 0\nout T 1g 1\nout T s1 2\n0 T load 0\n1 T load 1\n2 T "
    "load "
    "2\n",
};
#define MOVES (int)(sizeof(moves) / sizeof(moves[0]))

/* Every number of members of one type of each size, and few of the others. */
START_TEST(groups_move)
{
  static const char *sized[] = {"u8", "bf16", "f32", "c64"};
  ts_kernel_case c;
  parse_with(moves[_i % MOVES], sized[_i / MOVES % 4], members[_i / MOVES / 4], &c);
  check_groups(&c, _i, false);
}
END_TEST

static const char *programs[] = {
    /* softmax, in place */
    "interleaved 2 of N\nin T 1g\nout T 1g 5\n0 T load 0\n1 T reduce_max 0\n2 T subtract 0 1\n3 T multiply 2 2\n"
    "4 T reduce_sum 3\n5 T divide 3 4\n",
    /* results of groups, of members, and a value of each member */
    "interleaved 3 of N\nin T s1g\nin T 0s0\nin T s01\nout T s01 5\nout T ss1 4\nout T s01 6\n0 T load 0\n1 T load 1\n"
    "2 T load 2\n3 T multiply 0 1\n4 T add 3 2\n5 T reduce_sum 4\n6 T max 5 2\n",
    /* another type, and numbers of members and groups */
    "interleaved 2 of N\nin u8 1g\nin T -G\nindex 0s\nindex s0\nout T 1g 6\nout s32 01 7\n0 u8 load 0\n1 T load 1\n"
    "2 T convert 0\n3 T index 0\n4 T index 1\n5 T add 2 3\n6 T subtract 5 4\n7 s32 argmax_low 6\n",
    /* Numbers of elements, which step along both dims. */
    "interleaved 3 of N\nin T s1g\nin T s-G\nindex sss\nindex 0s1\nout T s1g 6\nout T s01 8\n0 T load 0\n1 T load 1\n"
    "2 T index 0\n3 T index 1\n4 T add 0 2\n5 T multiply 1 3\n6 T max 4 5\n7 T subtract 6 2\n8 T reduce_sum 7\n",
};
#define PROGRAMS (int)(sizeof(programs) / sizeof(programs[0]))

START_TEST(groups_compute)
{
  static const char *floats[] = {"bf16", "f16", "f32", "f64"};
  static const int some[] = {2, 3, 7, 10, 16};
  ts_kernel_case c;
  parse_with(programs[_i % PROGRAMS], floats[_i / PROGRAMS % 4], some[_i / PROGRAMS / 4], &c);
  check_groups(&c, _i, _i % PROGRAMS == 0);
}
END_TEST

static const char *reductions[] = {"reduce_sum", "reduce_product", "reduce_max",  "reduce_min", "reduce_all",
                                   "reduce_any", "argmax_low",     "argmax_high", "argmin_low", "argmin_high"};
#define REDUCTIONS 10

START_TEST(groups_reduce)
{
  const char *t = type_names[_i / REDUCTIONS], *op = reductions[_i % REDUCTIONS];
  const char *r = _i % REDUCTIONS > 3 ? "u8" : t;
  char text[256];
  snprintf(text, sizeof(text), "interleaved 2 of 5\nin %s 1g\nout %s 01 1\n0 %s load 0\n1 %s %s 0\n", t, r, t, r, op);
  ts_kernel_case c;
  ts_case_parse(text, &c);
  check_groups(&c, _i, false);
}
END_TEST

/* ---- ROW ---- */

static const char *turns[] = {
    /* softmax, in place */
    "row 2 of N\nin T s1\nout T s1 5\n0 T load 0\n1 T reduce_max 0\n2 T subtract 0 1\n3 T multiply 2 2\n"
    "4 T reduce_sum 3\n5 T divide 3 4\n",
    /* values of columns, and of rows */
    "row 3 of N\nin T ss1\nin T s0t\nin T 0s0\nout T s0t 7\nout T ss1 6\nout T sst 5\n0 T load 0\n1 T load 1\n"
    "2 T load 2\n3 T multiply 0 1\n4 T add 3 2\n5 T reduce_product 4\n6 T max 5 0\n7 T min 1 1\n",
    /* reductions of one pass */
    "row 2 of N\nin T s1\nin u8 01\nout T st 2\nout T st 3\nout u8 st 4\n0 T load 0\n1 u8 load 1\n"
    "2 T reduce_min 0\n3 T reduce_sum 0\n4 u8 reduce_any 1\n",
};
#define TURNS (int)(sizeof(turns) / sizeof(turns[0]))

START_TEST(columns_take_turns)
{
  static const char *types[] = {"bf16", "f16", "f32", "f64"};
  static const int columns[] = {2, 4, 8, 16};
  static const int64_t rows[] = {1, 2, 7, 8, 31, 32, 33, 65, 200};
  ts_kernel_case c;
  parse_with(turns[_i % TURNS], types[_i / TURNS % 4], columns[_i / TURNS / 4], &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ts_case_run run = {.extents = {3, 2}, .seed = i + 1, .special = i % 2 == 0, .in_place = _i % TURNS == 0};
    run.extents[c.desc.rank - 1] = rows[i] * c.desc.members;
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Pieces that are joined, and those that are read where they lie, by heavy and light points. */
static const char *pieces_forms[] = {"", "long_pieces "};
static const char *pieces_types[] = {"bf16", "f16", "f32", "f64", "s16", "u8"};
static const char *of_pieces[] = {
    "in T ss1\nin T s00\nin T 0s0\nindex ss1\nout T s00 6\nout T s00 8\n0 T load 0\n1 T load 1\n"
    "2 T load 2\n3 T index 0\n4 T add 0 2\n5 T reduce_sum 4\n6 T max 5 1\n7 T min 0 3\n8 T reduce_product 7\n",
    "in T ss1\nout T s00 1\nout T s00 2\n0 T load 0\n1 T reduce_sum 0\n2 T reduce_max 0\n",
};
static const char *of_blocks[] = {
    "in T s0s1\nin T 0000\nindex s0s1\nout T ss00 6\nout T ss00 7\n0 T load 0\n1 T load 1\n"
    "2 T index 0\n3 T add 0 1\n4 T min 3 2\n5 T reduce_max 3\n6 T reduce_sum 3\n7 T max 5 1\n",
    "in T s0s1\nout T ss00 1\n0 T load 0\n1 T reduce_sum 0\n",
};
#define PIECES_KERNELS (2 * 6 * 2)

static void parse_pieces(const char *kind, const char *const *texts, int kernel, ts_kernel_case *c) {
  char text[512];
  snprintf(text, sizeof(text), "row %d %s%s\n%s", strcmp(kind, "blocks") == 0 ? 4 : 3, pieces_forms[kernel % 2], kind,
           texts[kernel / 12]);
  parse_with(text, pieces_types[kernel / 2 % 6], 0, c);
}

START_TEST(pieces_are_one_row)
{
  static const int64_t pieces[][2] = {{1, 1}, {2, 16}, {3, 17}, {9, 3}, {7, 129}, {33, 31}, {4, 256}, {6, 533}};
  ts_kernel_case c;
  parse_pieces("apart", of_pieces, _i, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    const ts_case_run run = {.extents = {4, pieces[i][0], pieces[i][1]}, .seed = i + 1, .special = i % 2 == 0};
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

/* Blocks that begin and end in pieces, between them, and in one piece alone. */
START_TEST(blocks_of_pieces)
{
  static const int64_t pieces[][2] = {{129, 128}, {1100, 31}, {2, 8192}, {2, 8193}, {3, 20000}, {40, 1}};
  ts_kernel_case c;
  parse_pieces("blocks", of_blocks, _i, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
    const int64_t blocks = (pieces[i][0] * pieces[i][1] + TS_REDUCE_BLOCK - 1) / TS_REDUCE_BLOCK;
    const ts_case_run run = {.extents = {2, blocks, pieces[i][0], pieces[i][1]}, .seed = i + 1, .special = i % 2 == 0};
    ts_case_check(&c, kernel, &run);
  }
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(rows_of_turns_are_checked)
{
  ts_case_check_rejected("row 1 of 3\nin f32 1\nout f32 1 0\n0 f32 load 0\n", "3 columns that take turns");
  ts_case_check_rejected("row 1\nin f32 t\nout f32 1 0\n0 f32 load 0\n", "has columns");
  ts_case_check_rejected("row 1 of 2\nin f32 s\nout f32 1 0\n0 f32 load 0\n", "columns apart from each other");
  ts_case_check_rejected("row 1 of 2\nin f32 1\nout f32 0 1\n0 f32 load 0\n1 f32 reduce_sum 0\n",
                         "columns apart from each other");
  ts_case_check_rejected("row 1 of 2\nin f32 1\nout s32 t 1\n0 f32 load 0\n1 s32 argmax_low 0\n",
                         "depends on the place");
  ts_case_check_rejected("row 2 apart\nin f32 s1\nout f32 s0 1\n0 f32 load 0\n1 f32 reduce_sum 0\n",
                         "points of pieces");
  ts_case_check_rejected("row 3 blocks\nin f32 ss1\nout f32 s00 1\n0 f32 load 0\n1 f32 reduce_sum 0\n",
                         "along the blocks");
  ts_case_check_rejected("row 2 blocks\nin f32 s1\nout f32 00 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "rank 2");
  ts_case_check_rejected("row 1 long_pieces\nin f32 1\nout f32 1 0\n0 f32 load 0\n", "no pieces");
}
END_TEST

/* ---- COL ---- */

static const char *sums[] = {
    "in T ss1\nin T s00\nout T s01 4\n0 T load 0\n1 T load 1\n2 T add 0 1\n3 T reduce_sum 2\n4 T max 3 3\n",
    "in T ss1\nout T s01 1\nout T s01 2\n0 T load 0\n1 T reduce_max 0\n2 T reduce_product 0\n",
    "in T ss1\nin T ss1\nout T s01 3\nout T s01 2\n0 T load 0\n1 T load 1\n2 T reduce_max 0\n3 T reduce_min 1\n",
    "in T ss1\nout s16 s01 1\nout T s01 2\n0 T load 0\n1 s16 argmin_high 0\n2 T reduce_sum 0\n",
};
#define SUMS (int)(sizeof(sums) / sizeof(sums[0]))
#define DENSE_SUMS (SUMS - 1)

/* The same with inputs that are NEAR. */
static const char *near_sums[] = {
    "in T ssn,2\nin T s00\nout T s01 4\n0 T load 0\n1 T load 1\n2 T add 0 1\n3 T reduce_sum 2\n4 T max 3 3\n",
    "in T ssn,-3\nout T s01 1\nout T s01 2\n0 T load 0\n1 T reduce_max 0\n2 T reduce_product 0\n",
    "in T ssn,3\nin T ss1\nout T s01 3\nout T s01 2\n0 T load 0\n1 T load 1\n2 T reduce_max 0\n3 T reduce_min 1\n",
    "in T ssn,-2\nout s16 s01 1\nout T s01 2\n0 T load 0\n1 s16 argmin_high 0\n2 T reduce_sum 0\n",
    "in T ssn,4\nin T ssn,-4\nout T s01 2\nout T s01 3\n0 T load 0\n1 T load 1\n2 T reduce_sum 0\n3 T reduce_max 1\n",
};
#define NEAR_SUMS (int)(sizeof(near_sums) / sizeof(near_sums[0]))

static void parse_sum(const char *kind, int sum, int type, ts_kernel_case *c) {
  char text[512];
  snprintf(text, sizeof(text), "col 3 %s\n%s", kind, sums[sum]);
  parse_with(text, type_names[type], 0, c);
}

/* Whether a kernel is tried with these numbers of rows and columns. It takes each of both, but not all pairs, as rows
 * and columns are loops of their own; the next kernel takes other pairs. */
static bool takes_pair(size_t rows, size_t columns, int kernel) {
  const size_t each = TEST_IS_SANITIZED ? 6 : 3;
  return testing_every_case() || (rows + columns + (size_t)kernel) % each == 0;
}

/* The kernel over pairs of so many rows and columns, of which test `test` takes some. */
static void check_pairs(const ts_kernel_case *c, const int64_t *rows, size_t row_count, const int64_t *columns,
                        size_t column_count, int test) {
  ts_kernel *kernel = ts_case_compile(c);
  for (size_t i = 0; i < row_count; i++)
    for (size_t k = 0; k < column_count; k++)
      if (takes_pair(i, k, test))
        ts_case_check(c, kernel,
                      &(ts_case_run){.extents = {2, rows[i], columns[k]}, .seed = i + k, .special = k % 2 == 0});
  ts_kernel_release(kernel);
}

START_TEST(wide_columns)
{
  static const int64_t columns[] = {64, 65, 128, 129, 200, 321};
  static const int64_t rows[] = {0, 1, 5, 31, 32, 33, 64, 65, 100, 128, 129, 290};
  ts_kernel_case c;
  parse_sum(_i % 2 ? "low" : "wide", _i / 2 % SUMS, _i / 2 / SUMS, &c);
  check_pairs(&c, rows, sizeof rows / sizeof *rows, columns, sizeof columns / sizeof *columns, _i);
}
END_TEST

START_TEST(near_columns)
{
  static const int64_t columns[] = {64, 65, 129, 321};
  static const int64_t rows[] = {0, 1, 5, 33, 129, 290};
  static const char *kinds[] = {"", " wide", " low"};
  char text[512];
  ts_kernel_case c;
  snprintf(text, sizeof(text), "col 3%s\n%s", kinds[_i % 3], near_sums[_i / 3 % NEAR_SUMS]);
  parse_with(text, type_names[_i / 3 / NEAR_SUMS], 0, &c);
  check_pairs(&c, rows, sizeof rows / sizeof *rows, columns, sizeof columns / sizeof *columns, _i);
}
END_TEST

static const char *near_rows[] = {
    "row 2\nin T sn,2\nin T s1\nout T s0 3\nout T s0 4\n0 T load 0\n1 T load 1\n2 T add 0 1\n3 T reduce_sum 2\n4 T "
    "reduce_max 0\n",
    "row 2\nin T sn,-4\nin T sn,3\nout T s1 3\n0 T load 0\n1 T load 1\n2 T reduce_min 0\n3 T max 1 2\n",
    "row 2 search\nin T sn,-2\nout s32 s0 1\nout T s0 2\n0 T load 0\n1 s32 argmax_low 0\n2 T reduce_max 0\n",
    "row 2 long\nin u8 sn,2\nin s16 sn,-3\nout u8 s0 2\nout s16 s0 3\n0 u8 load 0\n1 s16 load 1\n2 u8 reduce_min "
    "0\n3 s16 reduce_sum 1\n",
};
#define NEAR_ROWS (int)(sizeof(near_rows) / sizeof(near_rows[0]))

START_TEST(rows_near)
{
  static const int64_t lengths[] = {0, 1, 31, 64, 65, 300, 1025, 2050};
  ts_kernel_case c;
  parse_with(near_rows[_i % NEAR_ROWS], type_names[_i / NEAR_ROWS], 0, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    ts_case_check(&c, kernel, &(ts_case_run){.extents = {3, lengths[i]}, .seed = i, .special = i % 2 == 0});
  ts_kernel_release(kernel);
}
END_TEST

START_TEST(dense_rows)
{
  static const int64_t columns[] = {1, 2, 3, 7, 16, 31, 63, 127};
  static const int64_t rows[] = {64, 65, 100, 128, 129, 290};
  ts_kernel_case c;
  parse_sum("dense", _i % DENSE_SUMS, _i / DENSE_SUMS, &c);
  ts_kernel *kernel = ts_case_compile(&c);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; k < sizeof columns / sizeof *columns; k++)
      if (takes_pair(i, k, _i))
        ts_case_check(&c, kernel, /* a seed without space between rows (kernel_case.c) */
                      &(ts_case_run){.extents = {2, rows[i], columns[k]}, .seed = 6 * (i + k), .special = k % 2 == 0});
  ts_kernel_release(kernel);
}
END_TEST

static const struct {
  const char *text, *message;
} rejected[] = {
    {"interleaved 1 of 3\nin f32 g\nout f32 g 0\n0 f32 load 0\n", "rank 1"},
    {"interleaved 2 of 11\nin f32 1g\nout f32 1g 0\n0 f32 load 0\n", "groups of 11"},
    {"interleaved 2\nin f32 1g\nout f32 1g 0\n0 f32 load 0\n", "groups of 0"},
    {"map 2 of 3\nin f32 s1\nout f32 s1 0\n0 f32 load 0\n", "groups of 3"},
    {"map 2\nin f32 sg\nout f32 s1 0\n0 f32 load 0\n", "has groups"},
    {"interleaved 2 of 3\nin f32 g1\nout f32 1g 0\n0 f32 load 0\n", "has groups"},
    {"interleaved 2 of 3\nin f32 sg\nout f32 1g 0\n0 f32 load 0\n", "members apart"},
    {"interleaved 2 of 3\nin f32 ss\nout f32 1g 0\n0 f32 load 0\n", "groups apart"},
    {"interleaved 2 of 3\nin f32 11\nout f32 1g 0\n0 f32 load 0\n", "unit stride"},
    {"interleaved 2 of 3\nin f32 1g\nout f32 1G 0\n0 f32 load 0\n", "runs downwards"},
    {"interleaved 2 of 3\nin f32 1g\nout f32 -g 0\n0 f32 load 0\n", "runs downwards"},
    {"interleaved 2 of 3\nin f32 s-\nout f32 1g 0\n0 f32 load 0\n", "groups apart"},
    {"interleaved 2 of 3\nin c128 1g\nout c128 1g 0\n0 c128 load 0\n", "8 bytes"},
    {"interleaved 2 of 3\nin f32 1g\nout f32 01 0\n0 f32 load 0\n", "varies"},
    {"interleaved 2 of 3\nin f32 1g\nout f32 s1 0 stream\n0 f32 load 0\n", "streams"},
    {"interleaved 2 of 3\nin f32 1g\nin s32 1g\nout f32 1g 1\nscalar s64\n0 s32 load 1\n"
     "1 f32 gather 0 at 0 limit 0 step 0\n",
     "gathers"},
    {"row 2 wide\nin f32 s1\nout f32 s1 0\n0 f32 load 0\n", "columns"},
    {"col 2 dense\nin f32 0s\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "dense"},
    {"col 2 dense\nin f32 01\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "dense"},
    {"col 2 dense\nin f32 s1\nout s32 01 1\n0 f32 load 0\n1 s32 argmax_low 0\n", "place"},
    {"col 2\nin f32 nn,2,2\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "known distances"},
    {"col 2\nin f32 sn,5\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "known distances"},
    {"row 2\nin f32 sn,1\nout f32 s0 1\n0 f32 load 0\n1 f32 reduce_sum 0\n", "known distances"},
    {"row 2\nin f32 s1\nout f32 sn,2 0\n0 f32 load 0\n", "known distances"},
    {"map 2\nin f32 sn,2\nout f32 s1 0\n0 f32 load 0\n", "known distances"},
    {"joined 2 of 3 by 2 rows 4\nin f32 nn,2,1\nout f32 nn,2,1 0\n0 f32 load 0\n", "rows of 3 points"},
    {"joined 2 of 2 by 2 rows 5\nin f32 nn,2,1\nout f32 nn,2,1 0\n0 f32 load 0\n", "at least 5 rows"},
    {"joined 1 of 2 by 2 rows 4\nin f32 n,1\nout f32 n,1 0\n0 f32 load 0\n", "1 dims of rows"},
    {"joined 2 of 2 by 2 rows 4\nin f32 nn,2,1\nout f32 nn,3,1 0\n0 f32 load 0\n", "apart from each other"},
    {"joined 2 of 2 by 2 rows 4\nin f32 n1,2\nout f32 nn,2,1 0\n0 f32 load 0\n", "not a number"},
    {"joined 2 of 2 by 2 rows 4\nin c128 nn,2,1\nout c128 nn,2,1 0\n0 c128 load 0\n", "more than 8 bytes"},
    {"joined 2 of 2 by 2 rows 4\nin f32 nn,2,1\nout f32 nn,2,1 1\n0 f32 load 0\n1 f32 reduce_sum 0\n",
     "reduction outside"},
    {"joined 2 of 2 by 2 rows 4\nin s32 nn,2,1\nscalar s64\nscalar s64\nout s32 nn,2,1 1\n0 s32 load 0\n"
     "1 s32 gather 0 at 0 limit 0 step 1\n",
     "gathers points"},
    {"map 2\nin f32 nn,2,1\nout f32 s1 0\n0 f32 load 0\n", "has known distances"},
};

START_TEST(check_rejects)
{ ts_case_check_rejected(rejected[_i].text, rejected[_i].message); }
END_TEST

START_TEST(text_prints_back)
{
  static const char *texts[] = {
      "interleaved 2 of 3\nin f32 -G\nout f32 1g 0\n0 f32 load 0\n",
      "joined 4 of 12 by 3 4 rows 16\nin f32 ssn0,-4\nout f32 snnn,12,4,1 0\n0 f32 load 0\n",
      "joined 1 of 1 rows 64\nin u8 n,3\nout u8 n,1 0\n0 u8 load 0\n",
      "col 2 dense\nin f32 s1\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n",
      "col 2 wide\nin f32 s1\nout f32 01 1\n0 f32 load 0\n1 f32 reduce_sum 0\n",
  };
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    ts_kernel_case c;
    ts_text text = {0};
    ts_case_parse(texts[i], &c);
    ck_assert_ok(ts_kernel_print(&c.desc, &text));
    ck_assert_str_eq(text.data, texts[i]);
    ts_text_deinit(&text);
  }
}
END_TEST

static TCase *cases(void) {
  TCase *tc = tcase_create("kernel_groups");
  tcase_set_timeout(tc, 300);
  testing_add_many(tc, joined_rows_move, JOINED_MOVES * 4);
  testing_add_many(tc, joined_rows_compute, JOINED_PROGRAMS * TYPES);
  testing_add_many(tc, groups_move, MOVES * 4 * MEMBERS);
  testing_add_many(tc, groups_compute, PROGRAMS * 4 * 5);
  testing_add_many(tc, groups_reduce, TYPES * REDUCTIONS);
  testing_add_many(tc, columns_take_turns, TURNS * 4 * 4);
  tcase_add_loop_test(tc, pieces_are_one_row, 0, PIECES_KERNELS);
  tcase_add_loop_test(tc, blocks_of_pieces, 0, PIECES_KERNELS);
  tcase_add_test(tc, rows_of_turns_are_checked);
  testing_add_many(tc, wide_columns, 2 * SUMS * TYPES);
  testing_add_many(tc, near_columns, 3 * NEAR_SUMS * TYPES);
  testing_add_many(tc, rows_near, NEAR_ROWS * TYPES);
  testing_add_many(tc, dense_rows, DENSE_SUMS * TYPES);
  tcase_add_loop_test(tc, check_rejects, 0, sizeof(rejected) / sizeof(rejected[0]));
  tcase_add_test(tc, text_prints_back);
  test_add_lesser_isas(tc);
  return tc;
}

int main(void) {
  ts_jit_configure(&(ts_jit_options){.cache_dir = ""});
  Suite *suite = suite_create("kernel_groups");
  suite_add_tcase(suite, cases());
  return testing_run(suite);
}
