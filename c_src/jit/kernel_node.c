/* What the nodes of a kernel read. */
#include "jit/kernel.h"

int ts_kernel_node_operands(const ts_kernel_node *n, int32_t *out) {
  int count = 0;
  if (n->kind == TS_NODE_OP) {
    if (n->a >= 0) out[count++] = n->a;
    if (n->b >= 0) out[count++] = n->b;
    if (n->c >= 0) out[count++] = n->c;
  } else if (n->kind == TS_NODE_GATHER || ts_kernel_node_reduces(n)) {
    out[count++] = n->a;
  }
  return count;
}

static bool moves_along(const ts_kernel_desc *d, const ts_kernel_node *n, int32_t dim) {
  if (n->kind == TS_NODE_LOAD || n->kind == TS_NODE_GATHER) return d->inputs[n->slot].stride[dim] != TS_STRIDE_ZERO;
  return n->kind == TS_NODE_INDEX && d->indices[n->slot].stride[dim] != TS_STRIDE_ZERO;
}

bool ts_kernel_node_varies(const ts_kernel_desc *d, int32_t id, int32_t dim, const bool *varies) {
  const ts_kernel_node *n = &d->nodes[id];
  int32_t operands[3];
  if (ts_kernel_node_reduces(n)) return false;
  bool any = moves_along(d, n, dim);
  for (int i = ts_kernel_node_operands(n, operands); i-- > 0;) any |= varies[operands[i]];
  return any;
}

/* The extreme that a reduction finds: 1 the largest, -1 the smallest, 0 none, or the last one. */
static int extreme_of(const ts_kernel_node *n) {
  if (n->kind == TS_NODE_ARG && n->b != 0) return 0;
  if (n->op == TS_OP_ARGMAX || n->op == TS_OP_REDUCE_MAX) return 1;
  return n->op == TS_OP_ARGMIN || n->op == TS_OP_REDUCE_MIN ? -1 : 0;
}

bool ts_kernel_searches(const ts_kernel_desc *d) {
  const ts_kernel_node *first = NULL;
  bool finds = false;
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_kernel_node *n = &d->nodes[id];
    if (!ts_kernel_node_reduces(n)) continue;
    if (!first) first = n;
    if (extreme_of(n) == 0 || extreme_of(n) != extreme_of(first) || n->a != first->a) return false;
    finds |= n->kind == TS_NODE_ARG;
  }
  for (int32_t i = 0; i < d->output_count; i++) finds &= d->outputs[i].operand.stride[d->rank - 1] == TS_STRIDE_ZERO;
  return finds && d->kind == TS_KERNEL_ROW && (d->columns != TS_COLUMNS_PARTS || d->rank >= 2);
}

bool ts_kernel_near_allowed(const ts_kernel_desc *d, const ts_kernel_operand *o, int32_t dim, bool is_input) {
  if (d->kind == TS_KERNEL_JOINED) return dim >= ts_kernel_row_dim(d);
  const bool fits = (d->kind == TS_KERNEL_ROW || d->kind == TS_KERNEL_COL) && d->members == 0 && dim == d->rank - 1;
  const int distance = o->step[dim] < 0 ? -o->step[dim] : o->step[dim];
  return is_input && fits && distance >= 2 && distance <= TS_NEAR_STEP && ts_dtype_size(o->dtype) <= 8;
}

int ts_kernel_narrow_bytes(const ts_kernel_desc *d) {
  int widest = 1;
  for (int32_t i = 0; i < d->input_count; i++)
    if (d->inputs[i].stride[d->rank - 1] != TS_STRIDE_UNIT && d->inputs[i].stride[d->rank - 1] != TS_STRIDE_NEAR)
      return 0;
  for (int32_t id = 0; id < d->node_count; id++) {
    const ts_kernel_node *n = &d->nodes[id];
    const int bytes = (int)ts_dtype_size(n->dtype);
    if (!ts_dtype_is_integer(n->dtype) || bytes > 2 || (n->kind != TS_NODE_LOAD && n->kind != TS_NODE_REDUCE)) return 0;
    if (bytes > widest) widest = bytes;
  }
  return widest;
}
