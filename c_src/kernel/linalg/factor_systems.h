/* Shared by the factorizations and solutions by triangles: one source for real matrices and for complex ones, whose
 * numbers are pairs of parts. A block has TS_LINALG_BLOCK parts of a column. Every sum is one chain of multiply-adds
 * that begins with +0, of real and of complex numbers, and a number of a result is an element less one sum. */
#ifndef TS_KERNEL_FACTOR_SYSTEMS_H
#define TS_KERNEL_FACTOR_SYSTEMS_H

#include "kernel/linalg/factor_internal.h"

/* The parts of a number, its bytes, and the rows, or columns, of a block. */
static inline int factor_parts_of(const ts_factor_spec *s) { return s->type == TS_C128 ? 2 : 1; }
static inline int factor_size_of(const ts_factor_spec *s) { return (int)ts_dtype_size(s->type); }
static inline int64_t factor_block_of(const ts_factor_spec *s) { return TS_LINALG_BLOCK / factor_parts_of(s); }

/* Bytes of workspace for one matrix, or of triangular_solve for each worker. */
int64_t factor_cholesky_bytes(const ts_factor_spec *spec);
int64_t factor_triangular_bytes(const ts_factor_spec *spec);
int64_t factor_lu_bytes(const ts_factor_spec *spec, const ts_gemm *products);

ts_status factor_cholesky(const factor *f);
/* The workspaces of the workers of `parallel` are neighbours; all are aligned to 64 bytes. */
ts_status factor_triangular(const factor *f);
/* lu, solve and determinant. */
ts_status factor_lu(const factor *f);

/* The matrix of a triangular system as a lower one, and the columns of its right side or of its solution. */
ts_linalg_view factor_triangle_view(const ts_factor_spec *s, const void *matrix);
ts_linalg_view factor_sides_view(const ts_factor_spec *s, const void *sides);

/* A product as one chain; strides are in numbers. */
ts_status factor_multiply_blocks(const factor *f, ts_gemm_shape shape, ts_gemm_call call);

/* Systems a * x = b of a lower triangular a. x may be b. */
typedef struct factor_system {
  ts_linalg_view a, b, x;
  int64_t n, cols;
  bool unit;
} factor_system;

/* Numbers of room for it, with a right side as the spec's; more if numbers of a row of b or x are no neighbours. */
int64_t factor_solve_numbers(const ts_factor_spec *spec, bool transposes);
ts_status factor_solve(const factor *f, const factor_system *system, char *room);

/* LU factors of one matrix with partial pivoting, by panels of columns. Every number of the factors, and of the right
 * side's solution by L, is one chain of multiply-adds: the bits depend neither on threads nor on strips. */
typedef struct lu_factors {
  const factor *f; /* the matrix and the right side are dense */
  int64_t n;
  char *factors;   /* out: n rows, lu_pitch(n) elements apart: U, and L below it, whose rows are in the order they had
                      when their panel was factored. Unless the op is lu, only the first rows of a panel's L */
  int64_t *pivots; /* out: row i was exchanged with pivots[i] */
  int64_t *order;  /* out: row i was row order[i] of the matrix */
  char *room;      /* lu_room_bytes, aligned to 64 bytes */
} lu_factors;

/* Numbers from a row to the next: no power of two, so that a strip's rows fit into the first cache. */
static inline int64_t lu_pitch(int64_t n) { return ((n + 15) / 16 | 1) * 16; }
/* Two panels: their columns and sums, first rows, and rows below. */
int64_t lu_room_bytes(const ts_factor_spec *spec, const ts_gemm *products);

/* The first result of solve gets L^-1 P b, for the right side b. */
ts_status lu_factor(const lu_factors *f);

#endif
