/* The inner kernels of matrix products, as kernel/gemm/gemm.c calls them; no LLVM types. Kernels are pure functions of
 * their arguments; a geometry is constant for the host. */
#ifndef TS_JIT_GEMM_EMIT_H
#define TS_JIT_GEMM_EMIT_H

#include "jit/jit.h"
#include "jit/session/target.h"
#include "tensor/dtype.h"

/* The type of the products. */
typedef enum ts_gemm_compute {
  TS_GEMM_F32,
  TS_GEMM_F64,
  TS_GEMM_I32,
  TS_GEMM_I64,
  TS_GEMM_ELEMENT_COUNT, /* types of elements that every kernel computes in */
  /* Only tiles: an element is two steps of k in 16 bits each, whose products are summed in 32 bits. Exact modulo 2^32
   * for elements of s16 and narrower ones. */
  TS_GEMM_PAIRS = TS_GEMM_ELEMENT_COUNT,
  TS_GEMM_COMPUTE_COUNT
} ts_gemm_compute;

#define TS_GEMM_HEIGHTS 3 /* tile heights, descending */
#define TS_GEMM_WIDTHS 2  /* tile widths: the full one and one vector */
#define TS_GEMM_MAX_HEIGHT 16
#define TS_GEMM_MAX_LANES 16

typedef struct ts_gemm_geometry {
  ts_gemm_compute compute;
  int element_size;
  int lanes;                 /* elements in one machine vector */
  int vectors;               /* vectors across the full tile width */
  int rows[TS_GEMM_HEIGHTS]; /* tile heights */
  int panel;                 /* elements from one k to the next in packed lhs: rows[0], rounded up to whole vectors */
  int small;                 /* the largest height of a tile of SMALL */
  bool masked;               /* TILE and STRIDED write TS_GEMM_COLS columns; if false, always their full width */
  bool fma;                  /* fused multiply-adds; if false, separate ones: the machine has no FMA */
} ts_gemm_geometry;

void ts_gemm_get_geometry(ts_gemm_compute compute, const ts_target *target, ts_gemm_geometry *out);

typedef enum ts_gemm_kernel {
  /* One tile of out over a range of k. `begin` is height index * TS_GEMM_WIDTHS + (0: full width, 1: one vector). After
   * TS_GEMM_CHAIN steps the accumulators are added to out, and start again from 0 (tensor/contract_order.h). */
  TS_GEMM_TILE,
  /* The same, but lhs is not packed: its rows are at one distance from each other, and the steps of k are pieces
   * (ts_gemm_piece), which also say where chains end. */
  TS_GEMM_STRIDED,
  /* TS_GEMM_TILES tiles at equal distances, whose lhs is not packed: its rows and its steps of k are at any distances.
   * `begin` is (height - 1) * ts_gemm_small_widths + ts_gemm_small_width, of any height up to the geometry's `small`.
   */
  TS_GEMM_SMALL,
  /* out[i][j] += sum over k of v[k][i] * x[k * stride + j] for j in [begin, end), i in [0, items): x is contiguous
   * across results. */
  TS_GEMM_AXPY,
  /* out[i][j] = sum over k of v[k][i] * x[j * stride + k] for j in [begin, end), whose length is a multiple of
   * `lanes`, and i in [0, items): x is contiguous along k. There are at least 16 bytes along k. */
  TS_GEMM_DOT,
  TS_GEMM_KERNEL_COUNT
} ts_gemm_kernel;

/* The numbers of vectors that AXPY and DOT process together: 1, 2, 4 or 8. The results of consecutive vectors are
 * TS_GEMM_ITEM_BYTES apart, an odd number of cache lines. */
#define TS_GEMM_MAX_ITEMS 8
#define TS_GEMM_ITEM_BYTES (8192 + 64)

/* Words of `args`. Strides are in bytes. Element addresses need only the element's alignment. */
enum {
  TS_GEMM_K,          /* all but STRIDED: >= 1 */
  TS_GEMM_LHS,        /* TILE: packed lhs. STRIDED: where `lhs` of pieces begins. AXPY, DOT: v, dense [k][items] */
  TS_GEMM_RHS,        /* TILE: first row of the columns. AXPY, DOT: x */
  TS_GEMM_RHS_STRIDE, /* TILE, SMALL, AXPY: from k to k + 1. DOT: from row to row */
  TS_GEMM_OUT,
  TS_GEMM_OUT_STRIDE,  /* TILE: from row to row */
  TS_GEMM_COLS,        /* TILE, SMALL: 1 .. tile width */
  TS_GEMM_CONTINUE,    /* TILE: not 0: accumulators of the first chain start from out's elements, else from 0 */
  TS_GEMM_CHAIN,       /* all but AXPY and STRIDED: >= 1: steps of k of one chain */
  TS_GEMM_ADDS,        /* TILE, SMALL: not 0: the first chain is also added to out's elements */
  TS_GEMM_ITEMS,       /* AXPY, DOT */
  TS_GEMM_LHS_STRIDE,  /* STRIDED, SMALL: from row to row of lhs */
  TS_GEMM_LHS_STEP,    /* SMALL: from k to k + 1 of lhs */
  TS_GEMM_PIECES,      /* STRIDED: ts_gemm_piece, one after the other, and room for one more */
  TS_GEMM_PIECE_COUNT, /* STRIDED: >= 1 */
  TS_GEMM_TILES,       /* SMALL: >= 1 */
  TS_GEMM_NEXT_LHS,    /* SMALL: from tile to tile */
  TS_GEMM_NEXT_RHS,
  TS_GEMM_NEXT_OUT,
  TS_GEMM_LATER,      /* TILE: memory that later calls read. Each step of k prefetches a line to the second cache */
  TS_GEMM_LATER_STEP, /* TILE: bytes from a step's to the next one's */
  TS_GEMM_OUT_AHEAD,  /* TILE: bytes from out to that of the next call, which is prefetched */
  TS_GEMM_ARGS
};

/* The widths of tiles of SMALL: two vectors of `lanes` elements, or one, of half as many, and so on, and one element.
 * The two may overlap, so they need no masks. Shorter ones are masked, or come in pairs that may overlap as well. */
static inline int ts_gemm_small_widths(const ts_gemm_geometry *g) {
  int halves = 0;
  for (int lanes = g->lanes; lanes > 1; lanes /= 2) halves++;
  return g->masked ? 2 + halves : 1 + 2 * halves;
}

static inline int ts_gemm_small_width(const ts_gemm_geometry *g, int64_t cols) {
  int width = 0, lanes = g->lanes;
  if (cols > lanes) return 0;
  if (g->masked) {
    for (width = 1; lanes / 2 >= cols && lanes > 1; lanes /= 2) width++;
    return width;
  }
  for (; lanes > cols; lanes /= 2) width += 2;
  return cols == lanes && lanes > 1 ? width + 1 : width;
}

/* Steps of k whose elements are contiguous in a row of lhs. */
typedef struct ts_gemm_piece {
  int64_t lhs; /* bytes */
  int64_t rhs; /* the first row of rhs, and bytes from it */
  int64_t rhs_bytes;
  int64_t steps; /* >= 1 */
  int64_t ends;  /* not 0: the chain ends after them; so it does after the last piece */
} ts_gemm_piece;

/* Text and source of one kernel for `target`. `x` is the type of the matrix in memory for AXPY and DOT where it is
 * narrower than the compute type: an 8- or 16-bit type, or one of 32 bits for f64; else TS_DTYPE_NONE. `request` must
 * outlive the request to the JIT. */
#define TS_GEMM_TEXT_BYTES 96
typedef struct ts_gemm_request {
  ts_gemm_geometry geometry;
  ts_gemm_kernel kernel;
  ts_dtype x;
  char text[TS_GEMM_TEXT_BYTES];
} ts_gemm_request;
/* True for the types of products; the interpreter computes others. */
bool ts_gemm_has_type(ts_dtype dtype);
/* The compute type of products of this type; false where the elements must be widened first. */
bool ts_gemm_is_native(ts_dtype dtype, ts_gemm_compute *out);
void ts_gemm_make_source(ts_gemm_compute compute, ts_gemm_kernel kernel, ts_dtype x, const ts_target *target,
                         ts_gemm_request *request, ts_kernel_source *out);

/* Number of types of x that are widened. */
#define TS_GEMM_NARROW_TYPES 6

/* The source of built-in kernel number `index`. The last one is the tile of pairs. */
#define TS_GEMM_BUILTINS (TS_GEMM_ELEMENT_COUNT * TS_GEMM_KERNEL_COUNT + TS_GEMM_NARROW_TYPES * 2 + 1)
void ts_gemm_make_builtin(int index, const ts_target *target, ts_gemm_request *request, ts_kernel_source *out);

#endif
