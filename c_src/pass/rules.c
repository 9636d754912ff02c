#include "pass/rules.h"

#include "base/map.h"

#include <string.h>

void ts_rules_deinit(ts_rules *rules) {
  ts_free(rules->known);
  TS_VEC_FREE(&rules->keys);
}

/* ---- what is known ---- */

/* Where an entry with this key is or belongs. */
static size_t find(const ts_rules *r, uint64_t hash, const unsigned char *key, size_t length) {
  size_t mask = r->known_capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const ts_known_op *k = &r->known[i];
    if (k->length == 0) return i;
    if (k->hash == hash && k->length == length && memcmp(r->keys.data + k->key, key, length) == 0) return i;
  }
}

static ts_status grow(ts_rules *r) {
  ts_known_op *old = r->known;
  size_t old_capacity = r->known_capacity, capacity = old_capacity ? 2 * old_capacity : 256;
  TS_TRY(TS_NEW_ARRAY(capacity, &r->known));
  r->known_capacity = capacity;
  for (size_t i = 0; i < old_capacity; i++) {
    size_t slot = old[i].hash & (capacity - 1);
    if (old[i].length == 0) continue;
    while (r->known[slot].length) slot = (slot + 1) & (capacity - 1);
    r->known[slot] = old[i];
  }
  ts_free(old);
  return TS_SUCCESS;
}

/* The key of an op: its region, what it does, to which values. That of a commutative op has its operands in order;
 * only the key, as NaN payloads are not promised. Keys are made at the end of `keys` and stay there when they are new.
 */
static ts_status make_key(ts_rules *r, ts_region_id region, const ts_op *op) {
  ts_value_id a, b;
  TS_TRY(ts_key_put(&r->keys, &region, sizeof(region)));
  TS_TRY(ts_key_put_op(&r->keys, op));
  if (op->operand_count != 2 || !ts_op_is_commutative(op->code) || op->operands[0] <= op->operands[1])
    return ts_key_put(&r->keys, op->operands, op->operand_count * sizeof(*op->operands));
  a = op->operands[1], b = op->operands[0];
  TS_TRY(ts_key_put(&r->keys, &a, sizeof(a)));
  return ts_key_put(&r->keys, &b, sizeof(b));
}

/* An entry for the op; its value is TS_NO_ID when it is new. Entries that are made meanwhile do not disturb it. */
typedef struct asked {
  uint64_t hash;
  size_t key, length;
  ts_value_id value;
} asked;

static ts_status ask(ts_rules *r, ts_region_id region, const ts_op *op, asked *out) {
  *out = (asked){.key = r->keys.count, .value = TS_NO_ID};
  if (!(r->sets & TS_RULES_SHARE)) return TS_SUCCESS;
  if ((r->known_count + 1) * 4 > r->known_capacity * 3) TS_TRY(grow(r));
  TS_TRY(make_key(r, region, op));
  out->length = r->keys.count - out->key;
  out->hash = ts_hash64(r->keys.data + out->key, out->length);
  const ts_known_op *known = &r->known[find(r, out->hash, r->keys.data + out->key, out->length)];
  if (known->length == 0) return TS_SUCCESS;
  out->value = known->value;
  r->keys.count = out->key;
  return TS_SUCCESS;
}

static ts_status remember(ts_rules *r, const asked *a, ts_value_id value) {
  if (a->length == 0) return TS_SUCCESS;
  if ((r->known_count + 1) * 4 > r->known_capacity * 3) TS_TRY(grow(r));
  ts_known_op *known = &r->known[find(r, a->hash, r->keys.data + a->key, a->length)];
  if (known->length == 0) r->known_count++;
  *known = (ts_known_op){a->hash, a->key, a->length, value};
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
  if (v->dtype == call->dtype && ts_shape_equal(&v->shape, call->shape)) return TS_SUCCESS;
  return ts_error(TS_INTERNAL, "%s became a value of type %s, expected %s", ts_op_name(call->op->code),
                  TS_SHAPE_STR(v->dtype, &v->shape), TS_SHAPE_STR(call->dtype, call->shape));
}

ts_status ts_rules_copy(ts_rules *r, ts_region_id target, const ts_graph *from, ts_op_id id,
                        const ts_value_id *operands, ts_value_id *out) {
  const ts_op *old = ts_graph_op(from, id);
  const ts_value *result = ts_graph_value(from, old->first_result);
  ts_op op = {.code = old->code,
              .operand_count = old->operand_count,
              .operands = (ts_value_id *)(uintptr_t)operands,
              .attrs = old->attrs};
  ts_rule_call call = {r, target, &op, result->dtype, &result->shape};
  asked a;
  TS_TRY(ask(r, target, &op, &a));
  *out = a.value;
  if (a.value != TS_NO_ID) return TS_SUCCESS;
  TS_TRY(try_rules(&call, out));
  if (*out != TS_NO_ID)
    TS_TRY(check_type(&call, *out));
  else
    TS_TRY(ts_graph_add_like(r->to, target, from, id, operands, out));
  return remember(r, &a, *out);
}

ts_status ts_rules_add(ts_rules *r, ts_region_id target, ts_opcode code, const ts_value_id *operands, size_t count,
                       const ts_attrs *attrs, ts_value_id *out) {
  ts_op op = {
      .code = code, .operand_count = (uint32_t)count, .operands = (ts_value_id *)(uintptr_t)operands, .attrs = attrs};
  ts_region_id held[2];
  ts_type type;
  size_t results;
  asked a;
  if (ts_op_regions(&op, held) > 0) return ts_graph_add_op(r->to, target, code, operands, count, attrs, out);
  TS_TRY(ts_infer(r->to, code, operands, count, attrs, 1, &type, &results));
  TS_TRY(ask(r, target, &op, &a));
  *out = a.value;
  if (a.value != TS_NO_ID) return TS_SUCCESS;
  TS_TRY(try_rules(&(ts_rule_call){r, target, &op, type.dtype, &type.shape}, out));
  if (*out == TS_NO_ID) TS_TRY(ts_graph_add_op(r->to, target, code, operands, count, attrs, out));
  return remember(r, &a, *out);
}

ts_status ts_rules_constant(ts_rules *r, ts_region_id target, ts_dtype dtype, const ts_shape *shape, ts_scalar value,
                            ts_value_id *out) {
  ts_attrs attrs = {.constant = {.dtype = dtype, .shape = *shape, .value = value}};
  return ts_rules_add(r, target, TS_OP_CONSTANT, NULL, 0, &attrs, out);
}
