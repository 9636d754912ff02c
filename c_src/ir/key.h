/* What ops do, as words: of two ops of one graph with the same words on the same operands the results are the same.
 * For look-up while the graph is there, as attributes and shapes count by their address. A key is made word by word,
 * then looked for, then maybe kept with a value. One thread's. */
#ifndef TS_IR_KEY_H
#define TS_IR_KEY_H

#include "ir/graph.h"

typedef struct ts_keys {
  TS_VEC(uint64_t) words; /* of the key at hand */
  uint64_t hash;          /* of those */
  struct ts_kept_key *slots;
  size_t kept, slot_count;
  ts_arena arena; /* of keys that are kept */
} ts_keys;

void ts_keys_deinit(ts_keys *keys); /* all zeros is an empty one */

static inline void ts_keys_begin(ts_keys *keys) {
  keys->words.count = 0;
  keys->hash = 0;
}

/* There is room for it. */
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

/* A value's type, and 32 bits more. */
static inline ts_status ts_keys_put_type(ts_keys *keys, const ts_value *value, uint32_t more) {
  TS_TRY(ts_keys_make_room(keys, 2));
  ts_keys_put_there(keys, (uintptr_t)value->shape);
  ts_keys_put_there(keys, (uint64_t)value->dtype << 32 | more);
  return TS_SUCCESS;
}

/* The op's code, number of operands and attributes; and the operands, by their numbers, unless that is NULL. Fusions
 * are alike when they share a region, other ops with regions are only like themselves. */
static inline ts_status ts_keys_put_op(ts_keys *keys, const ts_op *op, const uint32_t *numbers) {
  TS_TRY(ts_keys_make_room(keys, 2 + (size_t)(numbers ? op->operand_count : 0)));
  ts_keys_put_there(keys, (uintptr_t)op->attrs);
  ts_keys_put_there(keys, (uint64_t)op->code << 32 | op->operand_count);
  for (uint32_t i = 0; numbers && i < op->operand_count; i++) ts_keys_put_there(keys, numbers[op->operands[i]]);
  return TS_SUCCESS;
}

/* What was kept with the key at hand; NULL when it was not. */
void *ts_keys_find(const ts_keys *keys);
/* Keeps the key at hand, which is not there. */
ts_status ts_keys_keep(ts_keys *keys, void *value);

#endif
