/* Fourier transforms of any length along one axis, of interleaved complex or real numbers in f32 or f64.
 *
 * Lengths with no prime factor above TS_FFT_MOST_RADIX take Stockham passes (fft_vector.h), others Bluestein's
 * convolution in a length with small factors. A plan holds all constants, and its memory is the arena's that made it.
 * Plans are read-only, and any number of threads may run one. The bits of a result depend on the plan and the shape
 * only. */
#ifndef TS_KERNEL_FFT_H
#define TS_KERNEL_FFT_H

#include "base/arena.h"
#include "base/parallel.h"
#include "kernel/fft/fft_vector.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum ts_fft_kind {
  TS_FFT_FORWARD,     /* complex or real to complex */
  TS_FFT_INVERSE,     /* the same, and times 1 / n */
  TS_FFT_REAL,        /* real to the first n / 2 + 1 of the transform */
  TS_FFT_REAL_INVERSE /* such a half to n real numbers, times 1 / n; imaginary parts that must be 0 are not read */
} ts_fft_kind;

typedef struct ts_fft_request {
  ts_dtype part; /* TS_F32 or TS_F64: of a real number, or of both parts of a complex one */
  ts_fft_kind kind;
  bool real;            /* the operand, for the first two kinds */
  int64_t n;            /* points of the transform, >= 1 */
  int64_t in_points;    /* of the operand along the axis: those it lacks are 0, those past n are not read */
  int64_t outer, inner; /* the product of the dims before and after the axis */
} ts_fft_request;

/* A Stockham transform of columns. */
#define TS_FFT_PASSES 24
typedef struct ts_fft_engine {
  int64_t n;
  int passes;
  ts_fft_pass pass[TS_FFT_PASSES];
} ts_fft_engine;

/* A complex transform of n points of one line: by columns of n1 in n2 columns, then of n2 in n1 columns. With n1 = 0
 * one engine of n, with a line in each column. */
typedef struct ts_fft_core {
  int64_t n, n1, n2;
  int64_t turned_row;          /* elements of a row between the two */
  ts_fft_engine first, second; /* without n1 only the first */
  ts_fft_rows twiddles;        /* of every block of columns: padded rows of n1 */
} ts_fft_core;

typedef struct ts_fft {
  ts_fft_request request;
  const ts_fft_vector *vector;
  int size, columns;           /* bytes of a part; columns of a block */
  int64_t points;              /* of the complex transform of a line: n, or n / 2 of pairs */
  bool pairs;                  /* a real line as half as many complex numbers */
  bool direct;                 /* columns where they are, by `core.first` */
  ts_fft_core core;            /* of `points`, or of Bluestein's length */
  ts_fft_rows chirp, spectrum; /* Bluestein's constants; a NULL re: none */
  ts_fft_rows half;            /* of pairs: exp(-pi i k / points) */
  int64_t out_points;          /* of the result along the axis */
  int64_t line, group;         /* elements of a line in the workspace; lines of a group */
  int64_t bundle;              /* at most so many lines of another axis are moved at once */
  int64_t thread_bytes;        /* workspace of a thread */
  bool shared;                 /* all threads share each line */
  int64_t shared_bytes;        /* workspace of a run, for these lines */
  int64_t in_bytes, out_bytes; /* of a line */
  int64_t in_ahead, out_ahead; /* bytes of a line that are asked for, or 0 */
  int64_t share;               /* of them in one step, whole cache lines */
  double factors[4];           /* of numbers that lanes store (store_lines); here, since vectors read them at once */
  double group_ns;             /* estimate */
} ts_fft;

/* A run: operand and result, `thread_bytes` for each worker of `parallel`, and `shared_bytes`. */
typedef struct ts_fft_run {
  const void *in;
  void *out;
  char *workspace, *shared;
  const ts_parallel *parallel;
  const _Atomic bool *cancel; /* may be NULL */
} ts_fft_run;

/* TS_RESOURCE_EXHAUSTED where constants or workspace do not fit; TS_CANCELLED soon after `cancel`, which may be NULL,
 * becomes true: constants of a long line take as long as its transform. */
ts_status ts_fft_plan(const ts_fft_request *request, ts_arena *arena, const _Atomic bool *cancel, ts_fft *out);
ts_status ts_fft_execute(const ts_fft *fft, const ts_fft_run *run);

/* ---- fft_core.c, for fft.c and fft_plan.c ---- */

/* Memory that is needed soon. Each step of a transform prefetches a share of it: a core waits for few cache lines at
 * once, and stands still if it requests all of them together. */
typedef struct ts_fft_ahead {
  const char *result, *result_end;   /* to be written */
  const char *operand, *operand_end; /* to be read, after that */
  int64_t share;
} ts_fft_ahead;

/* Workspace of the core for `lines` of `line` elements each: bytes; where its parts are. */
typedef struct ts_fft_scratch {
  ts_fft_rows blocks[2], turned;
  ts_fft_ahead *ahead;        /* may be NULL */
  const _Atomic bool *cancel; /* may be NULL; read between blocks of columns of a long line */
} ts_fft_scratch;

static inline bool ts_fft_by_lanes(const ts_fft_core *core) { return core->n1 == 0; }
/* The steps of ts_fft_core_run that ask for memory. */
int64_t ts_fft_core_steps(const ts_fft *fft);
/* Elements of the workspace for one call at a time; of its blocks alone, which come first. */
int64_t ts_fft_scratch_elements(const ts_fft *fft);
int64_t ts_fft_block_elements(const ts_fft *fft);
ts_fft_scratch ts_fft_scratch_at(const ts_fft *fft, char *memory);
static inline char *ts_fft_aligned(char *memory) { return memory + (64 - (uintptr_t)memory % 64) % 64; }
static inline int64_t ts_fft_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ts_fft_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* The part of a line, or of rows, from an element on. */
static inline char *ts_fft_at(const void *data, int64_t elements, int size) {
  return (char *)(uintptr_t)data + elements * size;
}
static inline ts_fft_rows ts_fft_rows_at(const ts_fft_rows *rows, int64_t element, int size) {
  return (ts_fft_rows){ts_fft_at(rows->re, element, size), ts_fft_at(rows->im, element, size), rows->row};
}

/* What blocks of columns read and write. */
typedef struct ts_fft_ends {
  ts_fft_rows line;      /* the transform's: if it swaps, with exchanged parts */
  const ts_fft_rows *by; /* the line with exchanged parts is multiplied by these before; NULL: by none */
  const void *in;        /* read in place of the line: all its numbers, interleaved; NULL: the line */
  void *out;             /* written in place of the line: its numbers times `factors`, interleaved; NULL: the line */
  bool swaps;            /* these two have exchanged parts */
} ts_fft_ends;
/* Some blocks of columns of one line, not by lanes: all of the first ones come before any of the second ones. Blocks
 * are independent, except that the last two have columns in common if there are no whole blocks. */
void ts_fft_first_blocks(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends, int64_t from,
                         int64_t to);
void ts_fft_second_blocks(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_ends *ends, int64_t from,
                          int64_t to);
/* Transforms one line in place, not by lanes. After a cancelled run it holds no transform. */
void ts_fft_core_run(const ts_fft *fft, const ts_fft_scratch *scratch, const ts_fft_rows *line);
/* One block of columns by the first engine, from `in` to the block that is returned. */
const ts_fft_rows *ts_fft_columns(const ts_fft *fft, const ts_fft_engine *engine, const ts_fft_rows *in,
                                  const ts_fft_scratch *scratch);

/* The transform of rows with exchanged parts, exchanged again, is the inverse one. */
static inline ts_fft_rows ts_fft_exchanged(const ts_fft_rows *rows) {
  return (ts_fft_rows){rows->im, rows->re, rows->row};
}

static inline bool ts_fft_swaps(const ts_fft *fft) {
  const ts_fft_request *r = &fft->request;
  return r->kind == TS_FFT_REAL_INVERSE || (r->kind == TS_FFT_INVERSE && !r->real);
}

/* ---- fft_line.c, for fft.c ---- */

/* One line: contiguous numbers of operand and result, which may be the same memory, and the workspace. */
typedef struct ts_fft_line {
  const void *in;
  void *out;
  ts_fft_rows line, other; /* parts; the other only for halves of transforms of real numbers */
  const ts_fft_scratch *scratch;
  const ts_parallel *parallel; /* NULL: the calling thread */
  char *workers;               /* the blocks of each worker, `thread_bytes` apart */
} ts_fft_line;
void ts_fft_line_run(const ts_fft *fft, const ts_fft_line *line);

/* ---- fft_lanes.c, for fft.c ---- */

/* As many lines as columns, each contiguous; `line` and `numbers` of the type, two for a complex number. */
typedef struct ts_fft_lanes {
  const void *in;
  void *out;
  int64_t in_line, in_numbers, out_line, out_numbers;
} ts_fft_lanes;
void ts_fft_lanes_run(const ts_fft *fft, const ts_fft_lanes *lanes, const ts_fft_scratch *scratch);

/* ---- fft_roots.c ---- */

/* Roots of unity to within long double's precision. */
typedef struct ts_fft_roots {
  int64_t n, step;
  long double (*coarse)[2], (*fine)[2];
} ts_fft_roots;
/* On success ends with ts_fft_roots_deinit. */
ts_status ts_fft_roots_init(int64_t n, ts_fft_roots *out);
void ts_fft_roots_deinit(ts_fft_roots *roots);
/* re and im of exp(-2 pi i k / n), 0 <= k < n; exact where they are 0 or 1. */
void ts_fft_root(const ts_fft_roots *roots, int64_t k, long double out[2]);

#endif
