/* Ops whose parts need more than the op itself: chooses between halo and mask. */
#include "shard/partitioner.h"

static bool is_masked(const ts_op *op) {
  ts_op_class class = ts_op_get_class(op->code);
  return class == TS_CLASS_INDEXED || class == TS_CLASS_ARG_REDUCE;
}

ts_status ts_split_moved(const ts_split *s, ts_value_id *out) {
  return is_masked(s->op) ? ts_split_masked(s, out) : ts_split_halo(s, out);
}

int64_t ts_split_moved_cost(const ts_partitioner *p, const ts_op *op, const ts_factors *f, const ts_assignment *a) {
  return is_masked(op) ? ts_split_masked_cost(p, op, f, a) : ts_split_halo_cost(p, op, f, a);
}
