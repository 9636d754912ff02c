/* The results of several vectors, item by item, as rows of the result: squares of 16 bytes a side are transposed. Where
 * the items are no multiple of a square's side, the last square has some of the items before again; with three items a
 * row's store also writes the next row's first element, which is stored after it. */
#include "kernel/gemm/gemm_internal.h"

#include <string.h>

typedef uint32_t quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t pair __attribute__((vector_size(16), aligned(8), may_alias));

static const char *item_at(const char *from, int64_t item) { return from + item * TS_GEMM_ITEM_BYTES; }

/* Items [item, item + 4) of 4 rows; of three items the last one twice. */
static void join_4x4(const char *from, int64_t item, int64_t items, char *out, int64_t row) {
  const quad a = *(const quad *)(const void *)item_at(from, item),
             b = *(const quad *)(const void *)item_at(from, item + 1);
  const quad c = *(const quad *)(const void *)item_at(from, item + 2),
             d = *(const quad *)(const void *)item_at(from, gemm_min(item + 3, items - 1));
  const quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const quad ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  *(quad *)(void *)out = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
  *(quad *)(void *)(out + row) = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  *(quad *)(void *)(out + 2 * row) = __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5);
  *(quad *)(void *)(out + 3 * row) = __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7);
}

/* Both items of 4 rows. */
static void join_2x4(const char *from, char *out, int64_t row) {
  const quad a = *(const quad *)(const void *)from, b = *(const quad *)(const void *)item_at(from, 1);
  const pair low = (pair)__builtin_shufflevector(a, b, 0, 4, 1, 5),
             high = (pair)__builtin_shufflevector(a, b, 2, 6, 3, 7);
  const uint64_t rows[] = {low[0], low[1], high[0], high[1]};
  for (int r = 0; r < 4; r++) memcpy(out + r * row, &rows[r], 8);
}

/* Items [item, item + 2) of 2 rows, of 8 bytes. */
static void join_2x2(const char *from, int64_t item, char *out, int64_t row) {
  const pair a = *(const pair *)(const void *)item_at(from, item),
             b = *(const pair *)(const void *)item_at(from, item + 1);
  *(pair *)(void *)out = __builtin_shufflevector(a, b, 0, 2);
  *(pair *)(void *)(out + row) = __builtin_shufflevector(a, b, 1, 3);
}

static void join_rows_4(const char *from, int64_t items, int64_t first, int64_t count, char *out, int64_t row) {
  for (int64_t r = first; r < count; r++)
    for (int64_t i = 0; i < items; i++) memcpy(out + r * row + i * 4, item_at(from, i) + r * 4, 4);
}

static void join_rows_8(const char *from, int64_t items, int64_t first, int64_t count, char *out, int64_t row) {
  for (int64_t r = first; r < count; r++)
    for (int64_t i = 0; i < items; i++) memcpy(out + r * row + i * 8, item_at(from, i) + r * 8, 8);
}

static void join_4(const char *from, int64_t items, int64_t count, char *out, int64_t row) {
  /* three items are stored as four: not of the last row, nor where the next row is elsewhere */
  const int64_t last = items == 3 ? 1 : 0;
  const bool has_squares = items > 1 && (items != 3 || row == 12);
  int64_t r = 0;
  for (; has_squares && r + 4 + last <= count; r += 4) {
    const char *at = from + r * 4;
    char *to = out + r * row;
    if (items == 2)
      join_2x4(at, to, row);
    else if (items == 3)
      join_4x4(at, 0, items, to, row);
    else
      for (int64_t i = 0; i < items; i += 4)
        join_4x4(at, gemm_min(i, items - 4), items, to + gemm_min(i, items - 4) * 4, row);
  }
  join_rows_4(from, items, r, count, out, row);
}

static void join_8(const char *from, int64_t items, int64_t count, char *out, int64_t row) {
  int64_t r = 0;
  for (; items > 1 && r + 2 <= count; r += 2)
    for (int64_t i = 0; i < items; i += 2)
      join_2x2(from + r * 8, gemm_min(i, items - 2), out + r * row + gemm_min(i, items - 2) * 8, row);
  join_rows_8(from, items, r, count, out, row);
}

void ts_gemm_join_items(int size, const char *from, int64_t items, int64_t count, char *out, int64_t row) {
  (size == 4 ? join_4 : join_8)(from, items, count, out, row);
}

/* Rows that are joined before they are narrowed together. */
enum { JOINED = 64 };

void ts_gemm_narrow_items(ts_dtype type, const char *from, int64_t items, int64_t count, char *out, int64_t row) {
  uint32_t joined[JOINED * TS_GEMM_MAX_ITEMS];
  const int64_t size = (int64_t)ts_dtype_size(type);
  for (int64_t r = 0; r < count; r += JOINED, from += JOINED * 4, out += JOINED * row) {
    const int64_t rows = gemm_min(JOINED, count - r);
    join_4(from, items, rows, (char *)joined, items * 4);
    if (row == items * size)
      ts_gemm_narrow(type, joined, rows * items, out);
    else
      for (int64_t i = 0; i < rows; i++) ts_gemm_narrow(type, joined + i * items, items, out + i * row);
  }
}
