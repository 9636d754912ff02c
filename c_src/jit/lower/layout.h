/* The layout of a kernel's operands, without its computation. A launch can be moved to the layout of a more general
 * kernel: a kernel with additional dims, whose extent becomes 1, and with strides where the launch has fixed ones. The
 * bits are the same. Pure, thread-safe. */
#ifndef TS_JIT_LAYOUT_H
#define TS_JIT_LAYOUT_H

#include "jit/lower/lower.h"

typedef struct ts_kernel_layout {
  ts_kernel_kind kind;
  int32_t rank, operand_count;                                /* inputs, outputs, indices */
  uint8_t stride[TS_KERNEL_MAX_OPERANDS][TS_KERNEL_MAX_RANK]; /* ts_stride_class */
  uint64_t streams;                                           /* bit i: output i */
} ts_kernel_layout;

/* Reads the layout from a kernel's canonical text; false when that is not a loop nest. */
bool ts_layout_parse(const char *text, ts_kernel_layout *out);

/* A layout with one more dim, if possible, and strides along all dims except the innermost: for tests. */
void ts_layout_generalize(const ts_kernel_desc *desc, ts_kernel_layout *out);

/* Maps each dim of the launch to one of `layout`, a layout of the same family. False when the layout does not fit, or
 * would make the launch notably slower. Of several that fit, the caller chooses the cheapest. */
bool ts_layout_match(const ts_launch *launch, const ts_kernel_layout *layout, int32_t *out_dims, int32_t *out_cost);

/* Makes the launch in the other layout; its parts are in `arena` or shared with the old one. */
ts_status ts_layout_apply(const ts_launch *launch, const ts_kernel_layout *layout, const int32_t *dims, ts_arena *arena,
                          ts_launch *out);

#endif
