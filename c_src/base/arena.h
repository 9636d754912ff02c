/* A bump allocator: many small allocations that are freed all at once. Not thread-safe; one owner at a time. Memory is
 * zeroed and aligned to 16 bytes. */
#ifndef TS_BASE_ARENA_H
#define TS_BASE_ARENA_H

#include "base/alloc.h"

typedef struct ts_arena {
  struct ts_arena_chunk *head;
  size_t chunk_size; /* of the next chunk; doubles up to 1 MB */
  size_t used;       /* bytes allocated, for statistics */
} ts_arena;

void ts_arena_init(ts_arena *arena);
void ts_arena_deinit(ts_arena *arena);
/* Frees all allocations, and keeps one chunk for the next ones. */
void ts_arena_reset(ts_arena *arena);
ts_status ts_arena_alloc(ts_arena *arena, size_t size, void **out);
/* Not zeroed. */
static inline ts_status ts_arena_take(ts_arena *arena, size_t size, void **out);
ts_status ts_arena_alloc_array(ts_arena *arena, size_t count, size_t element_size, void **out);
ts_status ts_arena_copy(ts_arena *arena, const void *data, size_t size, void **out);
ts_status ts_arena_strdup(ts_arena *arena, const char *text, char **out);

struct ts_arena_chunk {
  struct ts_arena_chunk *next;
  size_t size, used; /* of `bytes` */
  _Alignas(16) char bytes[];
};

/* When the current chunk has no room, or `size` is 0 or too large to round. */
ts_status ts_arena_take_slow(ts_arena *arena, size_t size, void **out);

static inline ts_status ts_arena_take(ts_arena *arena, size_t size, void **out) {
  struct ts_arena_chunk *head = arena->head;
  size_t rounded = (size + 15) & ~(size_t)15;
  if (!head || rounded <= size - 1 || head->size - head->used < rounded) return ts_arena_take_slow(arena, size, out);
  *out = head->bytes + head->used;
  head->used += rounded;
  arena->used += rounded;
  return TS_SUCCESS;
}

#define TS_ARENA_ARRAY(arena, count, out) ts_arena_alloc_array((arena), (count), sizeof(**(out)), (void **)(out))

#endif
