#include "pass/rules.h"

#include "base/map.h"
#include "pass/complex/complex.h"
#include "pass/vector_dot.h"

#include <string.h>

void ts_rules_deinit(ts_rules *rules) {
  ts_free(rules->known);
  ts_arena_deinit(&rules->arena);
}

/* ---- the table of ops, for common subexpression elimination ---- */

enum { FIRST_CAPACITY = 256, BY_CONTENT = 4096 /* bytes of the largest literal that is compared by content */ };

static uint64_t mix(uint64_t hash, uint64_t x) {
  hash = (hash ^ x) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static bool is_small(const ts_buffer *literal) { return literal->bytes <= BY_CONTENT; }

/* Attributes are interned, so equal ones have the same address. Literals are compared by their data. */
static uint64_t hash_attrs(const ts_op *op) {
  if (op->code != TS_OP_LITERAL) return (uintptr_t)op->attrs;
  const ts_buffer *literal = op->attrs->literal.buffer;
  return is_small(literal) ? ts_hash64(literal->data, (size_t)literal->bytes) : (uintptr_t)literal->data;
}

static bool same_literal(const ts_buffer *a, const ts_buffer *b) {
  if (a->dtype != b->dtype || !ts_shape_equal(&a->shape, &b->shape)) return false;
  return a->data == b->data || (is_small(a) && memcmp(a->data, b->data, (size_t)a->bytes) == 0);
}

static bool is_pair(const ts_op *op) { return op->operand_count == 2 && ts_op_is_commutative(op->code); }

/* Operands of commutative ops are compared in either order. This may change NaN payloads: they are not specified. */
static uint32_t hash_op(ts_region_id region, const ts_op *op) {
  uint64_t hash = mix(hash_attrs(op), (uint64_t)region << 32 | (uint64_t)op->code << 16 | op->operand_count);
  if (is_pair(op)) {
    ts_value_id a = op->operands[0], b = op->operands[1];
    hash = mix(hash, a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a);
  } else {
    for (uint32_t i = 0; i < op->operand_count; i++) hash = mix(hash, op->operands[i]);
  }
  return (uint32_t)(hash ^ hash >> 32);
}

static bool same_operands(const ts_op *a, const ts_op *b) {
  if (is_pair(a) && a->operands[0] == b->operands[1] && a->operands[1] == b->operands[0]) return true;
  for (uint32_t i = 0; i < a->operand_count; i++) {
    if (a->operands[i] != b->operands[i]) return false;
  }
  return true;
}

static bool is_same(const ts_op *known, ts_region_id region, const ts_op *op) {
  if (known->code != op->code || known->region != region || known->operand_count != op->operand_count) return false;
  if (known->attrs != op->attrs &&
      (op->code != TS_OP_LITERAL || !same_literal(known->attrs->literal.buffer, op->attrs->literal.buffer)))
    return false;
  return same_operands(known, op);
}

static const ts_op *asked_op(const ts_rules *r, const ts_known_op *k) {
  return k->replaced ? &k->replaced->op : ts_graph_op(r->to, ts_graph_value(r->to, k->made - 1)->op);
}

/* The slot of the op's entry, or the free slot where it belongs. */
static size_t find(const ts_rules *r, uint32_t hash, ts_region_id region, const ts_op *op) {
  size_t mask = r->known_capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const ts_known_op *k = &r->known[i];
    if (k->made == 0 || (k->hash == hash && is_same(asked_op(r, k), region, op))) return i;
  }
}

static ts_status grow(ts_rules *r) {
  ts_known_op *known;
  size_t capacity = r->known ? 2 * r->known_capacity : FIRST_CAPACITY;
  while (!r->known && 3 * capacity < 4 * r->expected) capacity *= 2;
  TS_TRY(TS_NEW_ARRAY(capacity, &known));
  for (size_t i = 0; r->known && i < r->known_capacity; i++) {
    size_t slot = r->known[i].hash & (capacity - 1);
    if (r->known[i].made == 0) continue;
    while (known[slot].made) slot = (slot + 1) & (capacity - 1);
    known[slot] = r->known[i];
  }
  ts_free(r->known);
  r->known = known;
  r->known_capacity = capacity;
  return TS_SUCCESS;
}

/* The result of a lookup. If the op is new, `slot` is its slot as long as `known` does not change. */
typedef struct asked {
  uint32_t hash;
  bool shares, known;
  size_t slot, count;
} asked;

/* The values that replace a known op's results. */
static void get_known(const ts_known_op *k, uint32_t count, ts_value_id *out) {
  for (uint32_t i = 0; i < count; i++) out[i] = k->replaced ? k->replaced->values[i] : k->made - 1 + i;
}

/* Sets `values` when the op is known, else the first of them to TS_NO_ID. Ordered ops are never shared. */
static ts_status ask(ts_rules *r, ts_region_id region, const ts_op *op, asked *out, ts_value_id *values) {
  *out = (asked){.shares = (r->sets & TS_RULES_SHARE) && !ts_op_is_ordered(op->code)};
  *values = TS_NO_ID;
  if (!out->shares) return TS_SUCCESS;
  if ((r->known_count + 1) * 4 > r->known_capacity * 3) TS_TRY(grow(r));
  out->hash = hash_op(region, op);
  out->slot = find(r, out->hash, region, op);
  out->known = r->known[out->slot].made != 0;
  out->count = r->known_count;
  if (out->known) get_known(&r->known[out->slot], op->result_count, values);
  return TS_SUCCESS;
}

/* Copies an op that was replaced, since the graph does not contain it. */
static ts_status keep_op(ts_rules *r, ts_region_id region, const ts_op *op, const ts_value_id *values,
                         const ts_replaced_op **out) {
  ts_replaced_op *kept;
  TS_TRY(ts_arena_take(&r->arena, sizeof *kept, (void **)&kept));
  kept->op = *op;
  kept->op.region = region;
  *out = kept;
  TS_TRY(ts_arena_copy(&r->arena, values, op->result_count * sizeof *values, (void **)&kept->values));
  return ts_arena_copy(&r->arena, op->operands, op->operand_count * sizeof *op->operands, (void **)&kept->op.operands);
}

static ts_status remember(ts_rules *r, const asked *a, ts_region_id region, const ts_op *op, bool replaced,
                          const ts_value_id *values) {
  const ts_replaced_op *kept = NULL;
  size_t slot = a->slot;
  if (!a->shares) return TS_SUCCESS;
  if (replaced) TS_TRY(keep_op(r, region, op, values, &kept));
  if (r->known_count != a->count) { /* a rule has added ops */
    if ((r->known_count + 1) * 4 > r->known_capacity * 3) TS_TRY(grow(r));
    slot = find(r, a->hash, region, op);
  }
  if (r->known[slot].made == 0) r->known_count++;
  r->known[slot] = (ts_known_op){kept, a->hash, values[0] + 1};
  return TS_SUCCESS;
}

/* ---- adding ---- */

static ts_status try_rules(const ts_rule_call *call, ts_value_id *out) {
  *out = TS_NO_ID;
  if (ts_op_is_ordered(call->op->code)) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_GUARD) TS_TRY(ts_guard(call, out));
  if (*out != TS_NO_ID || call->rules->changes) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_WIDEN) TS_TRY(ts_widen(call, out));
  if (*out != TS_NO_ID || call->rules->changes) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_WIDEN) TS_TRY(ts_vector_dot(call, out));
  if (*out != TS_NO_ID || call->rules->changes) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_WIDEN) TS_TRY(ts_point_conv(call, out));
  if (*out != TS_NO_ID || call->rules->changes) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_SIMPLIFY) TS_TRY(ts_complex_split(call, out));
  if (*out != TS_NO_ID || call->op->operand_count == 0) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_SIMPLIFY) TS_TRY(ts_simplify(call, out));
  if (*out != TS_NO_ID || !(call->rules->sets & TS_RULES_FOLD)) return TS_SUCCESS;
  return ts_fold(call, out);
}

/* A rule's results must have the types of the op's that it replaces. */
static ts_status check_types(const ts_rule_call *call, const ts_value_id *values) {
  for (uint32_t i = 0; i < call->op->result_count; i++) {
    const ts_value *v = ts_graph_value(call->rules->to, values[i]), *expected = &call->results[i];
    if (v->dtype == expected->dtype && ts_shape_equal(v->shape, expected->shape)) continue;
    return ts_error(TS_INTERNAL, "%s became a value of type %s, expected %s", ts_op_name(call->op->code),
                    TS_SHAPE_STR(v->dtype, v->shape), TS_SHAPE_STR(expected->dtype, expected->shape));
  }
  return TS_SUCCESS;
}

/* The results of an added op have consecutive ids. */
static void follow(ts_value_id *out, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) out[i] = out[0] + i;
}

ts_status ts_rules_copy(ts_rules *r, ts_region_id target, const ts_graph *from, ts_op_id id,
                        const ts_value_id *operands, ts_value_id *out) {
  const ts_op *old = ts_graph_op(from, id);
  const ts_value *result = ts_graph_value(from, old->first_result);
  ts_op op = {.code = old->code,
              .operand_count = old->operand_count,
              .result_count = old->result_count,
              .operands = (ts_value_id *)(uintptr_t)operands,
              .attrs = old->attrs};
  ts_rule_call call = {r, target, &op, result->dtype, result->shape, result};
  asked a;
  TS_TRY(ask(r, target, &op, &a, out));
  if (a.known) return TS_SUCCESS;
  TS_TRY(try_rules(&call, out));
  bool replaced = *out != TS_NO_ID;
  TS_TRY(replaced ? check_types(&call, out) : ts_graph_add_like(r->to, target, from, id, operands, out));
  if (!replaced) follow(out, op.result_count);
  return remember(r, &a, target, &op, replaced, out);
}

ts_status ts_rules_probe(ts_rules *r, ts_op_id id) {
  const ts_op *op = ts_graph_op(r->to, id);
  const ts_value *result = ts_graph_value(r->to, op->first_result);
  ts_value_id values[TS_MAX_RESULTS];
  asked a;
  TS_TRY(ask(r, op->region, op, &a, values));
  r->changes = r->changes || a.known;
  if (r->changes) return TS_SUCCESS;
  TS_TRY(try_rules(&(ts_rule_call){r, op->region, op, result->dtype, result->shape, result}, values));
  r->changes = r->changes || values[0] != TS_NO_ID;
  return r->changes ? TS_SUCCESS : remember(r, &a, op->region, op, false, &op->first_result);
}

ts_status ts_rules_add(ts_rules *r, ts_region_id target, ts_opcode code, ts_values operands, const ts_attrs *attrs,
                       ts_value_id *out) {
  ts_op op = {.code = code,
              .operand_count = (uint32_t)operands.count,
              .operands = (ts_value_id *)(uintptr_t)operands.data,
              .attrs = attrs};
  ts_type types[TS_MAX_RESULTS];
  ts_result_types inferred = {.data = types, .room = TS_MAX_RESULTS};
  ts_value results[TS_MAX_RESULTS];
  asked a;
  *out = TS_NO_ID;
  if (r->probing) {
    r->changes = true;
    return TS_SUCCESS;
  }
  if (ts_op_has_regions(code)) return ts_graph_add_op(r->to, target, code, operands, attrs, out);
  TS_TRY(ts_infer(r->to, code, operands, attrs, &inferred));
  for (size_t i = 0; i < inferred.count; i++)
    results[i] = (ts_value){.dtype = types[i].dtype, .shape = &types[i].shape};
  op.result_count = (uint32_t)inferred.count;
  TS_TRY(ts_graph_keep_attrs(r->to, code, attrs, &op.attrs));
  TS_TRY(ask(r, target, &op, &a, out));
  if (a.known) return TS_SUCCESS;
  TS_TRY(try_rules(&(ts_rule_call){r, target, &op, types->dtype, &types->shape, results}, out));
  bool replaced = *out != TS_NO_ID;
  if (!replaced) TS_TRY(ts_graph_add_op(r->to, target, code, operands, op.attrs, out));
  if (!replaced) follow(out, op.result_count);
  return remember(r, &a, target, &op, replaced, out);
}

ts_status ts_rules_constant(ts_rules *r, ts_region_id target, ts_dtype dtype, const ts_shape *shape, ts_scalar value,
                            ts_value_id *out) {
  ts_attrs attrs;
  ts_attrs_set_constant(&attrs, dtype, shape, value);
  return ts_rules_add(r, target, TS_OP_CONSTANT, (ts_values){0}, &attrs, out);
}
