/* A hash map from byte strings to pointers, open addressing, with copied keys. Not thread-safe. Also the hash functions
 * that name kernels. */
#ifndef TS_BASE_MAP_H
#define TS_BASE_MAP_H

#include "base/alloc.h"

typedef struct ts_hash128 {
  uint64_t lo, hi;
} ts_hash128;

uint64_t ts_hash64(const void *data, size_t size);
ts_hash128 ts_hash(const void *data, size_t size);

/* A key that makes a hash differ between processes, so that data cannot be crafted to collide. */
typedef struct ts_hash_key {
  uint8_t bytes[192];
} ts_hash_key;

void ts_hash_key_init(ts_hash_key *key); /* random */
ts_hash128 ts_hash_keyed(const ts_hash_key *key, const void *data, size_t size);

typedef struct ts_map {
  struct ts_map_entry *entries;
  size_t count, capacity;
} ts_map;

void ts_map_deinit(ts_map *map);
/* NULL when absent. */
void *ts_map_get(const ts_map *map, const void *key, size_t key_size);
/* Inserts or replaces. */
ts_status ts_map_put(ts_map *map, const void *key, size_t key_size, void *value);
/* Removes and returns the value, NULL when absent. */
void *ts_map_remove(ts_map *map, const void *key, size_t key_size);
/* Iterates: start with *cursor = 0; false at the end. The map must not change meanwhile. */
bool ts_map_next(const ts_map *map, size_t *cursor, const void **key, size_t *key_size, void **value);

#endif
