/* A table of indices by hash, with linear probing. The caller compares the items themselves. Not thread-safe. */
#ifndef TS_FRONT_EXPR_TABLE_H
#define TS_FRONT_EXPR_TABLE_H

#include "base/alloc.h"
#include "ir/graph.h"

#include <string.h>

typedef struct ts_expr_table {
  struct {
    uint32_t hash, number; /* TS_NO_ID: empty */
  } * slots;
  size_t capacity, count;
} ts_expr_table;

static inline void ts_expr_table_insert(ts_expr_table *x, uint32_t hash, uint32_t number) {
  size_t i = hash & (x->capacity - 1);
  while (x->slots[i].number != TS_NO_ID) i = (i + 1) & (x->capacity - 1);
  x->slots[i].hash = hash, x->slots[i].number = number;
}

static inline ts_status ts_expr_table_grow(ts_expr_table *x) {
  size_t capacity = x->capacity ? x->capacity * 4 : 64;
  ts_expr_table grown = {.capacity = capacity, .count = x->count};
  TS_TRY(ts_realloc_array(capacity, sizeof *grown.slots, (void **)&grown.slots));
  memset(grown.slots, 0xff, capacity * sizeof *grown.slots);
  for (size_t i = 0; i < x->capacity; i++)
    if (x->slots[i].number != TS_NO_ID) ts_expr_table_insert(&grown, x->slots[i].hash, x->slots[i].number);
  ts_free(x->slots);
  *x = grown;
  return TS_SUCCESS;
}

static inline ts_status ts_expr_table_add(ts_expr_table *x, uint32_t hash, uint32_t number) {
  if ((x->count + 1) * 2 > x->capacity) TS_TRY(ts_expr_table_grow(x));
  ts_expr_table_insert(x, hash, number);
  x->count++;
  return TS_SUCCESS;
}

/* The next number with that hash; TS_NO_ID at the end. Start with *at = hash. */
static inline uint32_t ts_expr_table_next(const ts_expr_table *x, uint32_t hash, size_t *at) {
  if (!x->capacity) return TS_NO_ID;
  for (;; ++*at) {
    size_t i = *at & (x->capacity - 1);
    if (x->slots[i].number == TS_NO_ID) return TS_NO_ID;
    if (x->slots[i].hash != hash) continue;
    ++*at;
    return x->slots[i].number;
  }
}

static inline void ts_expr_table_deinit(ts_expr_table *x) { ts_free(x->slots); }

static inline uint64_t ts_expr_mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

#endif
