/* Shared by the factorizations of complex matrices and the solutions of their systems: by blocks of columns, whose
 * products with other columns are sums by the product of real matrices. The product reads a number u of such a block as
 * the rows (re, im) and (-im, re). So its bits equal chains of multiply-adds, for any cut of the columns and any
 * threads.
 *
 * As in real matrices, a number of a factor or a solution is an element of the operand less one sum that begins with
 * +0. So a zero has the sign of the textbook's algorithm. Columns of the grid hold the sums, from the first block's
 * products on, until they are complete, and then the numbers. */
#ifndef TS_KERNEL_FACTOR_BLOCKED_H
#define TS_KERNEL_FACTOR_BLOCKED_H

#include "kernel/linalg/factor_numbers.h"

/* Columns of a block and of a tile, and their parts. */
#define FACTOR_BLOCK 32
#define FACTOR_PARTS (2 * FACTOR_BLOCK)

/* The columns of a matrix, followed by the columns of the right side. Lines are longer than columns, so that elements
 * of one row do not share a set of the cache. */
typedef struct factor_grid {
  const factor *f;
  int64_t n; /* elements of a column, and columns of the matrix */
  factor_rows a;
  factor_rows elements; /* of the operand: the columns of the current block */
  factor_view matrix;   /* the operand */
  double *triangles;    /* of each block: FACTOR_PARTS lines of FACTOR_BLOCK multipliers */
  int64_t *pivots;      /* row i was exchanged with pivots[i] */
  int64_t *order;       /* row i of the grid is row order[i] of the operands */
  int64_t *places;      /* room for n numbers */
} factor_grid;

/* Columns at .. at + width - 1. */
typedef struct factor_block {
  int64_t at, width;
} factor_block;

/* Columns that a task changes: of the matrix, or of the right side. Line 2 k of `by` has the numbers x of row k of a
 * block, line 2 k + 1 has them times i. */
typedef struct factor_tile {
  int64_t first, count;
  int64_t column; /* number of the first column in its operand */
  bool fresh;     /* there are no sums yet */
  double by[FACTOR_PARTS * FACTOR_PARTS];
} factor_tile;

/* Bytes of workspace; false past 64 bits. */
bool factor_grid_bytes(const ts_factor_spec *spec, int64_t *out);
/* Of the operand that `matrix` views: all rows are in place. */
factor_grid factor_grid_of(const factor *f, factor_view matrix);
factor_block factor_block_at(const factor_grid *g, int64_t at);
/* Tiles of the columns from `behind` on: first the tiles of the matrix, then the tiles of the right side. */
int64_t factor_tiles(const factor_grid *g, int64_t behind);
void factor_begin_tile(const factor_grid *g, int64_t behind, int64_t number, factor_tile *out);
/* Loads all columns of the matrix, by all threads. */
void factor_grid_load(const factor_grid *g);
/* Stores elements `first` to `end` - 1 of a column in the column of that number. */
void factor_put_part(const factor_grid *g, int64_t column, int64_t first, int64_t end, const factor_view *to);
/* Loads the elements of a block's columns, from its first row on. */
void factor_load_elements(const factor_grid *g, factor_block b);
/* Completes column j of a block from row j of it on: adds u[k] times each column k < j of it to the sums, and takes
 * these from the elements. */
void factor_take_panel(const factor_grid *g, factor_block b, int64_t j, const factor_number *u);
/* Divides numbers, whose parts are `step` elements apart, as factor_quotient does. */
void factor_divide_numbers(factor_numbers x, int64_t step, int64_t count, factor_number by);

/* Keeps the square of a block on the diagonal, as tiles are solved by it. */
void factor_keep_triangle(const factor_grid *g, factor_block b);

/* A triangular system. Number x of row i and column c of a tile is the element of `from` there less its sum; row i of
 * `from` stands in row order[i] of it, where there is an order. Solutions are stored in `to`, which may be `from`, or
 * in the grid where there is no `to`. */
typedef struct factor_sides {
  bool upper, unit; /* of the matrix */
  factor_view from;
  const int64_t *order;
  const factor_view *to;
} factor_sides;

/* Solves the system of a block's triangle for the rows of the tile, which also become its `by`. */
void factor_solve_tile(const factor_grid *g, factor_block b, const factor_sides *sides, factor_tile *tile);
/* Adds to the sums of `rows` rows of the tile, from `row` on, the columns of the block times `by`; or begins them. */
ts_status factor_update_tile(const factor_grid *g, factor_block b, factor_tile *tile, int64_t row, int64_t rows);
/* Solves the system of all columns behind the matrix, by all threads. */
ts_status factor_solve_grid(const factor_grid *g, const factor_sides *sides);

/* One complex matrix each; see factor_numbers.h. */
ts_status factor_blocked_cholesky(const factor *f);
ts_status factor_blocked_triangular(const factor *f);
ts_status factor_blocked_lu(const factor *f);

#endif
