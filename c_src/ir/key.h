/* Ops as words, for lookup: two ops of one graph with equal words and equal operands have equal results. Valid while
 * the graph lives, as attributes and shapes count by address. A key is built word by word, then looked up, then perhaps
 * added with a value. Used by one thread. */
#ifndef TS_IR_KEY_H
#define TS_IR_KEY_H

#include "ir/graph.h"

typedef struct ts_keys {
  TS_VEC(uint64_t) words; /* of the current key */
  uint64_t hash;          /* hash of the words */
  struct ts_kept_key *slots;
  size_t kept, slot_count;
  ts_arena arena; /* holds the keys in the table */
} ts_keys;

void ts_keys_deinit(ts_keys *keys); /* an all-zero struct is an empty table */

static inline void ts_keys_begin(ts_keys *keys) {
  keys->words.count = 0;
  keys->hash = 0;
}

/* Requires reserved room for the word. */
static inline void ts_keys_put_there(ts_keys *keys, uint64_t word) {
  keys->words.data[keys->words.count++] = word;
  keys->hash = (keys->hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  keys->hash ^= keys->hash >> 32;
}

static inline ts_status ts_keys_make_room(ts_keys *keys, size_t more) {
  return TS_VEC_RESERVE(&keys->words, keys->words.count + more);
}

static inline ts_status ts_keys_put(ts_keys *keys, uint64_t word) {
  TS_TRY(ts_keys_make_room(keys, 1));
  ts_keys_put_there(keys, word);
  return TS_SUCCESS;
}

/* Adds a value's type, and 32 more bits. */
static inline ts_status ts_keys_put_type(ts_keys *keys, const ts_value *value, uint32_t more) {
  TS_TRY(ts_keys_make_room(keys, 2));
  ts_keys_put_there(keys, (uintptr_t)value->shape);
  ts_keys_put_there(keys, (uint64_t)value->dtype << 32 | more);
  return TS_SUCCESS;
}

/* Adds the op's code, number of operands and attributes, and the operands' numbers unless `numbers` is NULL. Fusions
 * with a common region have equal keys; other ops with regions equal only themselves. */
static inline ts_status ts_keys_put_op(ts_keys *keys, const ts_op *op, const uint32_t *numbers) {
  TS_TRY(ts_keys_make_room(keys, 2 + (size_t)(numbers ? op->operand_count : 0)));
  ts_keys_put_there(keys, (uintptr_t)op->attrs);
  ts_keys_put_there(keys, (uint64_t)op->code << 32 | op->operand_count);
  for (uint32_t i = 0; numbers && i < op->operand_count; i++) ts_keys_put_there(keys, numbers[op->operands[i]]);
  return TS_SUCCESS;
}

/* The value of the current key; NULL on a miss. */
void *ts_keys_find(const ts_keys *keys);
/* Adds the current key, which must be new. */
ts_status ts_keys_keep(ts_keys *keys, void *value);

#endif
