#include "jit/flow/flow_turn.h"
#include "jit/loop/loop.h"

#include <string.h>

/* Columns in vectors are worth it from so many for each row on. */
#define COLUMNS_FOR_A_ROW 2

/* What differs between kernels of the two kinds: the greater and the lesser of floats, and the order of positions. */
static bool reduces_alike(const ts_kernel_desc *d) {
  bool after[2 * TS_NEST_MAX_NODES];
  for (int32_t i = 0; i < d->node_count; i++) {
    const ts_kernel_node *n = &d->nodes[i];
    int32_t operands[3];
    int count = ts_kernel_node_operands(n, operands);
    bool ordered = n->kind == TS_NODE_ARG || n->op == TS_OP_REDUCE_MAX || n->op == TS_OP_REDUCE_MIN;
    after[i] = ts_kernel_node_reduces(n);
    for (int k = 0; k < count; k++) {
      if (ts_kernel_node_reduces(n) && (ordered || after[operands[k]])) return false;
      after[i] |= after[operands[k]];
    }
  }
  for (int32_t i = 0; i < d->output_count; i++)
    if (d->outputs[i].operand.stride[d->rank - 1] != TS_STRIDE_ZERO) return false;
  return true;
}

bool ts_flow_may_turn(const ts_launch *l) {
  const ts_kernel_desc *d = &l->desc;
  int32_t last = d->rank - 1;
  if (d->kind != TS_KERNEL_ROW || d->members > 0 || ts_kernel_has_pieces(d) || last < 1 ||
      !ts_loop_is_short(d, l->args[last]))
    return false;
  return l->args[last - 1] >= COLUMNS_FOR_A_ROW * l->args[last] && reduces_alike(d);
}

static void swap_words(int64_t *words, int32_t a, int32_t b) {
  int64_t word = words[a];
  words[a] = words[b];
  words[b] = word;
}

/* Exchanges the last two dims. `strides`: words of the operand. */
static void turn_operand(ts_kernel_operand *o, int32_t rank, int64_t *strides, int64_t unit) {
  uint8_t row = o->stride[rank - 1], column = o->stride[rank - 2];
  if (row == TS_STRIDE_UNIT) strides[rank - 1] = unit;
  if (row == TS_STRIDE_DOWN) strides[rank - 1] = -unit;
  o->stride[rank - 2] = row == TS_STRIDE_ZERO ? TS_STRIDE_ZERO : TS_STRIDE_ANY;
  o->stride[rank - 1] = column == TS_STRIDE_ANY && strides[rank - 2] == unit ? TS_STRIDE_UNIT : column;
  swap_words(strides, rank - 2, rank - 1);
}

/* A ROW as the COL whose columns are dim rank-2. */
ts_status ts_flow_turn(const ts_launch *l, ts_flow_turned *t) {
  const ts_kernel_desc *d = &l->desc;
  int32_t words = ts_kernel_arg_count(d);
  TS_TRY(TS_NEW_ARRAY((size_t)words, &t->args));
  memcpy(t->args, l->args, (size_t)words * sizeof *t->args);
  t->desc = *d;
  t->desc.kind = TS_KERNEL_COL;
  t->desc.inputs = t->inputs;
  t->desc.outputs = t->outputs;
  t->desc.indices = t->indices;
  swap_words(t->args, d->rank - 2, d->rank - 1);
  for (int32_t i = 0; i < d->input_count + d->output_count + d->index_count; i++) {
    int32_t output = i - d->input_count, index = output - d->output_count;
    ts_kernel_operand *o = i < d->input_count ? &t->inputs[i]
                           : index < 0        ? &t->outputs[output].operand
                                              : &t->indices[index];
    if (i < d->input_count)
      *o = d->inputs[i];
    else if (index < 0)
      t->outputs[output] = d->outputs[output];
    else
      *o = d->indices[index];
    turn_operand(o, d->rank, t->args + ts_kernel_arg_operand(d, i) + 1,
                 index < 0 ? (int64_t)ts_dtype_size(o->dtype) : 1);
  }
  return TS_SUCCESS;
}
