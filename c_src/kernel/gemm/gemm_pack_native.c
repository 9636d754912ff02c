/* Packs operands whose elements keep their value. */
#include "kernel/every_second.h"
#include "kernel/gemm/gemm_internal.h"

#include <string.h>

/* ---- elements of the types that are computed in 32 bits ---- */

static uint32_t widen_s8(int8_t v) { return (uint32_t)v; }
static uint32_t widen_u8(uint8_t v) { return v; }
static uint32_t widen_s16(int16_t v) { return (uint32_t)v; }
static uint32_t widen_u16(uint16_t v) { return v; }
static uint32_t widen_bf16(uint16_t v) { return (uint32_t)v << 16; }

/* A multiplication corrects the exponent's bias and normalizes subnormals. */
static uint32_t widen_f16(uint16_t v) {
  uint32_t magnitude = (uint32_t)(v & 0x7FFF) << 13, special = magnitude >= 0x0F800000u ? 0x7F800000u : 0;
  return ts_f32_bits(ts_f32_from_bits(magnitude) * 0x1p112f) | special | (uint32_t)(v & 0x8000) << 16;
}

/* ---- one panel, element by element ---- */

#define DEFINE_PACK(name, source_type, panel_type, convert)                                                \
  static void pack_##name(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panel) { \
    const source_type *from = (const source_type *)(const void *)source;                                   \
    panel_type *to = (panel_type *)(void *)panel;                                                          \
    for (int64_t i = 0; i < k; i++)                                                                        \
      for (int64_t u = 0; u < p->width; u++)                                                               \
        to[i * p->width + u] = u < units ? convert(from[i * p->k_stride + u * p->unit_stride]) : 0;        \
  }

DEFINE_PACK(4, uint32_t, uint32_t, )
DEFINE_PACK(8, uint64_t, uint64_t, )
DEFINE_PACK(s8, int8_t, uint32_t, widen_s8)
DEFINE_PACK(u8, uint8_t, uint32_t, widen_u8)
DEFINE_PACK(s16, int16_t, uint32_t, widen_s16)
DEFINE_PACK(u16, uint16_t, uint32_t, widen_u16)

#define DEFINE_PACK_PAIRS(name, source_type)                                                                \
  static void pairs_##name(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panel) { \
    const source_type *from = (const source_type *)(const void *)source;                                    \
    uint32_t *to = (uint32_t *)(void *)panel;                                                               \
    for (int64_t i = 0; i < k; i += 2, to += p->width)                                                      \
      for (int64_t u = 0; u < units; u++) {                                                                 \
        const source_type *at = from + i * p->k_stride + u * p->unit_stride;                                \
        uint32_t high = i + 1 < k ? (uint16_t)(int16_t)at[p->k_stride] : 0;                                 \
        to[u] = (uint16_t)(int16_t)at[0] | high << 16;                                                      \
      }                                                                                                     \
  }

DEFINE_PACK_PAIRS(s8, int8_t)
DEFINE_PACK_PAIRS(u8, uint8_t)
DEFINE_PACK_PAIRS(s16, int16_t)

typedef void (*pack_fn)(const gemm_pack *p, const char *source, int64_t units, int64_t k, char *panel);

static pack_fn pack_to_pairs(ts_dtype type) { return type == TS_S8 ? pairs_s8 : type == TS_U8 ? pairs_u8 : pairs_s16; }

static pack_fn pack_to_elements(ts_dtype type) {
  switch (type) {
  case TS_S8: return pack_s8;
  case TS_U8: return pack_u8;
  case TS_S16: return pack_s16;
  case TS_U16: return pack_u16;
  case TS_S64:
  case TS_U64:
  case TS_F64: return pack_8;
  default: return pack_4; /* of 32 bits: ts_gemm_has_types */
  }
}

static pack_fn find_pack(const gemm_pack *p) {
  return p->compute == TS_GEMM_PAIRS ? pack_to_pairs(p->dtype) : pack_to_elements(p->dtype);
}

/* ---- units contiguous: rows are copied ---- */

/* Prefetch distance in rows: the next row may be far from the end of the current one. */
#define ROWS_AHEAD 8

/* Copies row by row across all whole panels, so that memory is read in order. */
static void copy_rows(const gemm_pack *p, const char *source, int64_t panels, int64_t k, char *to,
                      int64_t panel_bytes) {
  int64_t size = (int64_t)ts_dtype_size(p->dtype), step = p->step * size, width = p->width * size;
  for (int64_t i = 0; i < k; i++) {
    const char *from = source + i * p->k_stride * size;
    char *row = to + i * width;
    for (int64_t at = 0; i + ROWS_AHEAD < k && at < panels * step; at += 64)
      __builtin_prefetch(from + ROWS_AHEAD * p->k_stride * size + at);
    /* constant sizes compile to a few moves */
    if (step == 128) {
      for (int64_t n = 0; n < panels; n++) memcpy(row + n * panel_bytes, from + n * 128, 128);
    } else if (step == 64) {
      for (int64_t n = 0; n < panels; n++) memcpy(row + n * panel_bytes, from + n * 64, 64);
    } else if (step == 56) {
      for (int64_t n = 0; n < panels; n++) memcpy(row + n * panel_bytes, from + n * 56, 56);
    } else {
      for (int64_t n = 0; n < panels; n++) memcpy(row + n * panel_bytes, from + n * step, (size_t)step);
    }
  }
}

/* Copies the last, partial panel. Most rows are copied at full width, including the following bytes, which belong to
 * the operand as long as they are before the end of its last row. */
static void copy_partial(const gemm_pack *p, const char *source, int64_t units, int64_t k, int size, char *to) {
  int64_t width = (int64_t)p->width * size, used = units * size, stride = p->k_stride * size;
  int64_t readable = (k - 1) * stride + used - width, full = readable >= 0 && stride > 0 ? readable / stride + 1 : 0;
  int64_t i = 0;
  if (width == 128) {
    for (; i < full; i++) memcpy(to + i * 128, source + i * stride, 128);
  } else if (width == 64) {
    for (; i < full; i++) memcpy(to + i * 64, source + i * stride, 64);
  }
  for (; i < k; i++) {
    memcpy(to + i * width, source + i * stride, (size_t)used);
    memset(to + i * width + used, 0, (size_t)(width - used));
  }
}

/* ---- k contiguous: blocks are transposed in registers ---- */

typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

/* The callers fill as many rows as a block reads: NOLINTBEGIN(clang-analyzer-core.UndefinedBinaryOperatorResult) */
static void transpose_4x4(const char *const *rows, int64_t at, char *to, int64_t width) {
  quad a = *(const quad *)(const void *)(rows[0] + at), b = *(const quad *)(const void *)(rows[1] + at);
  quad c = *(const quad *)(const void *)(rows[2] + at), d = *(const quad *)(const void *)(rows[3] + at);
  quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  quad ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(quad *)(void *)to = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(quad *)(void *)(to + width) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *(quad *)(void *)(to + 2 * width) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
  *(quad *)(void *)(to + 3 * width) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

static void transpose_2x2(const char *const *rows, int64_t at, char *to, int64_t width) {
  pair a = *(const pair *)(const void *)(rows[0] + at), b = *(const pair *)(const void *)(rows[1] + at);
  *(pair *)(void *)to = __builtin_shufflevector(a, b, 0, 2);
  *(pair *)(void *)(to + width) = __builtin_shufflevector(a, b, 1, 3);
}
/* NOLINTEND(clang-analyzer-core.UndefinedBinaryOperatorResult) */

#ifdef __x86_64__

typedef uint32_t line_of_16 __attribute__((vector_size(64), aligned(4), may_alias));

/* From each quarter of two vectors: elements 0 and 1, or 2 and 3, alternating between the vectors; likewise for pairs
 * of elements. */
#define LOW_ELEMENTS(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define HIGH_ELEMENTS(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define LOW_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29)
#define HIGH_PAIRS(a, b) __builtin_shufflevector(a, b, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31)
/* Quarters 0 and 2, or 1 and 3, of both. */
#define EVEN_QUARTERS(a, b) __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define ODD_QUARTERS(a, b) __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

#define WIDE __attribute__((target("avx512f"), always_inline)) static inline

WIDE line_of_16 load_line(const char *row, int64_t at) { return *(const line_of_16 *)(const void *)(row + at); }
WIDE void store_line(line_of_16 line, char *to) { *(line_of_16 *)(void *)to = line; }

/* Four rows: quarter q of column[c] is column 4 q + c of them. */
WIDE void transpose_quarters(const char *const *rows, int64_t at, line_of_16 column[4]) {
  line_of_16 a = load_line(rows[0], at), b = load_line(rows[1], at);
  line_of_16 c = load_line(rows[2], at), d = load_line(rows[3], at);
  line_of_16 low_ab = LOW_ELEMENTS(a, b), high_ab = HIGH_ELEMENTS(a, b);
  line_of_16 low_cd = LOW_ELEMENTS(c, d), high_cd = HIGH_ELEMENTS(c, d);
  column[0] = LOW_PAIRS(low_ab, low_cd);
  column[1] = HIGH_PAIRS(low_ab, low_cd);
  column[2] = LOW_PAIRS(high_ab, high_cd);
  column[3] = HIGH_PAIRS(high_ab, high_cd);
}

/* Every fourth column, of four rows each. */
WIDE void store_columns(line_of_16 a, line_of_16 b, line_of_16 c, line_of_16 d, char *to, int64_t width) {
  line_of_16 even_ab = EVEN_QUARTERS(a, b), odd_ab = ODD_QUARTERS(a, b);
  line_of_16 even_cd = EVEN_QUARTERS(c, d), odd_cd = ODD_QUARTERS(c, d);
  store_line(EVEN_QUARTERS(even_ab, even_cd), to);
  store_line(EVEN_QUARTERS(odd_ab, odd_cd), to + 4 * width);
  store_line(ODD_QUARTERS(even_ab, even_cd), to + 8 * width);
  store_line(ODD_QUARTERS(odd_ab, odd_cd), to + 12 * width);
}

/* Unrolled, so that everything stays in registers. */
__attribute__((target("avx512f"))) static void transpose_16x16(const char *const *rows, int64_t at, char *to,
                                                               int64_t width) {
  line_of_16 a[4], b[4], c[4], d[4];
  transpose_quarters(rows, at, a);
  transpose_quarters(rows + 4, at, b);
  transpose_quarters(rows + 8, at, c);
  transpose_quarters(rows + 12, at, d);
  store_columns(a[0], b[0], c[0], d[0], to, width);
  store_columns(a[1], b[1], c[1], d[1], to + width, width);
  store_columns(a[2], b[2], c[2], d[2], to + 2 * width, width);
  store_columns(a[3], b[3], c[3], d[3], to + 3 * width, width);
}

static bool has_16x16(void) { return ts_target_host()->isa == TS_ISA_AVX512; }

#else

static void transpose_16x16(const char *const *rows, int64_t at, char *to, int64_t width) {
  for (int i = 0; i < 16; i++)
    transpose_4x4(rows + i / 4 * 4, at + i % 4 * 16, to + i % 4 * 4 * width + i / 4 * 16, width);
}

static bool has_16x16(void) { return false; }

#endif

/* The rows of a panel, up to whole blocks. */
typedef struct row_list {
  const char *const *rows;
  int64_t count;
  int size;  /* bytes of an element: 4 or 8 */
  bool wide; /* in blocks of 16 */
} row_list;

static row_list list_rows(const char *const *rows, int64_t count, int size) {
  return (row_list){rows, count, size, size == 4 && count % 16 == 0 && has_16x16()};
}

/* Transposes a cache line of each row, from byte `at` on. */
static void transpose_lines(const row_list *l, int64_t at, char *to, int64_t width) {
  int size = l->size, block = l->wide ? 16 : 16 / size;
  for (int64_t u = 0; u < l->count; u += block) {
    if (l->wide) {
      transpose_16x16(l->rows + u, at, to + u * size, width);
      continue;
    }
    for (int64_t n = 0; n < 64; n += 16) {
      if (size == 4) {
        transpose_4x4(l->rows + u, at + n, to + n / 4 * width + u * size, width);
      } else {
        transpose_2x2(l->rows + u, at + n, to + n / 8 * width + u * size, width);
      }
    }
  }
}

#define DEFINE_COPY_STEPS(name, type)                                                                      \
  static void copy_steps_##name(const row_list *l, int64_t first, int64_t k, char *panel, int64_t width) { \
    for (int64_t u = 0; u < l->count; u++) {                                                               \
      const type *from = (const type *)(const void *)l->rows[u];                                           \
      for (int64_t i = first; i < k; i++) ((type *)(void *)(panel + i * width))[u] = from[i];              \
    }                                                                                                      \
  }

DEFINE_COPY_STEPS(4, uint32_t)
DEFINE_COPY_STEPS(8, uint64_t)

/* The steps from `first` on: less than a cache line of each row. */
static void transpose_rest(const row_list *l, int64_t first, int64_t k, char *panel, int64_t width) {
  const int size = l->size, block = 16 / size;
  int64_t i = first;
  for (; i + block <= k; i += block)
    for (int64_t u = 0; u < l->count; u += block)
      (size == 4 ? transpose_4x4 : transpose_2x2)(l->rows + u, i * size, panel + i * width + u * size, width);
  (size == 4 ? copy_steps_4 : copy_steps_8)(l, i, k, panel, width);
}

/* Rows past the last unit repeat it, up to whole blocks. */
static void transpose_panel(const gemm_pack *p, const char *source, int64_t units, int64_t k, int size, char *panel) {
  int block = 16 / size;
  int64_t width = (int64_t)p->width * size, filled = gemm_ceil_div(p->step, block) * block;
  const char *rows[TS_GEMM_MAX_UNITS];
  for (int64_t u = 0; u < filled; u++) rows[u] = source + gemm_min(u, units - 1) * p->unit_stride * size;
  row_list all = list_rows(rows, filled, size);
  int64_t i = 0, line = 64 / size;
  /* one cache line of each row at a time: rows with large strides compete for one cache set */
  for (; i + line <= k; i += line) transpose_lines(&all, i * size, panel + i * width, width);
  transpose_rest(&all, i, k, panel, width);
}

#define DEFINE_PACK_ROWS(name, source_type, panel_type, convert)                                                \
  static void rows_##name(const gemm_pack *p, const char *const *rows, int64_t first, int64_t k, char *panel) { \
    panel_type *to = (panel_type *)(void *)panel;                                                               \
    for (int64_t u = 0; u < p->step; u++) {                                                                     \
      const source_type *from = (const source_type *)(const void *)rows[u];                                     \
      for (int64_t i = first; i < k; i++) to[i * p->width + u] = convert(from[i]);                              \
    }                                                                                                           \
  }

DEFINE_PACK_ROWS(4, uint32_t, uint32_t, )
DEFINE_PACK_ROWS(8, uint64_t, uint64_t, )
DEFINE_PACK_ROWS(s8, int8_t, uint32_t, widen_s8)
DEFINE_PACK_ROWS(u8, uint8_t, uint32_t, widen_u8)
DEFINE_PACK_ROWS(s16, int16_t, uint32_t, widen_s16)
DEFINE_PACK_ROWS(u16, uint16_t, uint32_t, widen_u16)
DEFINE_PACK_ROWS(f16, uint16_t, uint32_t, widen_f16)
DEFINE_PACK_ROWS(bf16, uint16_t, uint32_t, widen_bf16)

/* Elements [first, k) of the rows. */
static void rows_any(const gemm_pack *p, const char *const *rows, int64_t first, int64_t k, char *panel) {
  switch (p->dtype) {
  case TS_S8: rows_s8(p, rows, first, k, panel); break;
  case TS_U8: rows_u8(p, rows, first, k, panel); break;
  case TS_S16: rows_s16(p, rows, first, k, panel); break;
  case TS_U16: rows_u16(p, rows, first, k, panel); break;
  case TS_F16: rows_f16(p, rows, first, k, panel); break;
  case TS_BF16: rows_bf16(p, rows, first, k, panel); break;
  case TS_S32:
  case TS_U32:
  case TS_F32: rows_4(p, rows, first, k, panel); break;
  case TS_S64:
  case TS_U64:
  case TS_F64: rows_8(p, rows, first, k, panel); break;
  default: break; /* no type of products (ts_gemm_has_type) */
  }
}

void ts_gemm_pack_rows(const gemm_pack *pack, const char **rows, int64_t units, int64_t k, char *panel) {
  int size = (int)ts_dtype_size(pack->dtype), block = 16 / size;
  int64_t filled = size >= 4 ? gemm_ceil_div(pack->step, block) * block : pack->step, i = 0;
  int64_t width = (int64_t)pack->width * size, line = 64 / size;
  for (int64_t u = units; u < filled; u++) rows[u] = rows[units - 1];
  if (size >= 4 && filled <= pack->width) {
    row_list all = list_rows(rows, filled, size);
    for (; i + line <= k; i += line) transpose_lines(&all, i * size, panel + i * width, width);
    for (; i + block <= k; i += block)
      for (int64_t u = 0; u < filled; u += block)
        (size == 4 ? transpose_4x4 : transpose_2x2)(rows + u, i * size, panel + i * width + u * size, width);
  }
  rows_any(pack, rows, i, k, panel);
}

/* ---- neither: lines of the elements that are nearer are copied first ---- */

#define LINE 64 /* steps of k */

/* Steps of k are nearer. */
static void pack_lines(const gemm_pack *p, const char *source, int64_t units, int64_t k, int size, char *panel) {
  _Alignas(64) char aside[TS_GEMM_MAX_UNITS * LINE * 8];
  const char *rows[TS_GEMM_MAX_UNITS + 3];
  for (int64_t first = 0; first < k; first += LINE) {
    const int64_t count = gemm_min(LINE, k - first);
    const char *from = source + first * p->k_stride * size;
    for (int64_t u = 0; u < units; u++) {
      char *line = aside + u * LINE * size;
      if (size == 4)
        copy_apart(from + u * p->unit_stride * 4, p->k_stride, count, 4, line);
      else
        copy_apart(from + u * p->unit_stride * 8, p->k_stride, count, 8, line);
      rows[u] = line;
    }
    ts_gemm_pack_rows(p, rows, units, count, panel + first * p->width * size);
  }
}

/* Units are nearer. */
static void pack_apart(const gemm_pack *p, const char *source, int64_t units, int64_t k, int size, char *panel) {
  const int64_t row = (int64_t)p->width * size, used = units * size;
  for (int64_t i = 0; i < k; i++) {
    const char *from = source + i * p->k_stride * size;
    char *to = panel + i * row;
    if (size == 4)
      copy_apart(from, p->unit_stride, units, 4, to);
    else
      copy_apart(from, p->unit_stride, units, 8, to);
    memset(to + used, 0, (size_t)(row - used));
  }
}

static int64_t distance(int64_t stride) { return stride < 0 ? -stride : stride; }

/* One unit, without padding. */
static void pack_one(const gemm_pack *p, const char *source, int64_t k, int size, char *panel) {
  if (size == 4)
    copy_apart(source, p->k_stride, k, 4, panel);
  else
    copy_apart(source, p->k_stride, k, 8, panel);
}

static void pack_neither(const gemm_pack *p, const char *source, int64_t units, int64_t k, int size, char *panel) {
  if (p->width == 1)
    pack_one(p, source, k, size, panel);
  else if (distance(p->unit_stride) <= distance(p->k_stride))
    pack_apart(p, source, units, k, size, panel);
  else
    pack_lines(p, source, units, k, size, panel);
}

void ts_gemm_pack_native(const gemm_pack *pack, const char *source, int64_t units, int64_t k, char *panels,
                         int64_t panel_bytes) {
  int size = (int)ts_dtype_size(pack->dtype);
  bool copies = size >= 4 && pack->unit_stride == 1 && pack->width > 1, transposes = size >= 4 && pack->k_stride == 1;
  if (transposes && gemm_ceil_div(pack->step, 16 / size) * (16 / size) > pack->width) transposes = false;
  int64_t panel = 0, count = gemm_ceil_div(units, pack->step);
  const pack_fn element_by_element = find_pack(pack);
  if (copies) {
    panel = units / pack->step;
    copy_rows(pack, source, panel, k, panels, panel_bytes);
  }
  for (; panel < count; panel++) {
    const char *from = source + panel * pack->step * pack->unit_stride * size;
    int64_t here = gemm_min(pack->step, units - panel * pack->step);
    if (copies) {
      copy_partial(pack, from, here, k, size, panels + panel * panel_bytes);
    } else if (transposes) {
      transpose_panel(pack, from, here, k, size, panels + panel * panel_bytes);
    } else if (size >= 4) {
      pack_neither(pack, from, here, k, size, panels + panel * panel_bytes);
    } else {
      element_by_element(pack, from, here, k, panels + panel * panel_bytes);
    }
  }
}
