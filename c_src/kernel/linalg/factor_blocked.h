/* Shared by the factorizations of large complex matrices and the solutions of their systems: by blocks of columns,
 * whose products are taken from other columns by the product of real matrices. A number u of such a block stands there
 * for the rows (re, im) and (-im, re), so that the bits are those of chains of multiply-adds, however the columns are
 * cut and whichever threads compute them. */
#ifndef TS_KERNEL_FACTOR_BLOCKED_H
#define TS_KERNEL_FACTOR_BLOCKED_H

#include "kernel/linalg/factor_numbers.h"

/* Columns of a block and of a tile, and their parts. */
#define FACTOR_BLOCK 32
#define FACTOR_PARTS (2 * FACTOR_BLOCK)

/* The columns of a matrix and behind them those of the right side. Lines are longer than columns, so that elements of
 * one row do not share a set of the cache. */
typedef struct factor_grid {
  const factor *f;
  int64_t n; /* elements of a column, and columns of the matrix */
  factor_rows a;
  double *triangles; /* of each block: FACTOR_PARTS lines of FACTOR_BLOCK multipliers */
  int64_t *pivots;   /* row i was exchanged with pivots[i] */
  int64_t *order;    /* room for n numbers */
} factor_grid;

/* Columns at .. at + width - 1. */
typedef struct factor_block {
  int64_t at, width;
} factor_block;

/* Columns that a task changes. Line 2 k of `by` has the numbers -x of row k of a block, line 2 k + 1 has them times
 * i. */
typedef struct factor_tile {
  int64_t first, count;
  double by[FACTOR_PARTS * FACTOR_PARTS];
} factor_tile;

/* Bytes of workspace; false past 64 bits. */
bool factor_grid_bytes(const ts_factor_spec *spec, int64_t *out);
factor_grid factor_grid_of(const factor *f);
factor_block factor_block_at(const factor_grid *g, int64_t at);
void factor_begin_tile(const factor_grid *g, int64_t first, factor_tile *out);
/* Columns `first` to `end` - 1 are those of the view, from its first one on, by all threads. */
void factor_grid_load(const factor_grid *g, const factor_view *from, int64_t first, int64_t end);
/* The lower triangle, and above it some numbers that stand there in the view. */
void factor_grid_load_lower(const factor_grid *g, const factor_view *from);
/* Stores elements `first` to `end` - 1 of a column in the column of that number. */
void factor_put_part(const factor_grid *g, int64_t column, int64_t first, int64_t end, const factor_view *to);

/* Takes from column j of a block, from row j of it on, u[k] times each column k < j of it. */
void factor_take_panel(const factor_grid *g, factor_block b, int64_t j, const factor_number *u);
/* Divides numbers, whose parts are `step` elements apart, as factor_quotient does. */
void factor_divide_numbers(factor_numbers x, int64_t step, int64_t count, factor_number by);

/* Keeps the square of a block on the diagonal, as tiles are solved by it. */
void factor_keep_triangle(const factor_grid *g, factor_block b);

typedef struct factor_sides {
  bool upper, unit; /* of the matrix, which is triangular */
} factor_sides;

/* Solves the system of a block's triangle for the rows of the tile, which also become its `by`. */
void factor_solve_tile(const factor_grid *g, factor_block b, factor_sides sides, factor_tile *tile);
/* Adds to `rows` rows of the tile, from `row` on, the columns of the block times `by`. */
ts_status factor_update_tile(const factor_grid *g, factor_block b, const factor_tile *tile, int64_t row, int64_t rows);
/* Solves the system of all columns behind the matrix and stores them, by all threads. */
ts_status factor_solve_grid(const factor_grid *g, factor_sides sides, const factor_view *out);

/* One large matrix each; see factor_numbers.h. */
ts_status factor_blocked_cholesky(const factor *f);
ts_status factor_blocked_triangular(const factor *f);
ts_status factor_blocked_lu(const factor *f);

#endif
