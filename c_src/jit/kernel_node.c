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
