#include "ir/intern.h"

#include "base/map.h"

#include <string.h>

struct ts_interned {
  const void *data; /* NULL in an empty slot */
  uint32_t hash, size;
};

/* `data` is equal to what was at `other`, which may have gone since. */
struct ts_foreign {
  const void *other, *data;
  size_t size;
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

/* The slot of equal bytes, or the empty one where they belong. There is a free slot. */
static struct ts_interned *find_slot(const ts_intern *in, uint32_t hash, const void *bytes, size_t size) {
  size_t mask = in->capacity - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    struct ts_interned *s = &in->slots[i];
    if (!s->data || (s->hash == hash && s->size == size && memcmp(s->data, bytes, size) == 0)) return s;
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
    if (!in->slots[i].data) continue;
    size_t at = in->slots[i].hash & (capacity - 1);
    while (slots[at].data) at = (at + 1) & (capacity - 1);
    slots[at] = in->slots[i];
  }
  ts_free(in->slots);
  in->slots = slots;
  in->capacity = capacity;
  return TS_SUCCESS;
}

static ts_status intern_hashed(ts_intern *in, uint64_t hash64, const void *bytes, size_t size, const void **out) {
  uint32_t hash = (uint32_t)(hash64 ^ hash64 >> 32);
  void *copy;
  if ((*out = find(in, hash, bytes, size))) return TS_SUCCESS;
  if ((in->count + 1) * 4 > in->capacity * 3) TS_TRY(grow(in));
  TS_TRY(ts_arena_copy(&in->arena, bytes, size, &copy));
  *find_slot(in, hash, bytes, size) = (struct ts_interned){copy, hash, (uint32_t)size};
  in->count++;
  *out = copy;
  return TS_SUCCESS;
}

ts_status ts_intern_bytes(ts_intern *in, const void *bytes, size_t size, const void **out) {
  return intern_hashed(in, ts_hash64(bytes, size), bytes, size, out);
}

ts_status ts_intern_shape(ts_intern *in, const ts_shape *shape, const ts_shape **out) {
  ts_shape whole;
  memset(&whole, 0, sizeof whole); /* padding, too */
  whole.rank = shape->rank;
  uint64_t hash = (uint64_t)(uint32_t)shape->rank;
  for (int32_t i = 0; i < shape->rank; i++) {
    whole.dims[i] = shape->dims[i];
    hash = (hash ^ (uint64_t)shape->dims[i]) * UINT64_C(0x9E3779B97F4A7C15);
    hash ^= hash >> 29;
  }
  const void *interned;
  TS_TRY(intern_hashed(in, hash, &whole, sizeof whole, &interned));
  *out = interned;
  return TS_SUCCESS;
}

/* ---- what others keep ---- */

/* Its place; NULL when there is no memory for any. */
static struct ts_foreign *place_of(ts_intern *in, const void *other) {
  uint64_t hash = (uintptr_t)other * UINT64_C(0x9E3779B97F4A7C15);
  if (!in->foreign) ts_status_free(TS_NEW_ARRAY(FOREIGN, &in->foreign));
  return in->foreign ? &in->foreign[hash >> 32 & (FOREIGN - 1)] : NULL;
}

static bool is_known(const struct ts_foreign *f, const void *other, size_t size) {
  return f && f->other == other && f->size == size && memcmp(f->data, other, size) == 0;
}

ts_status ts_intern_bytes_of(ts_intern *in, const void *other, size_t size, const void **out) {
  struct ts_foreign *f = place_of(in, other);
  if (is_known(f, other, size)) {
    *out = f->data;
    return TS_SUCCESS;
  }
  TS_TRY(ts_intern_bytes(in, other, size, out));
  if (f) *f = (struct ts_foreign){other, *out, size};
  return TS_SUCCESS;
}

ts_status ts_intern_shape_of(ts_intern *in, const ts_shape *other, const ts_shape **out) {
  struct ts_foreign *f = place_of(in, other);
  if (is_known(f, other, sizeof *other)) {
    *out = f->data;
    return TS_SUCCESS;
  }
  TS_TRY(ts_intern_shape(in, other, out));
  if (f) *f = (struct ts_foreign){other, *out, sizeof *other};
  return TS_SUCCESS;
}
