#include "pass/rules.h"

#include "base/map.h"

#include <string.h>

void ts_rules_deinit(ts_rules *rules) {
  ts_free(rules->known);
  ts_arena_deinit(&rules->arena);
}

/* ---- what is known ---- */

enum { FIRST_CAPACITY = 256, BY_CONTENT = 4096 /* bytes of a literal */ };

static uint64_t mix(uint64_t hash, uint64_t x) {
  hash = (hash ^ x) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

static bool is_small(const ts_buffer *literal) { return literal->bytes <= BY_CONTENT; }

/* Attributes of a graph are the same where they are at the same place, but for literals. */
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

/* A commutative op is the same with its operands exchanged, as NaN payloads are not promised. */
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
  return k->replaced ? k->replaced : ts_graph_op(r->to, ts_graph_value(r->to, k->made - 1)->op);
}

/* Where an entry for the op is or belongs. */
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

/* An op that is asked for. Its value is TS_NO_ID when it is new; then `slot` is its place as long as `known` does not
 * change. */
typedef struct asked {
  uint32_t hash;
  size_t slot, count;
  ts_value_id value;
} asked;

static ts_status ask(ts_rules *r, ts_region_id region, const ts_op *op, asked *out) {
  *out = (asked){.value = TS_NO_ID};
  if (!(r->sets & TS_RULES_SHARE)) return TS_SUCCESS;
  if ((r->known_count + 1) * 4 > r->known_capacity * 3) TS_TRY(grow(r));
  out->hash = hash_op(region, op);
  out->slot = find(r, out->hash, region, op);
  out->value = r->known[out->slot].made - 1; /* TS_NO_ID when there is none */
  out->count = r->known_count;
  return TS_SUCCESS;
}

/* The op itself, when something else stands for it. */
static ts_status keep_op(ts_rules *r, ts_region_id region, const ts_op *op, const ts_op **out) {
  ts_op *kept;
  TS_TRY(ts_arena_copy(&r->arena, op, sizeof *op, (void **)&kept));
  kept->region = region;
  *out = kept;
  return ts_arena_copy(&r->arena, op->operands, op->operand_count * sizeof *op->operands, (void **)&kept->operands);
}

static ts_status remember(ts_rules *r, const asked *a, ts_region_id region, const ts_op *op, bool replaced,
                          ts_value_id value) {
  const ts_op *kept = NULL;
  size_t slot = a->slot;
  if (!(r->sets & TS_RULES_SHARE)) return TS_SUCCESS;
  if (replaced) TS_TRY(keep_op(r, region, op, &kept));
  if (r->known_count != a->count) { /* a rule has added ops */
    if ((r->known_count + 1) * 4 > r->known_capacity * 3) TS_TRY(grow(r));
    slot = find(r, a->hash, region, op);
  }
  if (r->known[slot].made == 0) r->known_count++;
  r->known[slot] = (ts_known_op){kept, a->hash, value + 1};
  return TS_SUCCESS;
}

/* ---- adding ---- */

static ts_status try_rules(const ts_rule_call *call, ts_value_id *out) {
  *out = TS_NO_ID;
  if (call->op->operand_count == 0) return TS_SUCCESS;
  if (call->rules->sets & TS_RULES_SIMPLIFY) TS_TRY(ts_simplify(call, out));
  if (*out != TS_NO_ID || !(call->rules->sets & TS_RULES_FOLD)) return TS_SUCCESS;
  return ts_fold(call, out);
}

/* What a rule makes is one of the values it was asked about. */
static ts_status check_type(const ts_rule_call *call, ts_value_id value) {
  const ts_value *v = ts_graph_value(call->rules->to, value);
  if (v->dtype == call->dtype && ts_shape_equal(v->shape, call->shape)) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "%s became a value of type %s, expected %s", ts_op_name(call->op->code),
                  TS_SHAPE_STR(v->dtype, v->shape), TS_SHAPE_STR(call->dtype, call->shape));
}

ts_status ts_rules_copy(ts_rules *r, ts_region_id target, const ts_graph *from, ts_op_id id,
                        const ts_value_id *operands, ts_value_id *out) {
  const ts_op *old = ts_graph_op(from, id);
  const ts_value *result = ts_graph_value(from, old->first_result);
  ts_op op = {.code = old->code,
              .operand_count = old->operand_count,
              .operands = (ts_value_id *)(uintptr_t)operands,
              .attrs = old->attrs};
  ts_rule_call call = {r, target, &op, result->dtype, result->shape};
  asked a;
  TS_TRY(ask(r, target, &op, &a));
  *out = a.value;
  if (a.value != TS_NO_ID) return TS_SUCCESS;
  TS_TRY(try_rules(&call, out));
  bool replaced = *out != TS_NO_ID;
  TS_TRY(replaced ? check_type(&call, *out) : ts_graph_add_like(r->to, target, from, id, operands, out));
  return remember(r, &a, target, &op, replaced, *out);
}

ts_status ts_rules_probe(ts_rules *r, ts_op_id id) {
  const ts_op *op = ts_graph_op(r->to, id);
  const ts_value *result = ts_graph_value(r->to, op->first_result);
  ts_value_id value;
  asked a;
  TS_TRY(ask(r, op->region, op, &a));
  r->changes = r->changes || a.value != TS_NO_ID;
  if (r->changes) return TS_SUCCESS;
  TS_TRY(try_rules(&(ts_rule_call){r, op->region, op, result->dtype, result->shape}, &value));
  r->changes = r->changes || value != TS_NO_ID;
  return r->changes ? TS_SUCCESS : remember(r, &a, op->region, op, false, op->first_result);
}

ts_status ts_rules_add(ts_rules *r, ts_region_id target, ts_opcode code, const ts_value_id *operands, size_t count,
                       const ts_attrs *attrs, ts_value_id *out) {
  ts_op op = {
      .code = code, .operand_count = (uint32_t)count, .operands = (ts_value_id *)(uintptr_t)operands, .attrs = attrs};
  ts_type type;
  size_t results;
  asked a;
  *out = TS_NO_ID;
  if (r->probing) {
    r->changes = true;
    return TS_SUCCESS;
  }
  if (ts_op_has_regions(code)) return ts_graph_add_op(r->to, target, code, operands, count, attrs, out);
  TS_TRY(ts_infer(r->to, code, operands, count, attrs, 1, &type, &results));
  TS_TRY(ts_graph_keep_attrs(r->to, code, attrs, &op.attrs));
  TS_TRY(ask(r, target, &op, &a));
  *out = a.value;
  if (a.value != TS_NO_ID) return TS_SUCCESS;
  TS_TRY(try_rules(&(ts_rule_call){r, target, &op, type.dtype, &type.shape}, out));
  bool replaced = *out != TS_NO_ID;
  if (!replaced) TS_TRY(ts_graph_add_op(r->to, target, code, operands, count, op.attrs, out));
  return remember(r, &a, target, &op, replaced, *out);
}

ts_status ts_rules_constant(ts_rules *r, ts_region_id target, ts_dtype dtype, const ts_shape *shape, ts_scalar value,
                            ts_value_id *out) {
  ts_attrs attrs = {.constant = {.dtype = dtype, .shape = *shape, .value = value}};
  return ts_rules_add(r, target, TS_OP_CONSTANT, NULL, 0, &attrs, out);
}
