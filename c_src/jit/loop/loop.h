/* The loop emitters, one for each kernel kind. Each emits a function of type ts_kernel_fn for a description that
 * ts_kernel_check accepted. */
#ifndef TS_JIT_LOOP_H
#define TS_JIT_LOOP_H

#include "jit/kernel.h"

struct ts_emit;

/* MAP, INTERLEAVED and JOINED. */
ts_status ts_loop_emit_map(struct ts_emit *e, const char *name, const ts_kernel_desc *desc);
ts_status ts_loop_emit_tile(struct ts_emit *e, const char *name, const ts_kernel_desc *desc);
ts_status ts_loop_emit_row(struct ts_emit *e, const char *name, const ts_kernel_desc *desc);
ts_status ts_loop_emit_col(struct ts_emit *e, const char *name, const ts_kernel_desc *desc);
/* A COL in place (ts_site) that is short, in registers; it needs no workspace. */
ts_status ts_loop_emit_short(struct ts_emit *e, const ts_kernel_desc *desc);
/* Every row is emitted, so there are few of few nodes. */
#define TS_LOOP_SHORT_ROWS 8
#define TS_LOOP_SHORT_NODES 256
static inline bool ts_loop_is_short(const ts_kernel_desc *desc, int64_t rows) {
  return rows >= 1 && rows <= TS_LOOP_SHORT_ROWS && rows * desc->node_count <= TS_LOOP_SHORT_NODES;
}
/* Bytes of a launch's accumulators in the workspace, of a COL, and of a ROW with columns that take turns. */
int64_t ts_loop_col_scratch(const ts_kernel_desc *desc);
int64_t ts_loop_row_scratch(const ts_kernel_desc *desc);

#endif
