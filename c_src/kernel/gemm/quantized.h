/* The loops over quantised weights (tensor/quantized.h), for each class of machines: a few rows times a weight, and
 * weights in f32 for products by tiles. Pure functions. */
#ifndef TS_KERNEL_QUANTIZED_H
#define TS_KERNEL_QUANTIZED_H

#include "tensor/contract_order.h"
#include "tensor/quantized.h"

/* A weight, and the type that its elements are rounded to: f32, f16 or bf16. */
typedef struct ts_quantized {
  const uint32_t *words;
  const char *scales, *others; /* others: zeros or minimums; NULL without them */
  ts_dtype scale_type, type;
  int bits;
  ts_quantized_form form;
  int64_t group, k, cols;
} ts_quantized;

/* Rows [k, k + count) of columns [col, col + width) of a panel. `width` is a multiple of a vector's lanes. */
typedef struct ts_quantized_part {
  int64_t panel, col, width, k, count;
} ts_quantized_part;

/* Rows of f32 that a weight is multiplied with. */
enum { TS_QUANTIZED_MAX_ROWS = 16 };
typedef struct ts_quantized_rows {
  const ts_quantized *weight;
  const float *x; /* groups of rows (ts_quantized_rows_side_by_side); in a group, the rows' elements for each k */
  int64_t rows;   /* at most TS_QUANTIZED_MAX_ROWS */
  ts_contract_order order;
  bool is_plain; /* each element of x is 0, or from 2^-60 to 2^60 */
} ts_quantized_rows;

/* The number of rows of the next group: the largest power of two that `left` allows. */
static inline int64_t ts_quantized_rows_side_by_side(int64_t left) {
  return left >= 16 ? 16 : left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
}

/* Elements of f32 of the workspace of ts_quantized_code.panel. */
int64_t ts_quantized_work(int64_t rows, int64_t k);

typedef struct ts_quantized_code {
  /* The elements of a part, in f32; its rows are `stride` elements apart. */
  void (*unpack)(const ts_quantized *weight, ts_quantized_part part, float *out, int64_t stride);
  /* The same of bf16 in pairs: step 2p of k in the low half of an element, step 2p + 1, or 0 after the last one, in its
   * high half. Returns whether any element is tiny (kernel/gemm/bf16/gemm_bf16.h). */
  bool (*pairs)(const ts_quantized *weight, ts_quantized_part part, uint32_t *out, int64_t stride);
  /* The sums of all rows and the columns of a panel, to work[row * TS_QUANTIZED_COLS + column], before they are
   * rounded. */
  void (*panel)(const ts_quantized_rows *rows, int64_t panel, float *work);
} ts_quantized_code;

const ts_quantized_code *ts_quantized_host(void);

extern const ts_quantized_code ts_quantized_base;
#if defined(__x86_64__)
extern const ts_quantized_code ts_quantized_avx2, ts_quantized_avx512, ts_quantized_bf16;
#endif

#endif
