/* From a fused region or a single op to kernel launches: composes the index maps of the region's ops into strides,
 * collapses dims, chooses the kernel kind, and splits long reductions. Pure, thread-safe. */
#ifndef TS_JIT_LOWER_H
#define TS_JIT_LOWER_H

#include "ir/graph.h"
#include "jit/kernel.h"
#include "pass/nest.h"

/* args[word] = address of operand, result or temp `index`, plus offset, plus the dynamic terms. */
typedef struct ts_launch_pointer {
  int32_t word;
  ts_role role;
  uint32_t index;
  int64_t offset;
  int32_t term_count;
  const ts_dynamic_term *terms;
} ts_launch_pointer;

typedef struct ts_launch {
  ts_kernel_desc desc;
  int64_t *args; /* ts_kernel_arg_count words; addresses are zero until patched */
  int32_t pointer_count;
  const ts_launch_pointer *pointers;
  int64_t units;   /* work units in all */
  int64_t points;  /* of the iteration space */
  int64_t bytes;   /* estimated memory traffic */
  int64_t scratch; /* bytes for each thread */
  bool copies;     /* only copies operand 0 to result 0: skipped when they share memory */
} ts_launch;

typedef struct ts_lowered {
  int32_t launch_count; /* run in order */
  const ts_launch *launches;
  int32_t temp_count; /* temporaries shared by the launches */
  const int64_t *temp_bytes;
  /* inplace[r * operand_count + o]: result r may take the memory of operand o. */
  const bool *inplace;
} ts_lowered;

/* A launch of more points may have a kernel for its own shape. A smaller one shares the kernel of other shapes. */
#define TS_SMALL_POINTS 32768

typedef struct ts_lower_options {
  /* Called with each launch before in-place results are determined; may replace the launch by an equal one with another
   * kernel. NULL: none. */
  ts_status (*visit)(void *context, ts_arena *arena, ts_launch *launch);
  void *context;
  bool in_place; /* the launches become parts of a native loop (jit/flow): none is INTERLEAVED or JOINED, or a TILE with
                    `joined` or `lined` */
} ts_lower_options;

/* Lowers op `id`: a fusion op, or any single op that a kernel can compute (elementwise, shape, indexed, reduce, arg
 * reduce, sources). Everything lives in `arena`. TS_UNIMPLEMENTED when it cannot be one set of launches: the caller
 * then splits a fusion, or uses a routine. Empty results give no launches. `options` may be NULL. */
ts_status ts_lower_op(const ts_graph *graph, ts_op_id id, ts_arena *arena, const ts_lower_options *options,
                      ts_lowered *out);

/* True when `launch` visits the elements of the dense operand `operand` in order: points are numbered like elements, in
 * an INTERLEAVED group by group. MAP, ROW and INTERLEAVED of rank 2 only. */
bool ts_launch_follows(const ts_launch *launch, uint32_t operand);

/* True when it writes the elements of a result in that order, too: each point one of them. */
bool ts_launch_fills(const ts_launch *launch, uint32_t result);

/* Runs a part of a launch whose points are seen as rows of `pitch`: columns [col, col + cols) of rows [row, row +
 * rows). For a ROW or INTERLEAVED launch a part must be whole rows. `words` are its arguments with addresses. */
typedef struct ts_launch_part {
  int64_t pitch, row, rows, col, cols;
} ts_launch_part;
void ts_launch_run_part(const ts_launch *launch, ts_kernel_fn entry, const int64_t *words, const ts_launch_part *part,
                        void *scratch);

/* Units [begin, end), in each only `count` points from `first` on, or up to the unit's end. `first` is a multiple of
 * the vector's lanes and of a cache line's elements. Only for launches that have pieces: each point is computed
 * independently. */
typedef struct ts_launch_piece {
  int64_t begin, end, first, count;
} ts_launch_piece;
bool ts_launch_has_pieces(const ts_launch *launch);
void ts_launch_run_piece(const ts_launch *launch, ts_kernel_fn entry, const int64_t *words,
                         const ts_launch_piece *piece, void *scratch);

/* True when result and operand have the same bytes (reshape and other ops that move no data); exec then makes no
 * copy. */
bool ts_lower_is_alias(const ts_graph *graph, ts_op_id id);

/* True when the result's bytes lie in operand 0 one behind the other, from `*out_offset` on: a slice of whole rows.
 * Sets the offset of any slice. */
bool ts_lower_is_part(const ts_graph *graph, ts_op_id id, int64_t *out_offset);

/* ---- whole-compiled control flow (whole.c) ---- */
/* A while, cond or fusion-free region of rank-0 values with at most `TS_WHOLE_MAX_OPS` ops that becomes one native
 * function. */
#define TS_WHOLE_MAX_OPS 512
#define TS_WHOLE_MAX_LEVELS 32 /* nesting of loops and branches */
bool ts_whole_supported(const ts_graph *graph, ts_op_id id);
/* Arguments of the kernel: addresses of the operands, then of the results, then of the cancel flag (_Atomic bool, read
 * on every back edge; when true, the loop ends early), then constants as words. begin/end/scratch are not used. */
typedef struct ts_whole_kernel {
  char *text; /* the caller's, to be freed by ts_free */
  ts_kernel_source source;
  const int64_t *constants; /* in the arena */
  int32_t constant_count;
} ts_whole_kernel;
ts_status ts_whole_lower(const ts_graph *graph, ts_op_id id, ts_arena *arena, ts_whole_kernel *out);

#endif
