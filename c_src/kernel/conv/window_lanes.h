/* The inner loops of windows, compiled once for each instruction set (window_body.h). Internal to kernel/. Pure,
 * thread-safe. */
#ifndef TS_KERNEL_WINDOW_LANES_H
#define TS_KERNEL_WINDOW_LANES_H

#include "ir/combiner.h"
#include "tensor/dtype.h"

#include <stdbool.h>
#include <stdint.h>

/* The taps of a window that are in bounds, in row-major order: rows[r] + offset + s * step, in bytes. */
typedef struct ts_window_taps {
  const char *const *rows;
  int64_t row_count, offset, steps, step;
  bool streams; /* stores may bypass the caches: results are whole, aligned cache lines */
} ts_window_taps;

/* Folds `count` windows whose elements are `stride` elements apart, into `out`. */
typedef void (*ts_window_fold_fn)(const ts_window_taps *taps, int64_t stride, int64_t count, void *out);

/* The number of the tap that each of `count` <= TS_WINDOW_PICKS windows selects. */
typedef void (*ts_window_pick_fn)(const ts_window_taps *taps, int64_t stride, int64_t count, int32_t *best);

/* Adds from[i] to the element that window i of `count` selects, window by window. `out`: bytes from a tap to the
 * element of the result; `stride`: elements from window to window. */
typedef void (*ts_window_add_fn)(const ts_window_taps *taps, int64_t out, int64_t stride, const void *from,
                                 const int32_t *best, int64_t count);

/* Windows along one dim, each of which is `columns` neighbours. Distances are in bytes. */
typedef struct ts_window_line {
  int64_t count, columns;
  int64_t step, source_step; /* from a window to the next one: of taps, and of elements of the source */
  int64_t out;               /* from a tap to the element of the result */
  const char *source;
} ts_window_line;

/* Selects as a pick, and adds as an add. */
typedef void (*ts_window_scatter_fn)(const ts_window_taps *taps, const ts_window_line *line);

enum { TS_WINDOW_DOTS = 4 };

/* Weights of a depthwise convolution: of each tap a row of one for each channel. */
typedef struct ts_window_weights {
  const char *data;
  int64_t taps, count; /* count: channels */
} ts_window_weights;

/* For up to TS_WINDOW_DOTS points of the output: out[r * count + i] = fma chain over the taps t of
 * taps[t * TS_WINDOW_DOTS + r][i] * weights[t * count + i], from +0. */
typedef void (*ts_window_dot_fn)(const char *const *taps, int points, const ts_window_weights *weights, void *out);

/* Points of the output of a depthwise convolution that are neighbours along the last dim. Elements of that dim are
 * channels apart. */
typedef struct ts_window_strip {
  const char *const *lines;      /* the line for each row of taps, from its first element on; NULL: padding */
  int64_t line_count, line_taps; /* rows of taps; taps of a row */
  int64_t n, first;              /* elements of a line; the element for the first tap of the first point */
  int64_t stride, dilation;      /* elements from point to point, from tap to tap */
  const ts_window_weights *weights;
  /* If not 0, there is a second row, `pair` elements after the first; its lines are the second to one more. */
  int64_t pair;
  bool streams; /* stores bypass the caches: rows of channels are whole, aligned cache lines */
} ts_window_strip;

/* out[p * channels + i] for `count` points, as ts_window_dot_fn has it; elements outside of a line are 0. */
typedef void (*ts_window_strip_fn)(const ts_window_strip *strip, int64_t count, void *out);

/* Picks may write some more than they are asked for. */
enum { TS_WINDOW_PICKS = 256, TS_WINDOW_SLACK = 16 };

typedef struct ts_window_lanes {
  int64_t vector_bytes;
  ts_window_fold_fn folds[TS_DTYPE_COUNT][TS_COMBINE_NUMBERS]; /* by ts_combine; of complex numbers the product */
  ts_window_pick_fn picks[TS_DTYPE_COUNT][2];                  /* max, min */
  ts_window_add_fn adds[TS_DTYPE_COUNT];
  ts_window_scatter_fn scatters[TS_DTYPE_COUNT][2]; /* max, min; of elements of four bytes */
  ts_window_dot_fn dots[TS_DTYPE_COUNT];            /* floats only */
  ts_window_strip_fn strips[TS_DTYPE_COUNT];
} ts_window_lanes;

/* The functions for the instruction set of the host. */
const ts_window_lanes *ts_window_lanes_host(void);
/* The same for so many bytes of channels: with shorter vectors where those are less than one. */
const ts_window_lanes *ts_window_lanes_for(int64_t bytes);

extern const ts_window_lanes ts_window_lanes_base;
#if defined(__x86_64__)
extern const ts_window_lanes ts_window_lanes_avx2, ts_window_lanes_avx512;
#endif

#endif
