/* The canonical kernel: a loop nest over a collapsed iteration space with a DAG of scalar ops as its body. It has no
 * shapes: extents, strides, scalar constants and addresses are run-time arguments. Its text is its key in the caches. A
 * description is plain data owned by its creator; emission happens in jit/loop.
 *
 * Iteration space: dims 0..rank-1, row-major, the last innermost.
 *   MAP  every point computes and stores; one vector of consecutive inner points at a time.
 *   TILE a MAP of rank >= 2. Some inputs have their unit stride on dim rank-2 instead of the
 *        last: their tiles of lanes x lanes are transposed in registers. With `joined`, the last `joined` + 1 dims are
 *        a row: along them every operand moves as along one dim, except for the lines of these inputs. With `lined`,
 *        the `lined` + 1 dims before the row are a line of these inputs, one element behind the other.
 *   ROW  the last dim is a row: nodes may reduce over it, and later nodes may use the result for
 *        every point of the same row (softmax, layer norm). Row length <= TS_REDUCE_BLOCK where it
 *        contains a reduction. With `members`, a row is of so many columns whose elements take turns: they are reduced
 *        apart, and a row has a value for each (TS_STRIDE_TURN). Then row length <= members * TS_REDUCE_BLOCK.
 *   COL  dim rank-2 is reduced (extent <= TS_REDUCE_BLOCK), the last dim is kept and vectorised.
 *        rank >= 2. Some have code for the shape of their columns (ts_columns).
 *   JOINED a MAP whose last dims are the points of a short row, `members` of them: dims rank-joined .. rank-1, whose
 *        extents are `few`. Dim rank-1-joined counts the rows, at least `rows` of them, whose results lie one behind
 *        the other. So vectors hold several rows. Lanes of inputs are at known distances (TS_STRIDE_NEAR), or in pieces
 *        that are.
 *   INTERLEAVED dim rank-2 has the `members` of a group, the last dim counts groups and is vectorised. Some operands
 *        have groups one behind the other (TS_STRIDE_GROUP), as the colours of points; others are rows of members.
 *        Nodes may reduce over the members. rank >= 2, and 2 <= members <= 16.
 * Reductions follow the tree of tensor/reduce_tree.h over the index of the reduced dim.
 *
 * Work unit: MAP of rank 1: one point. MAP of rank > 1, ROW: one row (index over dims 0..rank-2).
 * With APART and BLOCKS: of dims 0..rank-3. TILE: one row; begin and end are multiples of `lanes` along a line or
 * its end: units are counted as outer * ceil(length of a line / lanes) blocks, in an order of the kernel's own.
 * INTERLEAVED: TS_GROUPS_BLOCK groups, counted as outer * ceil(extent[rank-1] / TS_GROUPS_BLOCK). JOINED:
 * TS_JOINED_BLOCK rows, counted in the same way; a unit may write the end of the one before once more. COL: outer index
 * (dims 0..rank-3) * panels + panel, panels = ceil(extent[rank-1] / TS_COL_PANEL).
 *
 * args, all int64: extents [rank]; then per operand (inputs, then outputs, then indices) an address
 * (an index operand: its start value) and byte strides [rank] (an index operand: steps); then one word per
 * scalar with its bits, memory form. Strides of class ZERO, UNIT and DOWN are present and ignored.
 * The stores of a `stream` output bypass the caches, since it is larger than they are. Its last dim is UNIT, its
 * address and its other strides are multiples of 64 bytes, and in a MAP of rank 1 ranges begin at multiples of
 * TS_STREAM_STEP points: a vector of narrow elements has more of them than the target has lanes.
 *
 * An output may be at the same address as an input whose map equals its own; no other overlap. */
#ifndef TS_JIT_KERNEL_H
#define TS_JIT_KERNEL_H

#include "base/text.h"
#include "ir/op.h"
#include "jit/jit.h"
#include "tensor/reduce_tree.h"
#include "tensor/shape.h"

#define TS_KERNEL_MAX_RANK 8
#define TS_KERNEL_MAX_OPERANDS 48
#define TS_COL_PANEL 128
#define TS_COL_WIDE 64
#define TS_COL_LOW 128 /* rows at most, of LOW */
#define TS_STREAM_STEP 64
#define TS_GROUPS_BLOCK 512 /* a multiple of any number of lanes */
#define TS_JOINED_BLOCK 512
#define TS_JOINED_DIMS 3
#define TS_JOINED_POINTS 64 /* of a row, at most */
#define TS_JOINED_ROWS 64   /* at most as many are joined */
#define TS_JOINED_STEP 127  /* elements, of a distance that is known */
#define TS_NEAR_STEP 4      /* the same, of a ROW or COL */

typedef enum ts_kernel_kind {
  TS_KERNEL_MAP,
  TS_KERNEL_TILE,
  TS_KERNEL_ROW,
  TS_KERNEL_COL,
  TS_KERNEL_INTERLEAVED,
  TS_KERNEL_JOINED
} ts_kernel_kind;

/* WIDE and LOW: at least TS_COL_WIDE columns; one of them may be written twice. LOW has few rows. DENSE: rows of fewer
 * than TS_COL_PANEL columns that lie one behind the other, at least TS_REDUCE_LANES of them; inputs are UNIT or one
 * value for each outer row, and nodes do not depend on an element's place. LONG is a ROW of many integers of 8 or 16
 * bits that are only loaded, UNIT or NEAR, and reduced: vectors have as many of them as a register. SEARCH is a ROW
 * that only finds the first of the best elements, and perhaps its value: it ends at an element that no later one
 * replaces. PARTS is the same where dim rank-2 counts the parts of a row: after a part with such an element, the
 * results of the others are any such elements. APART is a ROW whose elements are in pieces: dim rank-2 counts them, and
 * is reduced as well; it has no reduction of a reduction and no elements for points. BLOCKS is the same for
 * more than TS_REDUCE_BLOCK elements: dim rank-3 counts their blocks, along which no input moves, and a block is a row.
 */
typedef enum ts_columns {
  TS_COLUMNS_ANY,
  TS_COLUMNS_WIDE,
  TS_COLUMNS_LOW,
  TS_COLUMNS_DENSE,
  TS_COLUMNS_LONG,
  TS_COLUMNS_SEARCH,
  TS_COLUMNS_PARTS,
  TS_COLUMNS_APART,
  TS_COLUMNS_BLOCKS
} ts_columns;

typedef enum ts_stride_class {
  TS_STRIDE_ZERO, /* the operand's address does not depend on the dim */
  TS_STRIDE_UNIT, /* consecutive elements (last dim; in TILE also dim rank-2) */
  TS_STRIDE_ANY,
  TS_STRIDE_DOWN, /* consecutive elements downwards; of inputs, along the last dim */
  /* INTERLEAVED, along the last dim: `members` elements, upwards or (inputs only) downwards. Dim rank-2 is then UNIT,
   * or (inputs only) DOWN. */
  TS_STRIDE_GROUP,
  TS_STRIDE_GROUP_DOWN,
  TS_STRIDE_TURN, /* ROW, along the last dim: `members` elements, one for each column */
  /* `step` elements. JOINED, along the dims of rows and points; inputs of ROW and COL, along the last dim: 2 to
   * TS_NEAR_STEP elements, upwards or downwards. */
  TS_STRIDE_NEAR
} ts_stride_class;

typedef struct ts_kernel_operand {
  ts_dtype dtype;
  uint8_t stride[TS_KERNEL_MAX_RANK]; /* ts_stride_class of each dim */
  int8_t step[TS_KERNEL_MAX_RANK];    /* of dims that are NEAR */
} ts_kernel_operand;

typedef enum ts_node_kind {
  TS_NODE_LOAD,   /* slot: input; in a ROW an input with stride ZERO on the row is one value per row */
  TS_NODE_SCALAR, /* slot: scalar argument */
  TS_NODE_INDEX,  /* slot: index operand; start + sum of step * index as s64, then converted to dtype */
  TS_NODE_GATHER, /* slot: input; a: node of integer indices; reads address + sum of strides + clamp(a, 0, limit - 1) *
                     step, where limit and step (bytes) are scalars number b and c */
  TS_NODE_OP,     /* op of a, b, c (nodes); for CONVERT and BITCAST dtype is the target */
  TS_NODE_REDUCE, /* op: REDUCE_SUM .. REDUCE_ANY of node a over the row (ROW) or dim rank-2 (COL, INTERLEAVED) */
  TS_NODE_ARG     /* op: ARGMAX or ARGMIN of a, b != 0: high; dtype: of the index */
} ts_node_kind;

typedef struct ts_kernel_node {
  ts_node_kind kind;
  ts_opcode op;
  ts_dtype dtype; /* of the result */
  int32_t slot;
  int32_t a, b, c; /* earlier nodes (or as the kind says); -1 when unused */
} ts_kernel_node;

typedef struct ts_kernel_output {
  ts_kernel_operand operand;
  int32_t node;
  bool stream; /* the store bypasses the caches; see above */
} ts_kernel_output;

typedef struct ts_kernel_desc {
  ts_kernel_kind kind;
  uint8_t columns; /* COL, ROW: ts_columns; otherwise 0 */
  int32_t members; /* INTERLEAVED: the extent of dim rank-2. JOINED: points of a row. ROW: of so many columns, or 0.
                      Otherwise 0 */
  uint8_t joined, few[TS_JOINED_DIMS], rows; /* JOINED: how many dims are a row's points, their extents; the least
                                                number of rows, a power of two up to TS_JOINED_ROWS */
  bool long_pieces;                          /* APART and BLOCKS: pieces are worth reading where they lie */
  uint8_t lined;                             /* TILE: see above, as for `joined` */
  int32_t rank;                              /* >= 1 */
  int32_t input_count, output_count, index_count, scalar_count, node_count;
  const ts_kernel_operand *inputs;
  const ts_kernel_output *outputs;
  const ts_kernel_operand *indices; /* dtype S64; stride classes as for inputs */
  const ts_dtype *scalars;
  const ts_kernel_node *nodes; /* in topological order */
} ts_kernel_desc;

static inline bool ts_kernel_node_reduces(const ts_kernel_node *n) {
  return n->kind == TS_NODE_REDUCE || n->kind == TS_NODE_ARG;
}
/* The nodes that it reads, three at most; returns how many. b and c of some kinds are not nodes. */
int ts_kernel_node_operands(const ts_kernel_node *n, int32_t *out);

/* True for a node that has several values along a dim, if its operands' flags in `varies` say so of them. A reduction
 * has one. */
bool ts_kernel_node_varies(const ts_kernel_desc *d, int32_t id, int32_t dim, const bool *varies);

/* True for an operand of a ROW that has values of the row, not of its points. */
static inline bool ts_kernel_is_of_row(const ts_kernel_desc *d, const ts_kernel_operand *o) {
  return o->stride[d->rank - 1] == TS_STRIDE_ZERO || o->stride[d->rank - 1] == TS_STRIDE_TURN;
}

/* True where an operand may be NEAR. */
bool ts_kernel_near_allowed(const ts_kernel_desc *d, const ts_kernel_operand *o, int32_t dim, bool is_input);

/* True when all that the rows of a ROW give is the first of the best elements of one node, and perhaps its value. */
bool ts_kernel_searches(const ts_kernel_desc *d);

/* Of a kernel that only loads integers of 8 or 16 bits, one behind the other or NEAR, and reduces them: the bytes of
 * the widest. Else 0. */
int ts_kernel_narrow_bytes(const ts_kernel_desc *d);

/* The number of innermost dims that the kind fixes. */
static inline int32_t ts_kernel_fixed_dims(ts_kernel_kind kind) {
  return kind == TS_KERNEL_MAP || kind == TS_KERNEL_ROW || kind == TS_KERNEL_JOINED ? 1 : 2;
}

/* APART and BLOCKS: the elements of a row are in pieces. */
static inline bool ts_kernel_has_pieces(const ts_kernel_desc *d) {
  return d->columns == TS_COLUMNS_APART || d->columns == TS_COLUMNS_BLOCKS;
}

/* Of those, the elements of a row, at most; from the extents. */
static inline int64_t ts_kernel_pieces_length(const ts_kernel_desc *d, const int64_t *extent) {
  const int64_t length = extent[d->rank - 2] * extent[d->rank - 1];
  return d->columns == TS_COLUMNS_BLOCKS && length > TS_REDUCE_BLOCK ? TS_REDUCE_BLOCK : length;
}

/* JOINED: the dim that counts rows. TILE: the first dim of a row. */
static inline int32_t ts_kernel_row_dim(const ts_kernel_desc *d) { return d->rank - 1 - d->joined; }

/* TILE: the first dim of a line, and the elements of a line. */
static inline int32_t ts_kernel_line_dim(const ts_kernel_desc *d) { return ts_kernel_row_dim(d) - 1 - d->lined; }
static inline int64_t ts_kernel_line_length(const ts_kernel_desc *d, const int64_t *extent) {
  int64_t length = 1;
  for (int32_t l = ts_kernel_line_dim(d); l < ts_kernel_row_dim(d); l++) length *= extent[l];
  return length;
}

static inline bool ts_stride_is_group(uint8_t stride_class) {
  return stride_class == TS_STRIDE_GROUP || stride_class == TS_STRIDE_GROUP_DOWN;
}

/* A stride of known length in elements (of an index operand: in steps of 1). 0: it is an argument, or there is none. */
static inline int64_t ts_kernel_known_stride(const ts_kernel_desc *d, uint8_t stride_class) {
  switch ((ts_stride_class)stride_class) {
  case TS_STRIDE_ZERO:
  case TS_STRIDE_TURN:
  case TS_STRIDE_NEAR:
  case TS_STRIDE_ANY: break;
  case TS_STRIDE_UNIT: return 1;
  case TS_STRIDE_DOWN: return -1;
  case TS_STRIDE_GROUP: return d->members;
  case TS_STRIDE_GROUP_DOWN: return -d->members;
  }
  return 0;
}

/* The number of words in `args`, and where its parts start. */
static inline int32_t ts_kernel_arg_operand(const ts_kernel_desc *d, int32_t operand) {
  return d->rank + operand * (d->rank + 1); /* operand counts inputs, then outputs, then indices */
}
static inline int32_t ts_kernel_arg_scalar(const ts_kernel_desc *d, int32_t scalar) {
  return ts_kernel_arg_operand(d, d->input_count + d->output_count + d->index_count) + scalar;
}
static inline int32_t ts_kernel_arg_count(const ts_kernel_desc *d) { return ts_kernel_arg_scalar(d, d->scalar_count); }

/* As in the canonical text. */
const char *ts_kernel_kind_name(ts_kernel_kind kind);
/* Checks every id and class: the emitters accept any description that passes. */
ts_status ts_kernel_check(const ts_kernel_desc *desc);
/* The canonical text. */
ts_status ts_kernel_print(const ts_kernel_desc *desc, ts_text *out);
/* Fills a source for a batch; `text` is owned by the caller (ts_free) and
 * `desc` must outlive the request. */
ts_status ts_kernel_make_source(const ts_kernel_desc *desc, char **out_text, ts_kernel_source *out);

/* Bytes of workspace that a launch needs on each thread: fixed + per_element * row length, rounded up to lanes; for an
 * empty row, one vector. */
void ts_kernel_scratch(const ts_kernel_desc *desc, int64_t *out_fixed, int64_t *out_per_element);
/* Estimated time of one point of the iteration space on one thread, in picoseconds, without memory traffic. */
int64_t ts_kernel_point_cost(const ts_kernel_desc *desc);

#endif
