/* A vector times a matrix of a few columns, or rows times a vector. Of few rows, and of columns, a lane of a vector is
 * a chain of tensor/contract_order.h, so that as many chains are computed at once as there are lanes; else it is a row.
 * Internal to gemm; pure functions of their arguments. */
#ifndef TS_KERNEL_THIN_H
#define TS_KERNEL_THIN_H

#include "jit/session/target.h"
#include "tensor/contract_order.h"

#include <stdbool.h>
#include <stdint.h>

enum { THIN_LINE_BYTES = 64, THIN_COLUMNS = THIN_LINE_BYTES / 4 };

/* x[row, term, column] and v[term], with at least one of each. The columns of a term, at most THIN_COLUMNS, are side by
 * side, and terms behind one another; x may be narrower than v, which has the type that is computed. */
typedef struct thin_product {
  const char *x;
  ts_dtype x_type;
  int64_t x_size; /* bytes of an element */
  int64_t row;    /* bytes from a row of x to the next */
  const char *v;
  int64_t rows, columns, terms;
  /* of thin_memory bytes; NULL for as many rows of one column as vectors have lanes, not narrower than v. The 16 bytes
   * before the end of their terms, and of v, can be read. */
  char *memory;
  char *out;   /* the sums of each row and column */
  bool crowds; /* rows of one column in memory that crowd sets (thin_crowds_sets), of at least two chains */
} thin_product;

/* A chain of x, and a group of chains that is converted: as many as a vector has elements, of at most 64 bytes. */
static inline int64_t thin_memory(int64_t columns, int64_t size, bool is_narrow) {
  return TS_CONTRACT_CHAIN * columns * (size + (is_narrow ? 64 : 0));
}

/* True for rows of which a few are better read together, with chains in the lanes, than many: there are enough chains,
 * and few rows, or lines of too many rows would share a set of the first cache, whose ways are pages of the smallest
 * size. */
static inline bool thin_shares_sets(int64_t rows, int64_t row, int64_t terms, int64_t lanes) {
  enum { SETS = 64, ROWS = 24, LINES = 6 };
  uint8_t lines[SETS] = {0};
  bool shares = rows < 2 * lanes && terms >= lanes * TS_CONTRACT_CHAIN;
  for (int64_t r = 0; r < ROWS && r < rows; r++)
    shares |= ++lines[(uint64_t)(r * row) / THIN_LINE_BYTES % SETS] > LINES;
  return shares && terms >= 2 * TS_CONTRACT_CHAIN;
}

/* True if rows that are read together, a line of each and then the next lines, have too many of these in a few sets of
 * the first cache. */
static inline bool thin_crowds_sets(int64_t rows, int64_t row) {
  enum { SETS = 64, ROWS = 24, LINES = 4, MOST = 8 };
  uint8_t lines[SETS] = {0};
  bool crowds = false;
  for (int64_t r = 0; r < ROWS && r < rows; r++)
    for (uint64_t i = 0; i < LINES; i++) crowds |= ++lines[((uint64_t)(r * row) / THIN_LINE_BYTES + i) % SETS] > MOST;
  return crowds;
}

/* Rows of complex numbers times a vector of them: at least as many rows as a vector has parts, of at least 16 bytes of
 * neighbouring numbers, or a chain for each part of a vector. Numbers in a chain, and numbers of the vector that are
 * prepared at once: those of a chain for each part of a vector, at least. */
enum { THIN_CHAIN = TS_CONTRACT_CHAIN / 2, THIN_NUMBERS = 8 * THIN_CHAIN };
typedef struct thin_complex {
  const char *x;
  int64_t row; /* bytes from a row of x to the next */
  const char *v;
  int64_t v_step; /* bytes from a number of v to the next */
  bool x_is_left; /* of the products of two numbers; else v is */
  int64_t rows, terms;
  char *factors; /* memory for four parts of each of THIN_NUMBERS numbers */
  char *sums;    /* memory for a number of each row */
  char *out;     /* a number of each row */
} thin_complex;

typedef struct thin_code {
  void (*f32)(const thin_product *p);
  void (*f64)(const thin_product *p);
  void (*c64)(const thin_complex *p);
  void (*c128)(const thin_complex *p);
  int64_t vector_bytes;
} thin_code;

extern const thin_code ts_thin_base;
#if defined(__x86_64__)
extern const thin_code ts_thin_avx2;
#endif

/* Wider vectors than AVX2's gain nothing: what takes the time are loads of 16 bytes and shuffles, of which wider ones
 * take longer. */
static inline const thin_code *thin_code_of_host(void) {
#if defined(__x86_64__)
  if (ts_target_host()->isa != TS_ISA_SSE4) return &ts_thin_avx2;
#endif
  return &ts_thin_base;
}

#endif
