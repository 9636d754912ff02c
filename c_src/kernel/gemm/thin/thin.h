/* A vector times a matrix of a few columns, or a few rows times a vector, of many terms: a lane of a vector is a chain
 * of tensor/contract_order.h, so that as many chains are computed at once as there are lanes. Internal to gemm; pure
 * functions of their arguments. */
#ifndef TS_KERNEL_THIN_H
#define TS_KERNEL_THIN_H

#include "jit/session/target.h"
#include "tensor/contract_order.h"

#include <stdbool.h>

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
  char *memory; /* of thin_memory bytes */
  char *out;    /* the sums of each row and column */
} thin_product;

/* A chain of x, and a group of chains that is converted: as many as a vector has elements, of at most 64 bytes. */
static inline int64_t thin_memory(int64_t columns, int64_t size, bool is_narrow) {
  return TS_CONTRACT_CHAIN * columns * (size + (is_narrow ? 64 : 0));
}

/* True for rows of whole groups of chains, `row` bytes apart, where that is whole pages: kernels that read a line of
 * many rows at once have them pushed out of the first cache, except with AVX-512. The code here reads two rows, but
 * fetches nothing early from memory, so it is for what other caches hold. Blocks of such rows (tensor/contract_order.h)
 * are such rows, too. */
static inline bool thin_gains_on_pages(int64_t rows, int64_t row, int64_t terms, int64_t lanes, int64_t size) {
  enum { PAGE = 4096, CACHES = 8, WIDE = 64 };
  return lanes * size < WIDE && row % PAGE == 0 && terms % (TS_CONTRACT_CHAIN * lanes) == 0 &&
         terms * rows <= CACHES * ts_target_host()->l2_bytes / size;
}

typedef struct thin_code {
  void (*f32)(const thin_product *p);
  void (*f64)(const thin_product *p);
} thin_code;

extern const thin_code ts_thin_base;
#if defined(__x86_64__)
extern const thin_code ts_thin_avx2, ts_thin_avx512;
#endif

#endif
