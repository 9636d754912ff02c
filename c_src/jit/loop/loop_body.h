/* The shared part of the loop emitters: the function's frame, addresses of rows, loops over rows and over the points of
 * a row, and the node DAG at one point. Used by one emission on one compile thread. */
#ifndef TS_JIT_LOOP_BODY_H
#define TS_JIT_LOOP_BODY_H

#include "base/arena.h"
#include "jit/emit/emit_op.h"
#include "jit/loop/loop.h"
#include "jit/loop/loop_plan.h"

typedef struct ts_loop {
  ts_emit *e;
  const ts_kernel_desc *d;
  ts_arena arena;
  ts_loop_plan plan;
  int32_t operand_count; /* inputs, outputs, indices */
  bool masks;            /* parts of vectors are masks, not counts (emit.h) */
  bool streams;          /* some output's stores bypass the caches */
  LLVMTypeRef i64, i8, pointer;
  ts_v args, begin, end, scratch;
  LLVMBasicBlockRef leave; /* returns */
  ts_v extent[TS_KERNEL_MAX_RANK];
  ts_v *address;        /* of each operand; an index operand's start (i64) */
  ts_v *stride;         /* [operand * rank + dim], in bytes; NULL when ZERO */
  ts_v *base;           /* of each operand in the current row */
  ts_v *value;          /* of each node, where it was last emitted */
  ts_v *gathered;       /* of each node that gathers by an index of the row: the address of the selected row */
  ts_v *partial;        /* of each node, while both variants of its load are emitted */
  bool *wanted;         /* nodes to emit at present */
  const uint8_t *tiled; /* per input: read from the tile instead (TILE), or NULL */
  ts_v *tile_row;       /* per input: address of its current row in the tile, whose elements of 16 bytes are apart */
  const ts_v *loaded;   /* per input: its elements at the current point (INTERLEAVED, JOINED), or NULL */
} ts_loop;

/* A vector of points. */
typedef struct ts_point {
  ts_v index; /* of lane 0 along the last dim */
  ts_v part;  /* the lanes that are points (emit.h); NULL: all are */
  ts_v whole; /* i1, not NULL where `part` may also be all lanes: true when it is */
} ts_point;

/* The points [from, to): whole vectors up to `middle`, then a tail of fewer lanes. */
typedef struct ts_span {
  ts_v from, middle, to;
  ts_v last;       /* the last index where a whole vector may begin */
  ts_v rest;       /* the tail as a part (emit.h) */
  ts_v some_whole; /* i1: whether there is a whole vector */
  ts_v first;      /* the part of the first vector: all lanes, or the tail */
  int turns;       /* after so many vectors the loop variables are at their places again: light points are emitted as
                      often, so that nothing moves the variables. 0 or 1: once */
} ts_span;

/* Emits code at a point, and replaces the loop variables. */
typedef ts_status (*ts_point_fn)(void *context, ts_loop *loop, const ts_point *at, ts_v *carried);
/* Emits code at a row: bases and row-level values are not set yet. */
typedef ts_status (*ts_row_fn)(void *context, ts_loop *loop, const ts_v *counters);

#define TS_LOOP_MAX_CARRIED 128

/* Opens the function: frame, arguments, and values that are constant in the launch. For an empty range it returns. */
ts_status ts_loop_open(ts_loop *loop, ts_emit *e, const char *name, const ts_kernel_desc *desc);
/* Ends the function, or cleans up after `status`. */
ts_status ts_loop_close(ts_loop *loop, ts_status status);

/* ---- small pieces ---- */
/* The type as which elements are moved: integers of their size. */
static inline ts_dtype ts_loop_raw_type(ts_dtype type) {
  return ts_dtype_is_complex(type) ? type : ts_dtype_of_bits(TS_KIND_UNSIGNED, 8 * (int)ts_dtype_size(type));
}
ts_v ts_loop_number(const ts_loop *loop, int64_t value);
ts_v ts_loop_arg(ts_loop *loop, int32_t word);
ts_v ts_loop_add(ts_loop *loop, ts_v a, ts_v b);
ts_v ts_loop_mul(ts_loop *loop, ts_v a, ts_v b);
ts_v ts_loop_offset(ts_loop *loop, ts_v address, ts_v bytes);
ts_v ts_loop_element(ts_loop *loop, ts_dtype type, ts_v address, ts_v index);
LLVMBasicBlockRef ts_loop_block(ts_loop *loop, const char *name);
/* The value of the block that the current one was entered from. */
ts_v ts_loop_either(ts_loop *loop, ts_v a, LLVMBasicBlockRef from_a, ts_v b, LLVMBasicBlockRef from_b);
int32_t ts_loop_output_operand(const ts_loop *loop, int32_t output);

/* A plain loop over i64 [from, to): open, emit the body, close. The body does not run when the range is empty. */
typedef struct ts_counter {
  ts_v index, to, step;
  LLVMBasicBlockRef body, done;
} ts_counter;
ts_counter ts_loop_count(ts_loop *loop, ts_v from, ts_v to, ts_v step);
/* The same where from < to is known. */
ts_counter ts_loop_count_some(ts_loop *loop, ts_v from, ts_v to, ts_v step);
void ts_loop_count_end(ts_loop *loop, ts_counter *counter);

/* ---- rows ---- */
/* Loops over rows [begin, end) of dims 0 .. dims-1 and updates their counters. */
ts_status ts_loop_rows(ts_loop *loop, int32_t dims, ts_row_fn fn, void *context);
/* Sets `base` of every operand for counters of dims 0 .. dims-1; the other counters are 0. */
void ts_loop_set_row(ts_loop *loop, const ts_v *counters, int32_t dims);

/* ---- points (ts_loop_span and ts_loop_points: loop_points.c) ---- */
/* Defines a span in a block that dominates every loop over it, within the outermost loop that changes it. */
ts_span ts_loop_span(ts_loop *loop, ts_v from, ts_v to);
/* Loops over a span by vectors. `carried` holds the loop variables before, then after the loop. */
ts_status ts_loop_points(ts_loop *loop, const ts_span *span, ts_v *carried, int count, ts_point_fn fn, void *context);
/* Emits the wanted nodes of a level, at a point when `at` is given. The caller emits reductions. */
ts_status ts_loop_nodes(ts_loop *loop, ts_level level, const ts_point *at);
/* Stores the outputs with pass[output] == `which` (all outputs when `pass` is NULL). */
void ts_loop_store(ts_loop *loop, const ts_point *at, const int32_t *pass, int32_t which);
/* All blocks of an INTERLEAVED (loop_interleaved.c). */
ts_status ts_loop_interleaved(ts_loop *loop);
/* The first `count` lanes, a power of two, again and again. */
ts_v ts_loop_repeat(ts_emit *e, ts_v x, unsigned count);
/* Marks every node that outputs depend on as wanted. */
void ts_loop_want_all(ts_loop *loop);

#endif
