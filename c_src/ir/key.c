#include "ir/key.h"

#include <string.h>

/* An entry with open addressing; `words` is NULL in an empty slot. */
struct ts_kept_key {
  const uint64_t *words;
  uint64_t hash;
  size_t count;
  void *value;
};

enum { FIRST_SLOTS = 32 };

void ts_keys_deinit(ts_keys *keys) {
  TS_VEC_FREE(&keys->words);
  ts_free(keys->slots);
  ts_arena_deinit(&keys->arena);
  *keys = (ts_keys){.arena = keys->arena};
}

void *ts_keys_find(const ts_keys *keys) {
  size_t mask = keys->slot_count - 1, count = keys->words.count;
  if (keys->kept == 0) return NULL;
  for (size_t i = keys->hash & mask;; i = (i + 1) & mask) {
    const struct ts_kept_key *k = &keys->slots[i];
    if (!k->words) return NULL;
    if (k->hash == keys->hash && k->count == count && memcmp(k->words, keys->words.data, count * sizeof *k->words) == 0)
      return k->value;
  }
}

static void insert(struct ts_kept_key *slots, size_t slot_count, const struct ts_kept_key *key) {
  size_t i = key->hash & (slot_count - 1);
  while (slots[i].words) i = (i + 1) & (slot_count - 1);
  slots[i] = *key;
}

static ts_status grow(ts_keys *keys) {
  size_t slot_count = keys->slot_count ? 2 * keys->slot_count : FIRST_SLOTS;
  struct ts_kept_key *slots;
  TS_TRY(TS_NEW_ARRAY(slot_count, &slots));
  for (size_t i = 0; i < keys->slot_count; i++)
    if (keys->slots[i].words) insert(slots, slot_count, &keys->slots[i]);
  ts_free(keys->slots);
  keys->slots = slots;
  keys->slot_count = slot_count;
  return TS_SUCCESS;
}

ts_status ts_keys_keep(ts_keys *keys, void *value) {
  void *words;
  if ((keys->kept + 1) * 4 > keys->slot_count * 3) TS_TRY(grow(keys));
  TS_TRY(ts_arena_copy(&keys->arena, keys->words.data, keys->words.count * sizeof *keys->words.data, &words));
  struct ts_kept_key key = {.words = words, .hash = keys->hash, .count = keys->words.count, .value = value};
  insert(keys->slots, keys->slot_count, &key);
  keys->kept++;
  return TS_SUCCESS;
}
