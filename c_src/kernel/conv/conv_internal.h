/* The common parts of the convolution's files: conv.c plans and computes by products, conv_depthwise.c with channels in
 * the lanes of vectors. Thread-safe: functions use only their arguments. */
#ifndef TS_KERNEL_CONV_INTERNAL_H
#define TS_KERNEL_CONV_INTERNAL_H

#include "base/cancel.h"
#include "jit/emit/gemm_emit.h"
#include "kernel/conv/window_lanes.h"
#include "kernel/gemm/gemm.h"
#include "kernel/routine.h"

/* Spatial dims that are not of one element. The interpreter computes convolutions with more. */
enum { CONV_SPATIAL = 4 };

typedef struct conv_dim {
  int64_t n, kernel, stride, low, high, input_dilation, kernel_dilation, out;
  int64_t step; /* bytes */
} conv_dim;

/* Output points of one dim whose taps read elements of the operand at the same distances. Without dilation of the
 * operand all points are one phase, as they are where the stride is a multiple of the dilation; with it, each phase has
 * the taps that do not fall between elements. */
typedef struct conv_phases {
  int64_t count;  /* point `p` is number p / count of phase p % count */
  int64_t stride; /* elements of the operand from a point of a phase to the next one */
  int64_t first;  /* the first element that a tap reads for number 0 of any phase */
  int64_t span;   /* elements from there to the last one */
} conv_phases;

/* A phase of both dims: its taps in pieces (ts_gemm_piece). */
typedef struct conv_phase {
  const ts_gemm_piece *pieces;
  int64_t count; /* 0: all taps fall between elements */
} conv_phase;

/* A convolution of few features (conv_few.c). Points of the output are columns of a product. */
typedef struct conv_few {
  bool used;
  int height;         /* index of the tile's height */
  int64_t wide, high; /* elements along x of a line, lines above what rows of outputs have, of one residue */
  int64_t plane;      /* elements from a channel to the next one, in a task of the most rows */
  const ts_gemm_piece *pieces;
  int64_t count;
} conv_few;

/* The tiles of some points of a row: the height of the first one, and their time. */
typedef struct conv_tiles {
  int16_t height, cost;
} conv_tiles;

/* A convolution of one or two spatial dims whose rows of lhs are not packed (conv_direct.c, conv_phases.c). */
typedef struct conv_direct {
  bool used, copies; /* copies: lines, with their padding */
  bool panels;       /* the kernel is packed (conv_panels.c) */
  int64_t batch;     /* 1 where its elements are points of one row */
  conv_dim y, x;     /* y is of one element when there is one spatial dim */
  conv_phases along_y, along_x;
  const conv_phase *phases; /* of y, of x */
  conv_few few;
  int tallest;                              /* index of the height of the first tiles */
  conv_tiles tiles[2 * TS_GEMM_MAX_HEIGHT]; /* of so many points */
  int64_t line_bytes;                       /* of a line that taps read, in the copy or in the operand */
  int64_t rows, points;                     /* of outputs in a task, and of each of its rows, at most */
} conv_direct;

typedef struct conv_state {
  ts_dtype type;
  int64_t size, batch, channels, groups;
  int32_t rank;
  conv_dim dims[CONV_SPATIAL];       /* of the operand or of its padded copy, which taps read */
  conv_dim source[CONV_SPATIAL];     /* of the operand, when it is copied */
  bool copies, inside;               /* makes a padded copy; all taps are in bounds */
  int64_t source_bytes, batch_bytes; /* of an element of the batch: in the operand, in the memory that taps read */
  int64_t run;                       /* elements that one tap reads */
  int64_t taps;                      /* of the kernel; a row of taps that read one run counts as one */
  int64_t outputs;                   /* output positions of one element of the batch */
  const int64_t *distances;          /* of each tap from the first one, in each dim, with dilation */
  const int64_t *distance_bytes;
  const char *zeros;    /* `run` of them */
  ts_window_dot_fn dot; /* depthwise; NULL: a product */
  ts_window_strip_fn strip;
  conv_direct direct;
  ts_gemm_shape shape;
  ts_gemm *gemm;
  ts_kernel_source kernel;
  ts_epilogue_space space;
  ts_weights weights; /* of a product of packed rows, or of panels */
} conv_state;

typedef struct conv_run {
  const conv_state *s;
  const char *x, *kernel; /* x: the operand, or its padded copy */
  const char *source;
  const char *panels; /* direct: the packed kernel, or NULL */
  char *copy, *out, *workers;
  int64_t worker_bytes, step;  /* of a task: rows */
  int64_t points;              /* depthwise: points of the last dim in a task; direct: pieces of a single row */
  int64_t pieces;              /* depthwise: of a row; direct: of an element of the batch */
  int64_t parts;               /* direct: of the features */
  bool streams;                /* depthwise: stores bypass the caches */
  bool has_special;            /* direct, with taps that are left out: the kernel has infinities or NaNs */
  const ts_epilogue *epilogue; /* direct; NULL: none */
  const _Atomic bool *cancel;
} conv_run;

static inline int64_t conv_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t conv_max(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t conv_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* How many rows that are so many bytes apart can have a line each in L1. A way of L1 is a page. */
static inline int64_t conv_rows_in_l1(int64_t bytes) {
  enum { WAY = 4096 };
  int64_t sets = 1;
  while (sets < WAY / 64 && bytes * sets % WAY != 0) sets *= 2;
  return sets * (ts_target_host()->l1_bytes / WAY);
}

static inline int64_t conv_count_phases(const conv_direct *d) { return d->along_y.count * d->along_x.count; }
/* Whether there may be taps that fall between elements. */
static inline bool conv_leaves_taps(const conv_direct *d) { return d->y.input_dilation > 1 || d->x.input_dilation > 1; }

/* The most lines that some neighbouring rows of outputs read. */
static inline int64_t conv_count_lines(const conv_direct *d, int64_t rows) {
  return conv_ceil_div(rows - 1, d->along_y.count) * d->along_y.stride + d->along_y.span;
}

/* Elements from the first one that a tap reads for the first of some neighbouring points to the last one. */
static inline int64_t conv_count_wide(const conv_phases *p, int64_t points) {
  return (conv_ceil_div(points, p->count) - 1) * p->stride + p->span;
}

/* True for a single row, which tasks cut in pieces. A row is mended as a whole. */
static inline bool conv_is_cut(const conv_direct *d) { return d->y.out == 1 && !conv_leaves_taps(d); }

/* The time of the tiles of a row, in points that the highest tiles compute. */
static inline int64_t conv_count_computed(const conv_direct *d, const ts_gemm_geometry *g, int64_t points) {
  const int64_t whole = conv_max(0, points / g->rows[0] - 1) * g->rows[0];
  return whole + d->tiles[points - whole].cost;
}

/* The position of the kernel for each of some rows of lhs. */
typedef struct conv_rows {
  int64_t count;
  const char *base[TS_GEMM_MAX_ROWS];            /* first element of the batch element and the group */
  const char *start[TS_GEMM_MAX_ROWS];           /* the first tap's element; NULL when a tap is out of bounds */
  int64_t first[TS_GEMM_MAX_ROWS][CONV_SPATIAL]; /* index of the first tap in each dim */
} conv_rows;
_Static_assert(sizeof(conv_rows) <= TS_GEMM_ROW_STATE, "no room for the state of rows");

/* ---- conv_rows.c ---- */

/* Notes rows [row, row + count) of lhs. */
void ts_conv_start_rows(const void *context, int64_t group, int64_t row, int64_t count, void *state);
/* The address of the run that a tap reads, plus `offset` bytes. */
const char *ts_conv_find_row(const conv_state *s, const conv_rows *r, int64_t row, int64_t tap, int64_t offset);
/* Bytes from the base to the element at index first + distance in the first `rank` dims; -1 for padding. */
int64_t ts_conv_element_bytes(const conv_state *s, int32_t rank, const int64_t *first, const int64_t *distance);

/* One line along the last dim into `wide` elements of `bytes` each, with zeros for padding. */
void ts_conv_copy_line(const conv_dim *d, int64_t wide, int64_t bytes, const char *from, char *to);

/* ---- conv_direct.c ---- */

/* False when packed rows are needed, or are faster. The state must have its dims with their steps; sets `used`. */
bool ts_conv_plan_direct(conv_state *s, int64_t features);
/* The workspace of each thread, when the gemm is there. */
int64_t ts_conv_direct_bytes(const conv_state *s);
void ts_conv_run_direct(conv_run *run, const ts_parallel *parallel);

/* ---- conv_cut.c ---- */

/* Tiles of points in a piece of a row, at least. */
enum { CONV_PIECE_TILES = 4 };
/* Cuts a direct convolution into tasks for so many threads: sets `pieces`, `step`, `points` and `parts`. */
void ts_conv_cut(conv_run *run, int width);

/* ---- conv_panels.c ---- */

/* A task of fewer points would read the panels for too few sums. */
enum { CONV_PANEL_POINTS = 112 };
/* True if each panel stays in L2. */
bool ts_conv_panels_fit(const conv_state *s, const ts_gemm_geometry *g, int64_t taps);
/* True if panels stay in L1, and a kernel as it lies does not: its rows compete for a few sets. */
bool ts_conv_panels_gain(const conv_state *s, const ts_gemm_geometry *g, int64_t taps, int64_t features);
int64_t ts_conv_panel_bytes(const conv_state *s);
int64_t ts_conv_count_panels(const conv_state *s);
/* The panels that are computed for all points of a task before the next ones. */
int64_t ts_conv_group_panels(const conv_state *s);
/* Packs the kernel. */
void ts_conv_pack_panels(const conv_run *run, const ts_parallel *parallel, char *out);
/* Says how the kernel is packed once for many runs, where that is worth it. */
bool ts_conv_keeps_panels(const conv_state *s, ts_weights *out);

/* ---- conv_phases.c ---- */

/* False when no tap reads an element, or distances are very large. */
bool ts_conv_find_phases(const conv_dim *d, conv_phases *out);
/* The tables of a direct convolution. */
ts_status ts_conv_plan_phases(conv_state *s, ts_arena *arena);
/* Whether taps are left out and the kernel has infinities or NaNs. */
bool ts_conv_has_special(const conv_run *run);
/* Taps between elements multiply by zero. They were left out of a row of outputs; this adds what differs by that. */
void ts_conv_mend_row(const conv_run *run, int64_t batch, int64_t row);

/* ---- conv_few.c ---- */

/* False when tiles with features as columns are faster, or needed. The state must have its direct dims. */
bool ts_conv_plan_few(conv_state *s, const ts_gemm_geometry *g, int64_t features);
ts_status ts_conv_plan_few_pieces(conv_state *s, ts_arena *arena);
/* The workspace of a run, and of each thread. */
int64_t ts_conv_few_shared_bytes(const conv_state *s);
int64_t ts_conv_few_bytes(const conv_state *s);
void ts_conv_run_few(conv_run *run, const ts_parallel *parallel);

/* ---- conv_depthwise.c ---- */

/* The workspace of each thread. */
int64_t ts_conv_depthwise_bytes(const conv_state *s);
void ts_conv_run_depthwise(conv_run *run, const ts_parallel *parallel);

#endif
