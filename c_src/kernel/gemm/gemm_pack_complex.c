/* Packing of complex operands: the product of complex numbers is a product of real numbers. A number of lhs is the row
 * (re, im), and a number of rhs is the block ((re, im), (-im, re)). So k and the columns are twice as many, and the
 * result has complex numbers in their place in memory. Strides count parts in units of whole numbers: part i of two
 * neighbours lies at i / 2 * 2 * stride. */
#include "jit/session/target.h"
#include "kernel/gemm/complex/complex_vector.h"
#include "kernel/gemm/gemm_internal.h"

#include <string.h>

/* Units past the last are zeros. */
#define DEFINE_LEFT(BITS)                                                                                 \
  static void left##BITS(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panel) { \
    const uint##BITS##_t *from = (const uint##BITS##_t *)(const void *)source;                            \
    uint##BITS##_t *re = (uint##BITS##_t *)(void *)panel;                                                 \
    for (int64_t i = 0; i < k; i += 2, from += 2 * p->k_stride, re += 2 * p->width) {                     \
      uint##BITS##_t *im = re + p->width;                                                                 \
      for (int64_t u = 0; u < units; u++) re[u] = from[u * p->unit_stride];                               \
      for (int64_t u = 0; u < units; u++) im[u] = from[u * p->unit_stride + 1];                           \
      for (int64_t u = units; u < p->width; u++) re[u] = im[u] = 0;                                       \
    }                                                                                                     \
  }
DEFINE_LEFT(32)
DEFINE_LEFT(64)

/* ---- rhs with numbers beside each other ---- */

typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Some numbers as the two rows of their blocks. */
static void turn_pairs(const char *from, int64_t bytes, char *first, char *second) {
  const pair sign = {UINT64_C(1) << 63, 0};
  for (int64_t at = 0; at < bytes; at += 16) {
    const pair x = *(const pair *)(const void *)(from + at);
    *(pair *)(void *)(first + at) = x;
    *(pair *)(void *)(second + at) = __builtin_shufflevector(x, x, 1, 0) ^ sign;
  }
}

static void zero_columns(const gemm_pack *p, int64_t units, int64_t size, char *first) {
  const int64_t width = p->width * size;
  memset(first + units * size, 0, (size_t)(width - units * size));
  memset(first + width + units * size, 0, (size_t)(width - units * size));
}

static void right32(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panel) {
  const int64_t width = p->width * 4;
  for (int64_t i = 0; i < k; i += 2, panel += 2 * width) {
    const char *from = source + i * p->k_stride * 4;
    for (int64_t u = 0; u < units; u += 2) {
      uint64_t number;
      memcpy(&number, from + u * p->unit_stride * 4, 8);
      const uint64_t turned = (number << 32 | number >> 32) ^ UINT64_C(1) << 31;
      memcpy(panel + u * 4, &number, 8);
      memcpy(panel + width + u * 4, &turned, 8);
    }
    zero_columns(p, units, 4, panel);
  }
}

static void right64(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panel) {
  const int64_t width = p->width * 8;
  for (int64_t i = 0; i < k; i += 2, panel += 2 * width) {
    const char *from = source + i * p->k_stride * 8;
    for (int64_t u = 0; u < units; u += 2)
      turn_pairs(from + u * p->unit_stride * 8, 16, panel + u * 8, panel + width + u * 8);
    zero_columns(p, units, 8, panel);
  }
}

void ts_gemm_pack_complex(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panels,
                          int64_t panel_bytes) {
  const int64_t size = (int64_t)ts_dtype_size(p->dtype), count = gemm_ceil_div(units, p->step);
  int64_t panel = 0;
  if (p->numbers == GEMM_RIGHT && p->unit_stride == 1 && p->step * size % 16 == 0) {
    panel = units / p->step; /* row by row across all whole panels, so that memory is read in order */
    const complex_vector_code *code = TS_TARGET_PICK(ts_complex_vector);
    const complex_rows rows = {source, 2 * p->k_stride, k / 2, panel, p->width, panels, panel_bytes};
    (size == 4 ? code->pack_f32 : code->pack_f64)(&rows);
  }
  for (; panel < count; panel++) {
    const char *from = source + panel * p->step * p->unit_stride * size;
    const int64_t here = gemm_min(p->step, units - panel * p->step);
    char *to = panels + panel * panel_bytes;
    if (p->numbers == GEMM_LEFT)
      (size == 4 ? left32 : left64)(p, from, here, k, to);
    else
      (size == 4 ? right32 : right64)(p, from, here, k, to);
  }
}
