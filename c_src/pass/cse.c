/* Ops that compute the same from the same are computed once in a region. Constants, too. Ops that hold regions
 * are left alone. */
#include "base/map.h"
#include "pass/rewrite.h"

#include <string.h>

/* What is known in the region being rewritten. */
typedef struct scope {
  ts_map seen; /* key of an op -> its first result + 1 */
  struct scope *outer;
} scope;

typedef struct cse {
  scope *innermost;
  TS_VEC(unsigned char) key;
} cse;

static ts_status append(cse *c, const void *bytes, size_t count) {
  TS_TRY(TS_VEC_RESERVE(&c->key, c->key.count + count));
  memcpy(c->key.data + c->key.count, bytes, count);
  c->key.count += count;
  return TS_SUCCESS;
}

/* Literals are the same when their elements are; big ones when they are one buffer. */
static ts_status append_literal(cse *c, const ts_buffer *buffer) {
  enum { BY_CONTENT = 4096 };
  TS_TRY(append(c, &buffer->dtype, sizeof(buffer->dtype)));
  TS_TRY(append(c, &buffer->shape, sizeof(buffer->shape)));
  if (buffer->bytes > BY_CONTENT) return append(c, &buffer->data, sizeof(buffer->data));
  return buffer->bytes > 0 ? append(c, buffer->data, (size_t)buffer->bytes) : TS_SUCCESS;
}

static ts_status make_key(cse *c, const ts_rewrite *rw, const ts_op *op) {
  c->key.count = 0;
  TS_TRY(append(c, &op->code, sizeof(op->code)));
  for (uint32_t i = 0; i < op->operand_count; i++) TS_TRY(append(c, &rw->map[op->operands[i]], sizeof(ts_value_id)));
  if (op->code == TS_OP_LITERAL) return append_literal(c, op->attrs->literal.buffer);
  if (!op->attrs) return TS_SUCCESS;
  return append(c, op->attrs, ts_attrs_size(ts_op_attr_kind(op->code)));
}

static void sort_operands(ts_rewrite *rw, const ts_op *op, ts_value_id *keep) {
  keep[0] = rw->map[op->operands[0]];
  keep[1] = rw->map[op->operands[1]];
  if (keep[0] <= keep[1]) return;
  rw->map[op->operands[0]] = keep[1];
  rw->map[op->operands[1]] = keep[0];
}

/* The key of a commutative op has its operands in order; only the key. NaN payloads are not promised. */
static ts_status make_sorted_key(cse *c, ts_rewrite *rw, const ts_op *op) {
  ts_value_id keep[2];
  if (!ts_op_is_commutative(op->code) || op->operands[0] == op->operands[1]) return make_key(c, rw, op);
  sort_operands(rw, op, keep);
  ts_status status = make_key(c, rw, op);
  rw->map[op->operands[0]] = keep[0];
  rw->map[op->operands[1]] = keep[1];
  return status;
}

static ts_status visit(ts_rewrite *rw, ts_op_id id, ts_region_id target) {
  cse *c = rw->context;
  const ts_op *op = ts_graph_op(rw->from, id);
  ts_region_id regions[2];
  if (ts_op_regions(op, regions) > 0) return ts_rewrite_copy(rw, id, target);
  TS_TRY(make_sorted_key(c, rw, op));
  void *known = ts_map_get(&c->innermost->seen, c->key.data, c->key.count);
  if (known) return ts_rewrite_set(rw, id, (ts_value_id)((uintptr_t)known - 1));
  TS_TRY(ts_rewrite_copy(rw, id, target));
  void *first = (void *)((uintptr_t)rw->map[op->first_result] + 1);
  return ts_map_put(&c->innermost->seen, c->key.data, c->key.count, first);
}

/* Regions are closed, so what is outside is not known inside. */
static ts_status enter(ts_rewrite *rw, ts_region_id source, ts_region_id target) {
  cse *c = rw->context;
  scope *inner;
  (void)source, (void)target;
  TS_TRY(TS_NEW(&inner));
  inner->outer = c->innermost;
  c->innermost = inner;
  return TS_SUCCESS;
}

static void leave(ts_rewrite *rw, ts_region_id source) {
  cse *c = rw->context;
  scope *inner = c->innermost;
  (void)source;
  c->innermost = inner->outer;
  ts_map_deinit(&inner->seen);
  ts_free(inner);
}

ts_status ts_pass_cse(const ts_graph *in, const ts_pass_options *options, ts_graph **out) {
  cse c = {0};
  ts_rewrite rw = {.visit = visit, .enter = enter, .leave = leave, .context = &c};
  ts_status status = ts_rewrite_run(&rw, in, options, out);
  TS_VEC_FREE(&c.key);
  return status;
}
