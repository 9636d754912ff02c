/* Groups of equal structure are measured once (the layers of a network have many). The key holds all facts of a group
 * that measuring reads: the ops between the results and the values from outside, the types of those values, and which
 * operands are the same value. */
#include "pass/fuse.h"

void ts_fuse_memo_deinit(ts_fuse_memo *memo) {
  ts_keys_deinit(&memo->known);
  ts_arena_deinit(&memo->arena);
  ts_free(memo->numbers);
  ts_free(memo->stamps);
}

static bool is_numbered(const ts_fuse_memo *m, ts_value_id value) { return m->stamps[value] == m->stamp; }

static void set_number(ts_fuse_memo *m, ts_value_id value) {
  m->numbers[value] = m->next++;
  m->stamps[value] = m->stamp;
}

enum { OUTSIDE = 1 << 16, CONSTANT = 1 << 17 };

static ts_status put_outside(ts_fuse_memo *m, const ts_graph *graph, ts_value_id value) {
  ts_scalar known = {0};
  bool constant = ts_graph_is_constant(graph, value, &known);
  TS_TRY(ts_keys_put_type(&m->known, ts_graph_value(graph, value), constant ? OUTSIDE | CONSTANT : OUTSIDE));
  return constant ? ts_keys_put(&m->known, known.bits) : TS_SUCCESS;
}

/* Numbers a new value. The recursion is as deep as a group may be. */
static ts_status put_value(ts_fuse_memo *m, const ts_nest_spec *spec, ts_value_id value) {
  const ts_value *v = ts_graph_value(spec->graph, value);
  uint32_t operand;
  if (spec->operand(spec->context, value, &operand)) {
    TS_TRY(put_outside(m, spec->graph, value));
  } else {
    const ts_op *op = ts_graph_op(spec->graph, v->op);
    for (uint32_t i = 0; i < op->operand_count; i++)
      if (!is_numbered(m, op->operands[i])) TS_TRY(put_value(m, spec, op->operands[i]));
    TS_TRY(ts_keys_put_op(&m->known, op, m->numbers));
  }
  set_number(m, value);
  return TS_SUCCESS;
}

static ts_status prepare(ts_fuse_memo *m, const ts_graph *graph) {
  ts_keys_begin(&m->known);
  m->next = 0;
  if (m->stamp++ > 0) return TS_SUCCESS;
  TS_TRY(TS_NEW_ARRAY(graph->values.count, &m->numbers));
  return TS_NEW_ARRAY(graph->values.count, &m->stamps);
}

ts_status ts_fuse_memo_find(ts_fuse_memo *m, const ts_nest_spec *spec, bool pair, const ts_fuse_kernel **out) {
  *out = NULL;
  TS_TRY(prepare(m, spec->graph));
  TS_TRY(ts_keys_put(&m->known, pair));
  for (size_t i = 0; i < spec->root_count; i++)
    if (!is_numbered(m, spec->roots[i].value)) TS_TRY(put_value(m, spec, spec->roots[i].value));
  for (size_t i = 0; i < spec->root_count; i++) TS_TRY(ts_keys_put(&m->known, m->numbers[spec->roots[i].value]));
  if (spec->reduce != TS_NO_ID) {
    ts_value_id result = ts_graph_op(spec->graph, spec->reduce)->first_result;
    if (!is_numbered(m, result)) TS_TRY(put_value(m, spec, result));
    TS_TRY(ts_keys_put(&m->known, m->numbers[result]));
  }
  *out = ts_keys_find(&m->known);
  return TS_SUCCESS;
}

ts_status ts_fuse_memo_add(ts_fuse_memo *m, const ts_fuse_kernel *kernel) {
  ts_fuse_kernel *kept;
  TS_TRY(ts_arena_copy(&m->arena, kernel, sizeof(*kernel), (void **)&kept));
  return ts_keys_keep(&m->known, kept);
}
