/* What ops do, as words: of two ops of one graph with the same words on the same operands the results are the same.
 * For look-up while the graph is there, as attributes and shapes count by their address. A key belongs to its maker. */
#ifndef TS_IR_KEY_H
#define TS_IR_KEY_H

#include "base/map.h"
#include "ir/graph.h"

typedef TS_VEC(uint64_t) ts_key;

static inline ts_status ts_key_put(ts_key *key, uint64_t word) { return TS_VEC_PUSH(key, word); }

/* A value's type, and 32 bits more. */
static inline ts_status ts_key_put_type(ts_key *key, const ts_value *value, uint32_t more) {
  TS_TRY(ts_key_put(key, (uintptr_t)value->shape));
  return ts_key_put(key, (uint64_t)value->dtype << 32 | more);
}

/* The op's code, number of operands and attributes; the operands are the caller's to put. Fusions are alike when they
 * share a region, other ops with regions are only like themselves. */
static inline ts_status ts_key_put_op(ts_key *key, const ts_op *op) {
  TS_TRY(ts_key_put(key, (uintptr_t)op->attrs));
  return ts_key_put(key, (uint64_t)op->code << 32 | op->operand_count);
}

/* In a map whose keys are these. */
static inline void *ts_key_find(const ts_key *key, const ts_map *map) {
  return ts_map_get(map, key->data, key->count * sizeof *key->data);
}
static inline ts_status ts_key_add(const ts_key *key, ts_map *map, void *value) {
  return ts_map_put(map, key->data, key->count * sizeof *key->data, value);
}

#endif
