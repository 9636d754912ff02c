/* The code of scans for one instruction set, which defines ISA(name), the name of something of this instruction set,
 * and perhaps how squares of lines are turned (scan_lines.h). */
#include "kernel/complex_number.h"
#include "kernel/gemm/gemm_widen.h"
#include "kernel/inline.h"
#include "kernel/scan/scan_job.h"
#include "kernel/scan/scan_keys.h"
#include "tensor/scan_order.h"

/* Columns of lines that are processed together. */
#define COLUMNS 1024
/* Steps of a line between two checks of the cancel flag. */
#define CHECK 8192

static int64_t block_steps(const ts_scan_job *job, int64_t block) {
  return ts_scan_least(TS_SCAN_BLOCK, job->n - block * TS_SCAN_BLOCK);
}

/* The index of the first element of a block along the axis. */
static int64_t block_start(const ts_scan_job *job, int64_t block) {
  return job->step > 0 ? block * TS_SCAN_BLOCK : job->n - 1 - block * TS_SCAN_BLOCK;
}

#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define INT_MIN_OF(a, b) ((a) < (b) ? (a) : (b))
#define INT_MAX_OF(a, b) ((a) > (b) ? (a) : (b))
#define SAME(x) (x)
#define FROM_ZERO(x) (0 + (x)) /* -0 becomes +0, as in a sum from +0 */

/* Lines of so few elements are computed one after the other: the next one does not wait for this one. */
#define SHORT 6

/* Two to four lines at once. T: memory type, A: type of the carry. A step is one or two instructions: four lines at
 * once hide its latency. More lines would share a set of the first cache where a line has a power of two of elements.
 */
#define DEFINE_FOUR(NAME, T, A, LOAD, STORE, OP)                                                                  \
  INLINE void four_##NAME(const T *x, T *y, const int64_t *line, int64_t step, int64_t columns, A *carry,         \
                          const A *from, bool has_from, bool stores) {                                            \
    const int64_t second = line[0], third = line[1], fourth = line[2];                                            \
    A a = carry[0], b = carry[1], c = carry[2], d = carry[3];                                                     \
    A e = from[0], f = from[1], g = from[2], h = from[3];                                                         \
    for (int64_t at = 0; at != columns * step; at += step) {                                                      \
      a = (A)OP(a, LOAD(x[at])), b = (A)OP(b, LOAD(x[at + second]));                                              \
      c = (A)OP(c, LOAD(x[at + third])), d = (A)OP(d, LOAD(x[at + fourth]));                                      \
      if (!stores) continue;                                                                                      \
      y[at] = STORE(has_from ? (A)OP(e, a) : a), y[at + second] = STORE(has_from ? (A)OP(f, b) : b);              \
      y[at + third] = STORE(has_from ? (A)OP(g, c) : c), y[at + fourth] = STORE(has_from ? (A)OP(h, d) : d);      \
    }                                                                                                             \
    carry[0] = a, carry[1] = b, carry[2] = c, carry[3] = d;                                                       \
  }                                                                                                               \
  /* Two to four lines: of fewer than four the last one is computed again, to the same bits. */                   \
  INLINE void group_##NAME(const T *x, T *y, int64_t line, int64_t rows, int64_t step, int64_t columns, A *carry, \
                           const A *from, bool has_from) {                                                        \
    const int64_t third = rows > 2 ? 2 : 1, fourth = rows > 3 ? 3 : rows - 1;                                     \
    const int64_t lines[3] = {line, third * line, fourth * line};                                                 \
    A carries[4] = {carry[0], carry[1], carry[third], carry[fourth]};                                             \
    const A before[4] = {from[0], from[1], from[third], from[fourth]};                                            \
    if (!y)                                                                                                       \
      four_##NAME(x, y, lines, step, columns, carries, before, false, false);                                     \
    else if (has_from)                                                                                            \
      four_##NAME(x, y, lines, step, columns, carries, before, true, true);                                       \
    else                                                                                                          \
      four_##NAME(x, y, lines, step, columns, carries, before, false, true);                                      \
    carry[fourth] = carries[3], carry[third] = carries[2], carry[1] = carries[1], carry[0] = carries[0];          \
  }

/* rest_NAME: `columns` steps of `rows` lines, from their carries on; `before` is combined with each result (unless
 * NULL), which is stored if `y`. */
#define DEFINE_LINES(NAME, T, A, LOAD, STORE, OP, FIRST)                                                              \
  DEFINE_FOUR(NAME, T, A, LOAD, STORE, OP)                                                                            \
  INLINE void one_##NAME(const T *x, T *y, int64_t step, int64_t columns, A *carry, const A *from, bool has_from,     \
                         bool stores) {                                                                               \
    A a = *carry, e = *from;                                                                                          \
    for (int64_t at = 0; at != columns * step; at += step) {                                                          \
      a = (A)OP(a, LOAD(x[at]));                                                                                      \
      if (stores) y[at] = STORE(has_from ? (A)OP(e, a) : a);                                                          \
    }                                                                                                                 \
    *carry = a;                                                                                                       \
  }                                                                                                                   \
  INLINE void short_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry) {   \
    for (int64_t r = 0; r < rows; r++) {                                                                              \
      A a = (A)FIRST(LOAD(x[r * line]));                                                                              \
      y[r * line] = STORE(a);                                                                                         \
      for (int64_t k = 1; k < columns; k++) {                                                                         \
        a = (A)OP(a, LOAD(x[r * line + k * step]));                                                                   \
        y[r * line + k * step] = STORE(a);                                                                            \
      }                                                                                                               \
      carry[r] = a;                                                                                                   \
    }                                                                                                                 \
  }                                                                                                                   \
  static void rest_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry,      \
                          const A *before, bool first) {                                                              \
    const A *from = before ? before : carry; /* any numbers */                                                        \
    int64_t r = 0;                                                                                                    \
    if (first && y && !before && columns <= SHORT) {                                                                  \
      short_##NAME(x, y, line, step, rows, columns, carry);                                                           \
      return;                                                                                                         \
    }                                                                                                                 \
    for (int64_t i = 0; first && i < rows; i++) {                                                                     \
      carry[i] = (A)FIRST(LOAD(x[i * line]));                                                                         \
      if (y) y[i * line] = STORE(before ? (A)OP(before[i], carry[i]) : carry[i]);                                     \
    }                                                                                                                 \
    if (first) x += step, columns--;                                                                                  \
    if (first && y) y += step;                                                                                        \
    for (; r + 2 <= rows; r += 4) {                                                                                   \
      group_##NAME(x + r * line, y ? y + r * line : NULL, line, ts_scan_least(rows - r, 4), step, columns, carry + r, \
                   from + r, before != NULL);                                                                         \
    }                                                                                                                 \
    for (; r < rows; r++) {                                                                                           \
      if (!y)                                                                                                         \
        one_##NAME(x + r * line, y, step, columns, carry + r, from + r, false, false);                                \
      else if (before)                                                                                                \
        one_##NAME(x + r * line, y + r * line, step, columns, carry + r, from + r, true, true);                       \
      else                                                                                                            \
        one_##NAME(x + r * line, y + r * line, step, columns, carry + r, from + r, false, true);                      \
    }                                                                                                                 \
  }

#include "kernel/scan/scan_squares.h"

/* some_NAME: the same, by squares where there are any. */
#define DEFINE_SOME(NAME, T, A)                                                                                      \
  static void some_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry,     \
                          const A *before, bool first) {                                                             \
    int64_t done = 0; /* columns */                                                                                  \
    const int64_t r = squares_##NAME(x, y, line, step, rows, columns, carry, before, first, &done);                  \
    if (r > 0 && done < columns)                                                                                     \
      rest_##NAME(x + done * step, y ? y + done * step : NULL, line, step, r, columns - done, carry, before, false); \
    if (r < rows)                                                                                                    \
      rest_##NAME(x + r * line, y ? y + r * line : NULL, line, step, rows - r, columns, carry + r,                   \
                  before ? before + r : NULL, first);                                                                \
  }

/* rows_NAME: `count` steps of one block of `rows` lines, at a distance of `line`. */
#define DEFINE_ROWS(NAME, T, A, OP)                                                                                    \
  static void rows_##NAME(const ts_scan_job *job, const T *x, T *y, int64_t line, int64_t rows, int64_t count,         \
                          A *carry, const A *before) {                                                                 \
    const int64_t step = job->step * job->inner;                                                                       \
    for (int64_t k = 0; k < count; k += COLUMNS) {                                                                     \
      if (k % CHECK == 0 && ts_scan_cancelled(job)) return;                                                            \
      const int64_t at = k * step, columns = ts_scan_least(COLUMNS, count - k);                                        \
      some_##NAME(x + at, y ? y + at : NULL, line, step, rows, columns, carry, before, k == 0);                        \
    }                                                                                                                  \
  }                                                                                                                    \
  static void line_group_##NAME(const ts_scan_job *job, int64_t row, int64_t rows, int64_t inner) {                    \
    A carry[TS_SCAN_ROWS] = {0}, before[TS_SCAN_ROWS] = {0};                                                           \
    for (int64_t b = 0; b < job->blocks && !ts_scan_cancelled(job); b++) {                                             \
      const int64_t at = (row * job->n + block_start(job, b)) * job->inner + inner;                                    \
      rows_##NAME(job, (const T *)job->in + at, (T *)job->out + at, job->n * job->inner, rows, block_steps(job, b),    \
                  carry, b > 0 ? before : NULL);                                                                       \
      for (int64_t r = 0; r < rows; r++) before[r] = b > 0 ? (A)OP(before[r], carry[r]) : carry[r];                    \
    }                                                                                                                  \
  }                                                                                                                    \
  static void lines_##NAME(const ts_scan_job *job, int64_t begin, int64_t end) {                                       \
    for (int64_t row = begin; row < end; row += TS_SCAN_ROWS) {                                                        \
      for (int64_t i = 0; i < job->inner; i++) line_group_##NAME(job, row, ts_scan_least(TS_SCAN_ROWS, end - row), i); \
    }                                                                                                                  \
  }                                                                                                                    \
  static void line_blocks_##NAME(const ts_scan_job *job, int64_t begin, int64_t end) {                                 \
    const int64_t groups = ts_scan_ceil_div(job->blocks, TS_SCAN_BLOCKS);                                              \
    for (int64_t unit = begin; unit < end && !ts_scan_cancelled(job); unit++) {                                        \
      const int64_t row = unit / groups, first = unit % groups * TS_SCAN_BLOCKS;                                       \
      const int64_t all = ts_scan_least(TS_SCAN_BLOCKS, job->blocks - first);                                          \
      const int64_t whole = ts_scan_least(first + all, job->totals ? job->blocks - 1 : job->n / TS_SCAN_BLOCK);        \
      for (int64_t b = first; b < first + all;) {                                                                      \
        const int64_t rows = (b > 0 || job->totals) && b < whole ? whole - b : 1;                                      \
        const int64_t at = row * job->n + block_start(job, b);                                                         \
        A carry[TS_SCAN_ROWS] = {0}, *kept = (A *)job->carries + row * job->blocks + b;                                \
        rows_##NAME(job, (const T *)job->in + at, job->totals ? NULL : (T *)job->out + at, job->step * TS_SCAN_BLOCK,  \
                    rows, block_steps(job, b), carry, job->totals || b == 0 ? NULL : kept);                            \
        for (int64_t r = 0; r < rows && job->totals; r++) kept[r] = carry[r];                                          \
        b += rows;                                                                                                     \
        if (job->totals && b + 1 == job->blocks) break;                                                                \
      }                                                                                                                \
    }                                                                                                                  \
  }

/* panel_NAME: one block of the `width` lines that begin at x. */
#define DEFINE_PANEL(NAME, T, A, LOAD, STORE, OP, FIRST)                                                           \
  INLINE void panel_steps_##NAME(const ts_scan_job *job, const T *x, T *y, int64_t width, int64_t count, A *carry, \
                                 const A *before, bool has_before, bool stores) {                                  \
    for (int64_t i = 0; i < width; i++) {                                                                          \
      carry[i] = (A)FIRST(LOAD(x[i]));                                                                             \
      if (stores) y[i] = STORE(has_before ? (A)OP(before[i], carry[i]) : carry[i]);                                \
    }                                                                                                              \
    for (int64_t k = 1; k < count; k++) {                                                                          \
      if (k % CHECK == 1 && ts_scan_cancelled(job)) return;                                                        \
      x += job->step * job->inner;                                                                                 \
      if (stores) y += job->step * job->inner;                                                                     \
      for (int64_t i = 0; i < width; i++) {                                                                        \
        A v = LOAD(x[i]);                                                                                          \
        carry[i] = (A)OP(carry[i], v);                                                                             \
        if (stores) y[i] = STORE(has_before ? (A)OP(before[i], carry[i]) : carry[i]);                              \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  static void panel_##NAME(const ts_scan_job *job, const T *x, T *y, int64_t width, int64_t count, A *carry,       \
                           const A *before) {                                                                      \
    if (!y)                                                                                                        \
      panel_steps_##NAME(job, x, y, width, count, carry, carry, false, false);                                     \
    else if (before)                                                                                               \
      panel_steps_##NAME(job, x, y, width, count, carry, before, true, true);                                      \
    else                                                                                                           \
      panel_steps_##NAME(job, x, y, width, count, carry, carry, false, true);                                      \
  }

/* Panels of a few lines keep their totals in registers. Of fewer than four the last one is computed again, which takes
 * longer than it gains where a step is many instructions, so each op has a least number. */
#define FEW 4
#define IS_FEW(NAME, width) ((width) >= LEAST_FEW_##NAME && (width) <= FEW)
/* few_NAME: a panel of so many. */
#define DEFINE_FEW(NAME, T, A, LOAD, STORE, OP, FIRST, LEAST)                                                     \
  enum { LEAST_FEW_##NAME = (LEAST) };                                                                            \
  static void few_##NAME(const ts_scan_job *job, const T *x, T *y, int64_t width, int64_t count, A *carry,        \
                         const A *before) {                                                                       \
    const int64_t step = job->step * job->inner;                                                                  \
    const A *from = before ? before : carry; /* any numbers */                                                    \
    for (int64_t i = 0; i < width; i++) {                                                                         \
      carry[i] = (A)FIRST(LOAD(x[i]));                                                                            \
      if (y) y[i] = STORE(before ? (A)OP(before[i], carry[i]) : carry[i]);                                        \
    }                                                                                                             \
    for (int64_t k = 1; k < count; k += CHECK) {                                                                  \
      if (ts_scan_cancelled(job)) return;                                                                         \
      group_##NAME(x + k * step, y ? y + k * step : NULL, 1, width, step, ts_scan_least(CHECK, count - k), carry, \
                   from, before != NULL);                                                                         \
    }                                                                                                             \
  }
/* By lines, as a call for each step would cost more than the step. */
#define DEFINE_STAGED_FEW(NAME, T, A)                                                                      \
  enum { LEAST_FEW_##NAME = 2 };                                                                           \
  static void few_##NAME(const ts_scan_job *job, const T *x, T *y, int64_t width, int64_t count, A *carry, \
                         const A *before) {                                                                \
    rows_##NAME(job, x, y, 1, width, count, carry, before);                                                \
  }

#define DEFINE_PANELS(NAME, T, A, OP)                                                                              \
  static void panels_##NAME(const ts_scan_job *job, int64_t begin, int64_t end) {                                  \
    for (int64_t unit = begin; unit < end; unit++) {                                                               \
      const int64_t start = unit % job->panels * TS_SCAN_PANEL,                                                    \
                    width = ts_scan_least(TS_SCAN_PANEL, job->inner - start);                                      \
      A carry[TS_SCAN_PANEL], before[TS_SCAN_PANEL];                                                               \
      for (int64_t b = 0; b < job->blocks && !ts_scan_cancelled(job); b++) {                                       \
        const int64_t at = (unit / job->panels * job->n + block_start(job, b)) * job->inner + start;               \
        (IS_FEW(NAME, width) ? few_##NAME : panel_##NAME)(job, (const T *)job->in + at, (T *)job->out + at, width, \
                                                          block_steps(job, b), carry, b > 0 ? before : NULL);      \
        for (int64_t i = 0; i < width; i++) before[i] = b > 0 ? (A)OP(before[i], carry[i]) : carry[i];             \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  static void panel_blocks_##NAME(const ts_scan_job *job, int64_t begin, int64_t end) {                            \
    for (int64_t unit = begin; unit < end && !ts_scan_cancelled(job); unit++) {                                    \
      const int64_t start = unit % job->panels * TS_SCAN_PANEL,                                                    \
                    width = ts_scan_least(TS_SCAN_PANEL, job->inner - start);                                      \
      const int64_t block = unit / job->panels % job->blocks, outer = unit / job->panels / job->blocks;            \
      if (job->totals && block + 1 == job->blocks) continue;                                                       \
      const int64_t at = (outer * job->n + block_start(job, block)) * job->inner + start;                          \
      A carry[TS_SCAN_PANEL], *kept = (A *)job->carries + (outer * job->blocks + block) * job->inner + start;      \
      (IS_FEW(NAME, width) ? few_##NAME : panel_##NAME)(                                                           \
          job, (const T *)job->in + at, job->totals ? NULL : (T *)job->out + at, width, block_steps(job, block),   \
          carry, job->totals || block == 0 ? NULL : kept);                                                         \
      for (int64_t i = 0; i < width && job->totals; i++) kept[i] = carry[i];                                       \
    }                                                                                                              \
  }                                                                                                                \
  /* Each block's total becomes the one before it. */                                                              \
  static void combine_##NAME(const ts_scan_job *job) {                                                             \
    for (int64_t o = 0; o < job->outer; o++)                                                                       \
      for (int64_t i = 0; i < job->inner; i++) {                                                                   \
        A *at = (A *)job->carries + o * job->blocks * job->inner + i, before = *at;                                \
        for (int64_t b = 1; b < job->blocks; b++) {                                                                \
          const A total = at[b * job->inner];                                                                      \
          at[b * job->inner] = before;                                                                             \
          before = (A)OP(before, total);                                                                           \
        }                                                                                                          \
      }                                                                                                            \
  }

#define DEFINE_SCAN(NAME, T, A, LOAD, STORE, OP, FIRST) \
  DEFINE_LINES(NAME, T, A, LOAD, STORE, OP, FIRST)      \
  DEFINE_SOME(NAME, T, A)                               \
  DEFINE_PANEL(NAME, T, A, LOAD, STORE, OP, FIRST)      \
  DEFINE_FEW(NAME, T, A, LOAD, STORE, OP, FIRST, 2)     \
  DEFINE_AROUND(NAME, T, A, OP)

/* The same for a type whose elements become others, W, before the scan, and results after it: of some columns at a
 * time, in vectors. WIDE names the scan of W. UP and DOWN convert elements that are 1 or -1 apart; others are collected
 * first. */
#define STAGE 128
#define STAGE_LINE (STAGE + 16) /* lines at a power of two would share sets of the first cache */
#define DEFINE_STAGED_LINES(NAME, T, W, A, WIDE, UP, DOWN)                                                       \
  static void up_apart_##NAME(const T *x, int64_t step, int64_t count, W *out) {                                 \
    T part[STAGE];                                                                                               \
    for (int64_t i = 0; i < count; i++) part[i] = x[i * step];                                                   \
    UP(part, 1, count, out);                                                                                     \
  }                                                                                                              \
  static void down_apart_##NAME(W *x, int64_t step, int64_t count, T *out) {                                     \
    T part[STAGE];                                                                                               \
    DOWN(x, 1, count, part);                                                                                     \
    for (int64_t i = 0; i < count; i++) out[i * step] = part[i];                                                 \
  }                                                                                                              \
  static void some_##NAME(const T *x, T *y, int64_t line, int64_t step, int64_t rows, int64_t columns, A *carry, \
                          const A *before, bool first) {                                                         \
    W work[TS_SCAN_ROWS * STAGE_LINE];                                                                           \
    const bool apart = step != 1 && step != -1;                                                                  \
    if (columns == line && columns <= STAGE && step == 1) { /* one behind the other */                           \
      work[0] = 0;                                          /* the compiler does not know that there are rows */ \
      UP(x, 1, rows *line, work);                                                                                \
      some_##WIDE(work, y ? work : NULL, line, 1, rows, columns, carry, before, first);                          \
      if (y) DOWN(work, 1, rows *line, y);                                                                       \
      return;                                                                                                    \
    }                                                                                                            \
    for (int64_t k = 0; k < columns; k += STAGE) {                                                               \
      const int64_t count = ts_scan_least(STAGE, columns - k), at = k * step;                                    \
      for (int64_t r = 0; r < rows; r++) {                                                                       \
        if (apart)                                                                                               \
          up_apart_##NAME(x + r * line + at, step, count, work + r * STAGE_LINE);                                \
        else                                                                                                     \
          UP(x + r * line + at, step, count, work + r * STAGE_LINE);                                             \
      }                                                                                                          \
      some_##WIDE(work, y ? work : NULL, STAGE_LINE, 1, rows, count, carry, before, k == 0 && first);            \
      for (int64_t r = 0; y && r < rows; r++) {                                                                  \
        if (apart)                                                                                               \
          down_apart_##NAME(work + r * STAGE_LINE, step, count, y + r * line + at);                              \
        else                                                                                                     \
          DOWN(work + r * STAGE_LINE, step, count, y + r * line + at);                                           \
      }                                                                                                          \
    }                                                                                                            \
  }

#define DEFINE_STAGED_PANEL(NAME, T, W, A, UP, DOWN, OP, STORE, FIRST)                                       \
  static void panel_##NAME(const ts_scan_job *job, const T *x, T *y, int64_t width, int64_t count, A *carry, \
                           const A *before) {                                                                \
    W work[TS_SCAN_PANEL];                                                                                   \
    const int64_t next = job->step * job->inner;                                                             \
    for (int64_t k = 0; k < count; k++) {                                                                    \
      if (k % CHECK == 1 && ts_scan_cancelled(job)) return;                                                  \
      UP(x + k * next, 1, width, work);                                                                      \
      if (k == 0)                                                                                            \
        for (int64_t i = 0; i < width; i++) carry[i] = (A)FIRST(work[i]);                                    \
      else                                                                                                   \
        for (int64_t i = 0; i < width; i++) carry[i] = (A)OP(carry[i], (A)work[i]);                          \
      if (!y) continue;                                                                                      \
      if (before)                                                                                            \
        for (int64_t i = 0; i < width; i++) work[i] = STORE(OP(before[i], carry[i]));                        \
      else                                                                                                   \
        for (int64_t i = 0; i < width; i++) work[i] = STORE(carry[i]);                                       \
      DOWN(work, 1, width, y + k * next);                                                                    \
    }                                                                                                        \
  }

#define DEFINE_AROUND(NAME, T, A, OP) DEFINE_ROWS(NAME, T, A, OP) DEFINE_PANELS(NAME, T, A, OP)
#define DEFINE_STAGED(NAME, T, W, A, WIDE, UP, DOWN, OP, STORE, FIRST) \
  DEFINE_STAGED_LINES(NAME, T, W, A, WIDE, UP, DOWN)                   \
  DEFINE_STAGED_PANEL(NAME, T, W, A, UP, DOWN, OP, STORE, FIRST)       \
  DEFINE_ROWS(NAME, T, A, OP)                                          \
  DEFINE_STAGED_FEW(NAME, T, A)                                        \
  DEFINE_PANELS(NAME, T, A, OP)

/* Unsigned arithmetic wraps; small types are computed in 64 bits and truncated. */
#define DEFINE_INT(NAME, T, U)                                      \
  DEFINE_SCAN(sum_##NAME, U, U, SAME, SAME, SUM, FROM_ZERO)         \
  DEFINE_SCAN(product_##NAME, U, U, SAME, SAME, WRAP_PRODUCT, SAME) \
  DEFINE_SCAN(min_##NAME, T, T, SAME, SAME, INT_MIN_OF, SAME)       \
  DEFINE_SCAN(max_##NAME, T, T, SAME, SAME, INT_MAX_OF, SAME)
#define WRAP_PRODUCT(a, b) ((uint64_t)(a) * (uint64_t)(b)) /* u16 * u16 would overflow int */

DEFINE_INT(s8, int8_t, uint8_t)
DEFINE_INT(s16, int16_t, uint16_t)
DEFINE_INT(s32, int32_t, uint32_t)
DEFINE_INT(s64, int64_t, uint64_t)
DEFINE_INT(u8, uint8_t, uint8_t)
DEFINE_INT(u16, uint16_t, uint16_t)
DEFINE_INT(u32, uint32_t, uint32_t)
DEFINE_INT(u64, uint64_t, uint64_t)

/* ---- floats ---- */

/* Sums and products are carried in f64. */
#define DEFINE_SUMS(NAME, T, NARROW)                               \
  DEFINE_SCAN(sum_##NAME, T, double, SAME, NARROW, SUM, FROM_ZERO) \
  DEFINE_SCAN(product_##NAME, T, double, SAME, NARROW, PRODUCT, SAME)
#define TO_F32(x) ((float)(x))
DEFINE_SUMS(f32, float, TO_F32)
DEFINE_SUMS(f64, double, SAME)

/* Halves become f32 first, and are rounded from f32. Elements that go down are turned as f32. */
static void turn(float *x, int64_t count) {
  for (int64_t i = 0; i < count / 2; i++) {
    const float last = x[count - 1 - i];
    x[count - 1 - i] = x[i];
    x[i] = last;
  }
}

static void widen_half(ts_dtype type, const uint16_t *x, int64_t step, int64_t count, float *out) {
  static const float one = 1;
  const uint16_t *from = step > 0 ? x : x - (count - 1);
  ts_gemm_widen_host()->to_f32(&(gemm_widen_rows){
      .type = type, .from = (const char *)from, .rows = 1, .count = count, .out = (char *)out, .scales = &one});
  if (step < 0) turn(out, count);
}

static void narrow_half(ts_dtype type, float *x, int64_t step, int64_t count, uint16_t *out) {
  if (step < 0) turn(x, count);
  ts_gemm_widen_host()->narrow(type, x, count, step > 0 ? out : out - (count - 1));
}

#define DEFINE_HALF(NAME, TYPE)                                                                               \
  static void up_##NAME(const uint16_t *x, int64_t step, int64_t count, float *out) {                         \
    widen_half(TYPE, x, step, count, out);                                                                    \
  }                                                                                                           \
  static void down_##NAME(float *x, int64_t step, int64_t count, uint16_t *out) {                             \
    narrow_half(TYPE, x, step, count, out);                                                                   \
  }                                                                                                           \
  DEFINE_STAGED(sum_##NAME, uint16_t, float, double, sum_f32, up_##NAME, down_##NAME, SUM, TO_F32, FROM_ZERO) \
  DEFINE_STAGED(product_##NAME, uint16_t, float, double, product_f32, up_##NAME, down_##NAME, PRODUCT, TO_F32, SAME)
DEFINE_HALF(f16, TS_F16)
DEFINE_HALF(bf16, TS_BF16)

/* Minima and maxima are those of the keys K (kernel/scan/scan_keys.h), integers of type KEYS. */
#define MOVE_KEYS(to, from, count, step_to, step_from, CONVERT) \
  for (int64_t i = 0; i < (count); i++) (to)[i * (step_to)] = CONVERT((from)[i * (step_from)]);
#define DEFINE_KEYS(NAME, T, K, WHICH)                                                                   \
  INLINE void keys_##WHICH##_##NAME(const T *restrict x, int64_t step, int64_t count, K *restrict out) { \
    if (step == 1)                                                                                       \
      MOVE_KEYS(out, x, count, 1, 1, ts_scan_##WHICH##_##NAME)                                           \
    else                                                                                                 \
      MOVE_KEYS(out, x, count, 1, -1, ts_scan_##WHICH##_##NAME)                                          \
  }
#define DEFINE_EXTREMES(NAME, T, K, KEYS, PANEL_OF)                                              \
  DEFINE_KEYS(NAME, T, K, low)                                                                   \
  DEFINE_KEYS(NAME, T, K, high)                                                                  \
  INLINE void values_##NAME(const K *restrict x, int64_t step, int64_t count, T *restrict out) { \
    if (step == 1)                                                                               \
      MOVE_KEYS(out, x, count, 1, 1, ts_scan_value_##NAME)                                       \
    else                                                                                         \
      MOVE_KEYS(out, x, count, -1, 1, ts_scan_value_##NAME)                                      \
  }                                                                                              \
  DEFINE_STAGED_LINES(min_##NAME, T, K, K, min_##KEYS, keys_low_##NAME, values_##NAME)           \
  DEFINE_STAGED_LINES(max_##NAME, T, K, K, max_##KEYS, keys_high_##NAME, values_##NAME)          \
  PANEL_OF(min_##NAME, NAME, T, K, low, INT_MIN_OF)                                              \
  PANEL_OF(max_##NAME, NAME, T, K, high, INT_MAX_OF)                                             \
  FEW_KEYS(min_##NAME, NAME, T, K, low, INT_MIN_OF)                                              \
  FEW_KEYS(max_##NAME, NAME, T, K, high, INT_MAX_OF)                                             \
  DEFINE_AROUND(min_##NAME, T, K, INT_MIN_OF)                                                    \
  DEFINE_AROUND(max_##NAME, T, K, INT_MAX_OF)
/* Of 32 bits, keys are made in vectors while a panel is scanned. */
#define PANEL_AT_ONCE(SCAN, NAME, T, K, WHICH, OP) \
  DEFINE_PANEL(SCAN, T, K, ts_scan_##WHICH##_##NAME, ts_scan_value_##NAME, OP, SAME)
#define FEW_KEYS(SCAN, NAME, T, K, WHICH, OP)                                 \
  DEFINE_FOUR(SCAN, T, K, ts_scan_##WHICH##_##NAME, ts_scan_value_##NAME, OP) \
  DEFINE_FEW(SCAN, T, K, ts_scan_##WHICH##_##NAME, ts_scan_value_##NAME, OP, SAME, sizeof(T) < 8 ? 3 : 2)
#define PANEL_STAGED(SCAN, NAME, T, K, WHICH, OP) \
  DEFINE_STAGED_PANEL(SCAN, T, K, K, keys_##WHICH##_##NAME, values_##NAME, OP, SAME, SAME)
DEFINE_EXTREMES(f16, uint16_t, int32_t, s32, PANEL_AT_ONCE)
DEFINE_EXTREMES(bf16, uint16_t, int32_t, s32, PANEL_AT_ONCE)
DEFINE_EXTREMES(f32, float, int32_t, s32, PANEL_AT_ONCE)
DEFINE_EXTREMES(f64, double, int64_t, s64, PANEL_STAGED)

/* From the identity, as in the meaning: 1 times a number may change a zero's sign, and infinities. */
#define FROM_ONE(x) (ts_c128_product(1, x))
#define WIDE(x) ((ts_c128)(x))
#define NARROW(x) ((ts_c64)(x))
#define DEFINE_COMPLEX(NAME, T, LOAD, STORE) \
  DEFINE_SCAN(product_##NAME, T, ts_c128, LOAD, STORE, ts_c128_product, FROM_ONE)
DEFINE_COMPLEX(c64, ts_c64, WIDE, NARROW)
DEFINE_COMPLEX(c128, ts_c128, SAME, SAME)

#define FNS(NAME) \
  { lines_##NAME, panels_##NAME, line_blocks_##NAME, panel_blocks_##NAME, combine_##NAME, NARROW_LINES }
#define STAGED_FNS(NAME) \
  { lines_##NAME, panels_##NAME, line_blocks_##NAME, panel_blocks_##NAME, combine_##NAME, NARROW_STAGED }
#define ROW(N) \
  { FNS(sum_##N), FNS(product_##N), FNS(max_##N), FNS(min_##N) }
/* A call for each step of a panel costs as much as some elements. */
#define NARROW_LINES 4
#define NARROW_STAGED 16
#define HALF_ROW(N) \
  { STAGED_FNS(sum_##N), STAGED_FNS(product_##N), FNS(max_##N), FNS(min_##N) }
#define F64_ROW(N) \
  { FNS(sum_##N), FNS(product_##N), STAGED_FNS(max_##N), STAGED_FNS(min_##N) }
#define NO_FNS \
  { NULL, NULL, NULL, NULL, NULL, 0 }
#define ONLY_PRODUCT(N) \
  { NO_FNS, FNS(product_##N) }

const ts_scan_table ISA(ts_scan_table) = {[TS_S8] = ROW(s8),
                                          [TS_S16] = ROW(s16),
                                          [TS_S32] = ROW(s32),
                                          [TS_S64] = ROW(s64),
                                          [TS_U8] = ROW(u8),
                                          [TS_U16] = ROW(u16),
                                          [TS_U32] = ROW(u32),
                                          [TS_U64] = ROW(u64),
                                          [TS_F16] = HALF_ROW(f16),
                                          [TS_BF16] = HALF_ROW(bf16),
                                          [TS_F32] = ROW(f32),
                                          [TS_F64] = F64_ROW(f64),
                                          [TS_C64] = ONLY_PRODUCT(c64),
                                          [TS_C128] = ONLY_PRODUCT(c128)};
