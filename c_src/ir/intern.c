#include "ir/intern.h"

#include "base/map.h"
#include "ir/attrs.h"

#include <string.h>

struct ts_interned {
  const void *key;  /* the words of its key; NULL in an empty slot */
  const void *data; /* a shape (its own key), or attributes */
  uint32_t hash, size;
};

/* A memo of the last lookup by address: `data` equals the object that was at `other`, which may have been freed
 * since. */
struct ts_foreign {
  const void *other, *data;
  ts_attr_kind kind; /* NONE: a shape */
};

enum { FIRST_CAPACITY = 32, FOREIGN = 64 };

ts_status ts_intern_create(ts_intern *base, ts_intern **out) {
  TS_TRY(TS_NEW(out));
  atomic_init(&(*out)->refs, 1);
  ts_arena_init(&(*out)->arena);
  if (base) atomic_fetch_add_explicit(&base->refs, 1, memory_order_relaxed);
  (*out)->base = base;
  return TS_SUCCESS;
}

void ts_intern_release(ts_intern *intern) {
  while (intern && atomic_fetch_sub_explicit(&intern->refs, 1, memory_order_acq_rel) == 1) {
    ts_intern *base = intern->base;
    ts_arena_deinit(&intern->arena);
    ts_free(intern->slots);
    ts_free(intern->foreign);
    ts_free(intern);
    intern = base;
  }
}

/* ---- the table ---- */

/* The slot of equal bytes, or the empty slot where they belong. The table has a free slot. */
static struct ts_interned *find_slot(const ts_intern *in, uint32_t hash, const void *bytes, size_t size) {
  size_t mask = in->capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    struct ts_interned *s = &in->slots[i];
    if (!s->key || (s->hash == hash && s->size == size && memcmp(s->key, bytes, size) == 0)) return s;
  }
}

static const void *find(const ts_intern *in, uint32_t hash, const void *bytes, size_t size) {
  for (; in; in = in->base) {
    const void *found = in->capacity ? find_slot(in, hash, bytes, size)->data : NULL;
    if (found) return found;
  }
  return NULL;
}

static ts_status grow(ts_intern *in) {
  size_t capacity = in->capacity ? 2 * in->capacity : FIRST_CAPACITY;
  struct ts_interned *slots;
  TS_TRY(TS_NEW_ARRAY(capacity, &slots));
  for (size_t i = 0; i < in->capacity; i++) {
    if (!in->slots[i].key) continue;
    size_t at = in->slots[i].hash & (capacity - 1);
    while (slots[at].key) at = (at + 1) & (capacity - 1);
    slots[at] = in->slots[i];
  }
  ts_free(in->slots);
  in->slots = slots;
  in->capacity = capacity;
  return TS_SUCCESS;
}

/* Adds an item that is not in the table. */
static ts_status keep(ts_intern *in, uint32_t hash, const void *key, size_t size, const void *data) {
  if ((in->count + 1) * 4 > in->capacity * 3) TS_TRY(grow(in));
  *find_slot(in, hash, key, size) = (struct ts_interned){key, data, hash, (uint32_t)size};
  in->count++;
  return TS_SUCCESS;
}

static uint64_t mix(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
  return hash ^ hash >> 29;
}

/* Marks keys of attributes, which begin with their kind; keys of shapes begin with the rank. */
#define OF_ATTRS (UINT64_C(1) << 63)

ts_status ts_intern_attrs(ts_intern *in, ts_opcode code, const ts_attrs *attrs, const ts_attrs **out) {
  ts_attr_kind kind = ts_op_attr_kind(code);
  uint64_t words[1 + TS_ATTRS_MAX_WORDS], hash64 = 0;
  ts_attrs canonical, *kept;
  void *key;
  ts_attrs_canonicalize(code, attrs, &canonical);
  words[0] = OF_ATTRS | kind;
  size_t count = 1 + ts_attrs_words(kind, &canonical, words + 1), size = count * sizeof *words;
  for (size_t i = 0; i < count; i++) hash64 = mix(hash64, words[i]);
  uint32_t hash = (uint32_t)(hash64 ^ hash64 >> 32);
  if ((*out = find(in, hash, words, size))) return TS_SUCCESS;
  TS_TRY(ts_arena_take(&in->arena, ts_attrs_size(kind), (void **)&kept));
  TS_TRY(ts_arena_copy(&in->arena, words, size, &key));
  ts_attrs_canonicalize(code, &canonical, kept);
  *out = kept;
  return keep(in, hash, key, size, kept);
}

ts_status ts_intern_shape(ts_intern *in, const ts_shape *shape, const ts_shape **out) {
  ts_shape key, *kept;
  memset(&key, 0, offsetof(ts_shape, dims)); /* including the padding */
  ts_shape_copy(&key, shape);
  uint64_t hash64 = (uint64_t)(uint32_t)shape->rank;
  for (int32_t i = 0; i < shape->rank; i++) hash64 = mix(hash64, (uint64_t)shape->dims[i]);
  uint32_t hash = (uint32_t)(hash64 ^ hash64 >> 32);
  size_t size = ts_shape_size(&key);
  if ((*out = find(in, hash, &key, size))) return TS_SUCCESS;
  TS_TRY(ts_arena_take(&in->arena, sizeof *kept, (void **)&kept));
  memcpy(kept, &key, size);
  *out = kept;
  return keep(in, hash, kept, size, kept);
}

/* ---- interned objects of other graphs ---- */

/* The memo's entry for an address; NULL when there is no memory for the memo. */
static struct ts_foreign *place_of(ts_intern *in, const void *other) {
  uint64_t hash = (uintptr_t)other * UINT64_C(0x9E3779B97F4A7C15);
  if (!in->foreign) ts_status_free(TS_NEW_ARRAY(FOREIGN, &in->foreign));
  return in->foreign ? &in->foreign[hash >> 32 & (FOREIGN - 1)] : NULL;
}

static bool is_known(const struct ts_foreign *f, const void *other, ts_attr_kind kind) {
  if (!f || f->other != other || f->kind != kind) return false;
  return kind == TS_ATTR_NONE ? ts_shape_equal(f->data, other) : ts_attrs_equal(kind, f->data, other);
}

ts_status ts_intern_attrs_of(ts_intern *in, ts_opcode code, const ts_attrs *other, const ts_attrs **out) {
  ts_attr_kind kind = ts_op_attr_kind(code);
  struct ts_foreign *f = place_of(in, other);
  if (is_known(f, other, kind)) {
    *out = f->data;
    return TS_SUCCESS;
  }
  TS_TRY(ts_intern_attrs(in, code, other, out));
  if (f) *f = (struct ts_foreign){other, *out, kind};
  return TS_SUCCESS;
}

ts_status ts_intern_shape_of(ts_intern *in, const ts_shape *other, const ts_shape **out) {
  struct ts_foreign *f = place_of(in, other);
  if (is_known(f, other, TS_ATTR_NONE)) {
    *out = f->data;
    return TS_SUCCESS;
  }
  TS_TRY(ts_intern_shape(in, other, out));
  if (f) *f = (struct ts_foreign){other, *out, TS_ATTR_NONE};
  return TS_SUCCESS;
}
