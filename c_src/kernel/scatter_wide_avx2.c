/* Sums of wide rows, by vectors of 32 bytes: with 64 more of them cross lines of the cache, which costs more than it
 * saves. A row that is added to again soon is read as it was written, so no load waits until a store has reached the
 * cache. */
#include "kernel/inline.h"
#include "kernel/scatter_rows.h"

#include <string.h>

#if defined(__x86_64__)
#include "kernel/isa_avx2.h"

/* Adds the vectors of TYPE that fit from column `c` on. */
#define ADD_VECTORS(TYPE)                                                                                \
  for (; c + (int64_t)(sizeof(TYPE) / sizeof *x) <= columns; c += (int64_t)(sizeof(TYPE) / sizeof *x)) { \
    TYPE a, b;                                                                                           \
    memcpy(&a, x + c, sizeof a);                                                                         \
    memcpy(&b, y + c, sizeof b);                                                                         \
    a += b;                                                                                              \
    memcpy(x + c, &a, sizeof a);                                                                         \
  }

#define DEFINE_ADD(NAME, T)                                                                               \
  typedef T NAME##_vector __attribute__((vector_size(VECTOR_BYTES)));                                     \
  typedef T NAME##_half __attribute__((vector_size(VECTOR_BYTES / 2)));                                   \
  INLINE void row_##NAME(T *x, const T *y, int64_t columns) {                                             \
    int64_t c = 0;                                                                                        \
    ADD_VECTORS(NAME##_vector)                                                                            \
    ADD_VECTORS(NAME##_half)                                                                              \
    for (int64_t i = 1; i < VECTOR_BYTES / 2 / (int64_t)sizeof(T) && c < columns; i++, c++) x[c] += y[c]; \
  }                                                                                                       \
  static void NAME(char *to, const char *from, const scatter_rows *rows) {                                \
    T *x = (T *)(void *)to;                                                                               \
    const T *y = (const T *)(const void *)from;                                                           \
    const int64_t columns = rows->columns, bytes = columns * (int64_t)sizeof(T);                          \
    for (int64_t i = 0; i < rows->count; i++) {                                                           \
      if (!rows->is_near) ts_scatter_prefetch(x + rows->at[i + TS_SCATTER_AHEAD], bytes);                 \
      row_##NAME(x + rows->at[i], y + rows->row[i] * rows->stride, columns);                              \
    }                                                                                                     \
  }
DEFINE_ADD(add_32, uint32_t)
DEFINE_ADD(add_64, uint64_t)
DEFINE_ADD(add_f32, float)
DEFINE_ADD(add_f64, double)

const ts_scatter_wide ISA(ts_scatter_wide) = {add_32, add_64, add_f32, add_f64};

#include "kernel/isa_end.h"
#endif
