#include "base/map.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#define XXH_NO_STREAM
#include <xxhash.h>

/* Linear probing. Removal shifts the following entries back, so there are no tombstones and a probe ends at the first
 * empty slot. */
struct ts_map_entry {
  char *key; /* NULL in an empty slot */
  size_t key_size;
  uint64_t hash;
  void *value;
};

uint64_t ts_hash64(const void *data, size_t size) { return XXH3_64bits(data, size); }

static ts_hash128 own(XXH128_hash_t h) { return (ts_hash128){.lo = h.low64, .hi = h.high64}; }

ts_hash128 ts_hash(const void *data, size_t size) { return own(XXH3_128bits(data, size)); }

/* Without random bytes from the system, uses the clock and the program's address. */
static void fill_weakly(ts_hash_key *key) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  uint64_t seed[] = {(uint64_t)now.tv_nsec, (uint64_t)now.tv_sec, (uintptr_t)key, (uintptr_t)&now, (uint64_t)getpid()};
  for (size_t i = 0; i < sizeof key->bytes; i += 16) {
    ts_hash128 part = own(XXH3_128bits_withSeed(seed, sizeof seed, i));
    memcpy(key->bytes + i, &part, 16);
  }
}

void ts_hash_key_init(ts_hash_key *key) {
  if (getrandom(key->bytes, sizeof key->bytes, 0) != (ssize_t)sizeof key->bytes) fill_weakly(key);
}

ts_hash128 ts_hash_keyed(const ts_hash_key *key, const void *data, size_t size) {
  return own(XXH3_128bits_withSecret(data, size, key->bytes, sizeof key->bytes));
}

void ts_map_deinit(ts_map *map) {
  for (size_t i = 0; i < map->capacity; i++) ts_free(map->entries[i].key);
  ts_free(map->entries);
  *map = (ts_map){0};
}

/* The key's slot, or the empty slot where it belongs. The map must have a free slot. */
static size_t find(const ts_map *map, const void *key, size_t key_size, uint64_t hash) {
  size_t mask = map->capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const struct ts_map_entry *e = &map->entries[i];
    if (!e->key) return i;
    if (e->hash == hash && e->key_size == key_size && memcmp(e->key, key, key_size) == 0) return i;
  }
}

void *ts_map_get(const ts_map *map, const void *key, size_t key_size) {
  if (!map->count) return NULL;
  const struct ts_map_entry *e = &map->entries[find(map, key, key_size, ts_hash64(key, key_size))];
  return e->key ? e->value : NULL;
}

static ts_status grow(ts_map *map) {
  size_t capacity = map->capacity ? map->capacity * 2 : 16;
  struct ts_map_entry *entries;
  TS_TRY(TS_NEW_ARRAY(capacity, &entries));
  for (size_t i = 0; i < map->capacity; i++) {
    if (!map->entries[i].key) continue;
    size_t slot = map->entries[i].hash & (capacity - 1);
    while (entries[slot].key) slot = (slot + 1) & (capacity - 1);
    entries[slot] = map->entries[i];
  }
  ts_free(map->entries);
  map->entries = entries;
  map->capacity = capacity;
  return TS_SUCCESS;
}

ts_status ts_map_put(ts_map *map, const void *key, size_t key_size, void *value) {
  if ((map->count + 1) * 4 > map->capacity * 3) TS_TRY(grow(map));
  uint64_t hash = ts_hash64(key, key_size);
  struct ts_map_entry *e = &map->entries[find(map, key, key_size, hash)];
  if (!e->key) {
    char *copy = ts_malloc_raw(key_size);
    if (!copy) return ts_error_no_memory();
    if (key_size) memcpy(copy, key, key_size);
    *e = (struct ts_map_entry){.key = copy, .key_size = key_size, .hash = hash};
    map->count++;
  }
  e->value = value;
  return TS_SUCCESS;
}

/* Closes the gap at `hole`: a later entry moves into it unless the hole is before the entry's home slot. */
static void close_gap(ts_map *map, size_t hole) {
  size_t mask = map->capacity - 1;
  for (size_t i = (hole + 1) & mask; map->entries[i].key; i = (i + 1) & mask) {
    size_t home = map->entries[i].hash & mask;
    if (((i - home) & mask) < ((i - hole) & mask)) continue;
    map->entries[hole] = map->entries[i];
    hole = i;
  }
  map->entries[hole] = (struct ts_map_entry){0};
}

void *ts_map_remove(ts_map *map, const void *key, size_t key_size) {
  if (!map->count) return NULL;
  size_t slot = find(map, key, key_size, ts_hash64(key, key_size));
  if (!map->entries[slot].key) return NULL;
  void *value = map->entries[slot].value;
  ts_free(map->entries[slot].key);
  close_gap(map, slot);
  map->count--;
  return value;
}

bool ts_map_next(const ts_map *map, size_t *cursor, const void **key, size_t *key_size, void **value) {
  while (*cursor < map->capacity) {
    const struct ts_map_entry *e = &map->entries[(*cursor)++];
    if (!e->key) continue;
    *key = e->key;
    *key_size = e->key_size;
    *value = e->value;
    return true;
  }
  return false;
}
