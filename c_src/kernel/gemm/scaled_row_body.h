/* The code of scaled_row.h for one instruction set, which defines
 *   VECTOR_BYTES  the size of a vector: 16, 32 or 64
 *   SIGNED(at)    a vector of f32, converted from signed bytes
 *   UNSIGNED(at)  a vector of f32, converted from unsigned bytes
 *   ISA(name)     the name of a function or table for this instruction set */
#include "kernel/gemm/row_vectors.h"
#include "kernel/gemm/scaled_row.h"

#include <string.h>

enum { BLOCK = SCALED_ROW_BLOCK, LANES = VECTOR_BYTES / 4 };
/* Rows whose products are added together: the sums are loaded and stored once for all of them. */
enum { ROWS = 8 };
/* Vectors of columns whose sums stay in registers. */
enum { AT_ONCE = 4 };

INLINE vf element(const char *at, vf scale, bool is_signed, bool rounds) {
  const vf v = (is_signed ? SIGNED(at) : UNSIGNED(at)) * scale;
  return rounds ? rounded(v) : v;
}

/* Elements of some rows: of columns [col, col + AT_ONCE vectors). */
typedef struct piece {
  const char *from;
  int64_t row;
  const float *x, *scales;
  float *chains;
  int rows;
} piece;

INLINE void add_piece(const piece *p, bool begins, bool is_signed, bool rounds) {
  vf sums[AT_ONCE], scales[AT_ONCE];
  UNROLL for (int c = 0; c < AT_ONCE; c++) {
    sums[c] = begins ? (vf){0} : load_f(p->chains + c * LANES);
    scales[c] = load_f(p->scales + c * LANES);
  }
  const char *from = p->from;
  for (int r = 0; r < p->rows; r++, from += p->row) {
    const vf x = splat_f(p->x[r]);
    UNROLL for (int c = 0; c < AT_ONCE; c++) sums[c] =
        FMA(x, element(from + c * LANES, scales[c], is_signed, rounds), sums[c]);
  }
  UNROLL for (int c = 0; c < AT_ONCE; c++) store_f(p->chains + c * LANES, sums[c]);
}

/* Rows [k, k + rows) of a block of columns; of one with fewer columns its bytes are copied. */
INLINE void add_block(const scaled_row *r, int64_t k, int rows, int64_t col, bool is_signed, bool rounds) {
  char aside[ROWS * BLOCK];
  const int64_t cols = gemm_min(BLOCK, r->cols - col);
  piece p = {r->matrix + k * r->row + col, r->row, r->x + k, r->scales + col, r->chains + col, rows};
  if (cols < BLOCK) {
    memset(aside, 0, sizeof aside);
    for (int i = 0; i < rows; i++) memcpy(aside + i * BLOCK, p.from + i * r->row, (size_t)cols);
    p.from = aside;
    p.row = BLOCK;
  }
  for (int c = 0; c < BLOCK; c += AT_ONCE * LANES) {
    add_piece(&p, k % TS_CONTRACT_CHAIN == 0, is_signed, rounds);
    p.from += AT_ONCE * LANES;
    p.scales += AT_ONCE * LANES;
    p.chains += AT_ONCE * LANES;
  }
}

/* A chain has ended: the first one is the start of the sum. */
static void end_chains(const scaled_row *r, bool is_first) {
  for (int64_t c = 0; c < r->cols; c += LANES)
    store_f(r->sums + c, is_first ? load_f(r->chains + c) : load_f(r->sums + c) + load_f(r->chains + c));
}

/* ---- columns whose elements are neighbours ---- */

typedef uint8_t bytes __attribute__((vector_size(16)));

INLINE bytes join_low(bytes a, bytes b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
INLINE bytes join_high(bytes a, bytes b) {
  return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/* Bytes of a line that are fetched early. */
enum { AHEAD = 256 };

/* 16 lines of 16 bytes become 16 lines of a block: each round moves a bit of a line's number to that of a byte. */
static void turn_square(const char *from, int64_t line, char *to) {
  bytes x[16], y[16];
  UNROLL for (int i = 0; i < 16; i++) {
    memcpy(&x[i], from + i * line, sizeof x[i]);
    __builtin_prefetch(from + i * line + AHEAD);
  }
  UNROLL for (int round = 0; round < 4; round++) {
    UNROLL for (int i = 0; i < 8; i++) {
      y[2 * i] = join_low(x[i], x[i + 8]);
      y[2 * i + 1] = join_high(x[i], x[i + 8]);
    }
    UNROLL for (int i = 0; i < 16; i++) x[i] = y[i];
  }
  UNROLL for (int i = 0; i < 16; i++) memcpy(to + i * BLOCK, &x[i], sizeof x[i]);
}

/* Rows [k, k + rows) of up to BLOCK columns, row after row. */
static void turn_block(const scaled_row *r, int64_t k, int64_t rows, int64_t col, int64_t cols, char *to) {
  const char *from = r->matrix + k + col * r->col;
  const bool whole = rows == BLOCK && cols == BLOCK;
  if (!whole) memset(to, 0, BLOCK * BLOCK);
  for (int64_t i = 0; i < cols && !whole; i++)
    for (int64_t j = 0; j < rows; j++) to[j * BLOCK + i] = from[i * r->col + j];
  for (int64_t i = 0; i < BLOCK && whole; i += 16)
    for (int64_t j = 0; j < BLOCK; j += 16) turn_square(from + i * r->col + j, r->col, to + j * BLOCK + i);
}

INLINE void add_turned(const scaled_row *r, int64_t k, int rows, int64_t col, bool is_signed, bool rounds) {
  char aside[BLOCK * BLOCK];
  turn_block(r, k, rows, col, gemm_min(BLOCK, r->cols - col), aside);
  for (int c = 0; c < BLOCK; c += AT_ONCE * LANES)
    add_piece(&(piece){aside + c, BLOCK, r->x + k, r->scales + col + c, r->chains + col + c, rows},
              k % TS_CONTRACT_CHAIN == 0, is_signed, rounds);
}

/* ---- a task ---- */

INLINE void run_kind(const scaled_row *r, bool is_signed, bool rounds) {
  const int64_t step = r->col == 1 ? ROWS : BLOCK;
  for (int64_t k = 0; k < r->k; k += step) {
    const int64_t rows = gemm_min(step, r->k - k), end = k + rows;
    for (int64_t col = 0; col < r->cols; col += BLOCK) {
      if (r->col == 1)
        add_block(r, k, (int)rows, col, is_signed, rounds);
      else
        add_turned(r, k, (int)rows, col, is_signed, rounds);
    }
    if (end % TS_CONTRACT_CHAIN == 0 || end == r->k) end_chains(r, end <= TS_CONTRACT_CHAIN);
  }
}

static void run_signed(const scaled_row *r) { run_kind(r, true, false); }
static void run_unsigned(const scaled_row *r) { run_kind(r, false, false); }
static void run_signed_bf16(const scaled_row *r) { run_kind(r, true, true); }
static void run_unsigned_bf16(const scaled_row *r) { run_kind(r, false, true); }

static void run(const scaled_row *r) {
  if (r->rounds)
    (r->is_signed ? run_signed_bf16 : run_unsigned_bf16)(r);
  else
    (r->is_signed ? run_signed : run_unsigned)(r);
}

const scaled_row_code ISA(ts_scaled_row) = {run};
