/* How the operands of a kernel lie, apart from what it computes. A launch can be moved to the layout of another kernel
 * that is more general than its own: with dims that it lacks, of extent 1, and strides where it has none. The bits are
 * the same. Pure, thread-safe. */
#ifndef TS_JIT_LAYOUT_H
#define TS_JIT_LAYOUT_H

#include "jit/lower.h"

typedef struct ts_kernel_layout {
  ts_kernel_kind kind;
  int32_t rank, operand_count;                                /* inputs, outputs, indices */
  uint8_t stride[TS_KERNEL_MAX_OPERANDS][TS_KERNEL_MAX_RANK]; /* ts_stride_class */
  uint64_t streams;                                           /* bit i: output i */
} ts_kernel_layout;

/* Reads the layout off a kernel's canonical text; false when it is no loop nest. */
bool ts_layout_parse(const char *text, ts_kernel_layout *out);

/* A layout of one more dim, where there is room, that has strides along all dims but the innermost: for tests. */
void ts_layout_generalize(const ts_kernel_desc *desc, ts_kernel_layout *out);

/* Says for each dim of the launch which one it becomes in `layout`, a layout of the same family. False when the
 * layout does not fit, or would make the launch notably slower. Among those that fit the cheapest is best. */
bool ts_layout_match(const ts_launch *launch, const ts_kernel_layout *layout, int32_t *out_dims, int32_t *out_cost);

/* The launch in the other layout; its parts are in `arena` or shared with the old one. */
ts_status ts_layout_apply(const ts_launch *launch, const ts_kernel_layout *layout, const int32_t *dims, ts_arena *arena,
                          ts_launch *out);

#endif
