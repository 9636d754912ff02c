/* What indexed_add and indexed_put do with rows, in their order. */
#include "jit/session/target.h"
#include "kernel/inline.h"
#include "kernel/scatter_rows.h"

#include <string.h>

/* Adds a row: most vectors two at once. The last columns are so few that no compiler makes vectors of them. */
#define DEFINE_ADD_ROW(NAME, T)                                           \
  typedef T NAME##_vector __attribute__((vector_size(16)));               \
  INLINE void row_##NAME(T *x, const T *y, int64_t columns) {             \
    const int64_t lanes = 16 / (int64_t)sizeof(T);                        \
    NAME##_vector low, high, a, b;                                        \
    int64_t c = 0;                                                        \
    for (; c + 2 * lanes <= columns; c += 2 * lanes) {                    \
      memcpy(&low, x + c, sizeof low);                                    \
      memcpy(&high, x + c + lanes, sizeof high);                          \
      memcpy(&a, y + c, sizeof a);                                        \
      memcpy(&b, y + c + lanes, sizeof b);                                \
      low += a;                                                           \
      high += b;                                                          \
      memcpy(x + c, &low, sizeof low);                                    \
      memcpy(x + c + lanes, &high, sizeof high);                          \
    }                                                                     \
    if (c + lanes <= columns) {                                           \
      memcpy(&low, x + c, sizeof low);                                    \
      memcpy(&a, y + c, sizeof a);                                        \
      low += a;                                                           \
      memcpy(x + c, &low, sizeof low);                                    \
      c += lanes;                                                         \
    }                                                                     \
    for (int64_t i = 1; i < lanes && c < columns; i++, c++) x[c] += y[c]; \
  }
/* Applies CHANGE to each element of target and updates. */
#define DEFINE_CHANGE_ROW(NAME, T, CHANGE)                           \
  INLINE void row_##NAME(T *x, const T *y, int64_t columns) {        \
    for (int64_t c = 0; c < columns; c++) x[c] = CHANGE(x[c], y[c]); \
  }

/* Few columns are a constant: a loop over them costs more than their elements. */
#define CHANGE_ROWS(NAME, T, COLUMNS)                                                                          \
  for (int64_t i = 0; i < count; i++) {                                                                        \
    if ((COLUMNS) > 1)                                                                                         \
      ts_scatter_prefetch((T *)(void *)to + rows->at[i + TS_SCATTER_AHEAD], (COLUMNS) * (int64_t)sizeof(T));   \
    row_##NAME((T *)(void *)to + rows->at[i], (const T *)(const void *)from + rows->row[i] * stride, COLUMNS); \
  }
#define DEFINE_UPDATE(NAME, T)                                             \
  static void NAME(char *to, const char *from, const scatter_rows *rows) { \
    const int64_t count = rows->count, stride = rows->stride;              \
    switch (rows->columns) {                                               \
    case 1: CHANGE_ROWS(NAME, T, 1) break;                                 \
    case 2: CHANGE_ROWS(NAME, T, 2) break;                                 \
    case 3: CHANGE_ROWS(NAME, T, 3) break;                                 \
    case 4: CHANGE_ROWS(NAME, T, 4) break;                                 \
    case 8: CHANGE_ROWS(NAME, T, 8) break;                                 \
    default: CHANGE_ROWS(NAME, T, rows->columns)                           \
    }                                                                      \
  }
#define DEFINE_ADD(NAME, T) DEFINE_ADD_ROW(NAME, T) DEFINE_UPDATE(NAME, T)
#define DEFINE_CHANGE(NAME, T, CHANGE) DEFINE_CHANGE_ROW(NAME, T, CHANGE) DEFINE_UPDATE(NAME, T)
#define PLUS_8(x, y) (uint8_t)((x) + (y))
#define PLUS_16(x, y) (uint16_t)((x) + (y))
#define PLUS_E5M2(x, y) ts_f64_to_e5m2((double)(ts_e5m2_to_f32(x) + ts_e5m2_to_f32(y)))
#define PLUS_E4M3FN(x, y) ts_f64_to_e4m3fn((double)(ts_e4m3fn_to_f32(x) + ts_e4m3fn_to_f32(y)))
#define SECOND(x, y) (y)
DEFINE_CHANGE(add_8, uint8_t, PLUS_8)
DEFINE_CHANGE(add_16, uint16_t, PLUS_16)
DEFINE_ADD(add_32, uint32_t)
DEFINE_ADD(add_64, uint64_t)
DEFINE_ADD(add_f32, float)
DEFINE_ADD(add_f64, double)
DEFINE_CHANGE(add_e5m2, uint8_t, PLUS_E5M2)
DEFINE_CHANGE(add_e4m3fn, uint8_t, PLUS_E4M3FN)

typedef struct two_words {
  uint64_t word[2];
} two_words;
DEFINE_CHANGE(put_8, uint8_t, SECOND)
DEFINE_CHANGE(put_16, uint16_t, SECOND)
DEFINE_CHANGE(put_32, uint32_t, SECOND)
DEFINE_CHANGE(put_64, uint64_t, SECOND)
DEFINE_CHANGE(put_128, two_words, SECOND)

/* Rows in a run change the same row of the target, as those of a segment do. Its elements stay in registers, so no row
 * waits until the memory of the one before is written. Two vectors at once divide the columns of a thread. */
#define RUN_VECTOR 16 /* bytes */
#define DEFINE_RUNS(NAME, T)                                                               \
  typedef T NAME##_vector __attribute__((vector_size(RUN_VECTOR)));                        \
  static void NAME(char *to, const char *from, const scatter_rows *rows) {                 \
    const int64_t lanes = RUN_VECTOR / (int64_t)sizeof(T);                                 \
    const T *updates = (const T *)(const void *)from;                                      \
    for (int64_t i = 0, end; i < rows->count; i = end) {                                   \
      T *x = (T *)(void *)to + rows->at[i];                                                \
      int64_t c = 0;                                                                       \
      for (end = i + 1; end < rows->count && rows->at[end] == rows->at[i];) end++;         \
      for (; c + 2 * lanes <= rows->columns; c += 2 * lanes) {                             \
        NAME##_vector low, high, y, z;                                                     \
        memcpy(&low, x + c, sizeof low);                                                   \
        memcpy(&high, x + c + lanes, sizeof high);                                         \
        for (int64_t r = i; r < end; r++) {                                                \
          memcpy(&y, updates + rows->row[r] * rows->stride + c, sizeof y);                 \
          memcpy(&z, updates + rows->row[r] * rows->stride + c + lanes, sizeof z);         \
          low += y;                                                                        \
          high += z;                                                                       \
        }                                                                                  \
        memcpy(x + c, &low, sizeof low);                                                   \
        memcpy(x + c + lanes, &high, sizeof high);                                         \
      }                                                                                    \
      for (; c < rows->columns; c++) {                                                     \
        T sum = x[c];                                                                      \
        for (int64_t r = i; r < end; r++) sum += updates[rows->row[r] * rows->stride + c]; \
        x[c] = sum;                                                                        \
      }                                                                                    \
    }                                                                                      \
  }
DEFINE_RUNS(add_runs_32, uint32_t)
DEFINE_RUNS(add_runs_64, uint64_t)
DEFINE_RUNS(add_runs_f32, float)
DEFINE_RUNS(add_runs_f64, double)

scatter_update_fn ts_scatter_update_runs(ts_opcode op, ts_dtype type) {
  static const scatter_update_fn adds[TS_DTYPE_COUNT] = {
      [TS_S32] = add_runs_32, [TS_S64] = add_runs_64,  [TS_U32] = add_runs_32,
      [TS_U64] = add_runs_64, [TS_F32] = add_runs_f32, [TS_F64] = add_runs_f64};
  return op == TS_OP_INDEXED_ADD ? adds[type] : NULL;
}

/* Rows of so many bytes have so many vectors that the next row, which may change the same one of the target, does not
 * wait for their sums: runs need no code of their own, whose walks along columns read part of a line each. */
#define WIDE_BYTES 512

#if defined(__x86_64__)
scatter_update_fn ts_scatter_update_wide(ts_opcode op, ts_dtype type, int64_t bytes) {
  const ts_isa isa = ts_target_host()->isa;
  const ts_scatter_wide *wide = &ts_scatter_wide_avx2;
  if (op != TS_OP_INDEXED_ADD || bytes < WIDE_BYTES || (isa != TS_ISA_AVX2 && isa != TS_ISA_AVX512)) return NULL;
  const scatter_update_fn adds[TS_DTYPE_COUNT] = {
      [TS_S32] = wide->add_32, [TS_U32] = wide->add_32,  [TS_S64] = wide->add_64,
      [TS_U64] = wide->add_64, [TS_F32] = wide->add_f32, [TS_F64] = wide->add_f64};
  return adds[type];
}
#else
scatter_update_fn ts_scatter_update_wide(ts_opcode op, ts_dtype type, int64_t bytes) {
  (void)op, (void)type, (void)bytes;
  return NULL;
}
#endif

static const ts_scatter_halves *halves(void) {
#if defined(__x86_64__)
  const ts_isa isa = ts_target_host()->isa;
  if (isa == TS_ISA_AVX2 || isa == TS_ISA_AVX512) return &ts_scatter_halves_avx2;
#endif
  return &ts_scatter_halves_base;
}

scatter_update_fn ts_scatter_update(ts_opcode op, ts_dtype type) {
  static const scatter_update_fn adds[TS_DTYPE_COUNT] = {
      [TS_S8] = add_8,    [TS_S16] = add_16,  [TS_S32] = add_32,  [TS_S64] = add_64,
      [TS_U8] = add_8,    [TS_U16] = add_16,  [TS_U32] = add_32,  [TS_U64] = add_64,
      [TS_F32] = add_f32, [TS_F64] = add_f64, [TS_F8] = add_e5m2, [TS_F8E4M3FN] = add_e4m3fn};
  if (op == TS_OP_INDEXED_ADD && type == TS_F16) return halves()->add_f16;
  if (op == TS_OP_INDEXED_ADD && type == TS_BF16) return halves()->add_bf16;
  static const scatter_update_fn puts[] = {put_8, put_16, put_32, put_64, put_128};
  if (op == TS_OP_INDEXED_ADD) return adds[type];
  switch (ts_dtype_size(type)) {
  case 1: return puts[0];
  case 2: return puts[1];
  case 4: return puts[2];
  case 8: return puts[3];
  case 16: return puts[4];
  default: return NULL;
  }
}
